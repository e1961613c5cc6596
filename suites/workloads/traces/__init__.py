"""Recorded steps as workloads: traces of PyTorch, Chakra and param."""
