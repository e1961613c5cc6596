"""Measuring a cell: the timed loop, its checks, and what surrounds them."""
