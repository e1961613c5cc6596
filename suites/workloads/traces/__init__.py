"""Readers of recorded steps: traces of PyTorch, Chakra and param."""
