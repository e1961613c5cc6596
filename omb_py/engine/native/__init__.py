"""The native binding: programs of steps as machine code."""
