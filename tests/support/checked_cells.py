"""Cells of real ranks: a few iterations, whose bytes are checked."""

from __future__ import annotations

from typing import Any

from omb_py.engine.program.benchmark import Benchmark, Cell
from omb_py.options.table import make_cell


def checked_cell(
    benchmark: Benchmark | str, backend: str, binding: str, size: int, iterations: int, **more: Any
) -> Cell:
    """A cell that measures as many iterations as it says after one to warm up, unless told otherwise."""
    counted = {"iterations": iterations, "auto": False, "warmup": 1, "validate": True}
    return make_cell(benchmark, backend, binding, size, **(counted | more))
