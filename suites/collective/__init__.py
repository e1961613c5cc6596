"""Collective benchmarks."""
