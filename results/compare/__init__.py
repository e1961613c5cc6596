"""Comparisons: which launches, which cells, which verdict."""
