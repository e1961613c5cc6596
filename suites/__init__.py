"""The benchmarks, by family."""

from __future__ import annotations

from omb_py.suites.registry import BENCHMARKS, find, names

__all__ = ["BENCHMARKS", "find", "names"]
