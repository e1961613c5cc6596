"""Point-to-point benchmarks."""
