"""Workloads: their calls, predictions, and scaling."""
