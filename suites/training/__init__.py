"""Real training on synthetic data, to hold a workload's prediction against (docs/workloads/training.md)."""
