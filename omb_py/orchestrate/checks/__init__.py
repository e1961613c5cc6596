"""Checks that need no reference: guidelines, and links between nodes."""
