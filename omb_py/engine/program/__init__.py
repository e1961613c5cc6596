"""The step language, and what benchmarks are made of."""
