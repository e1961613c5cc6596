"""Workloads: descriptions of their calls, predicted step times, and scaling."""
