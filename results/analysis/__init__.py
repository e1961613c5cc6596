"""Analyses of rows over sizes, ranks and time."""
