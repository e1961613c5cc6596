"""Which benchmarks the fidelity benchmark compares, and that it looks at their data."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from omb_py.engine.program.benchmark import Family
from tests.lab.fidelity import run as fidelity
from tests.lab.fidelity.plan import BENCHMARKS, OF_FAMILIES, SERIES, Series, declared, plan
from tests.lab.fidelity.reference import FAMILIES, NoCompiler, compile_reference, in_c

(SERIES_OF_FAMILIES,) = OF_FAMILIES


NO_LOOP_IN_C = {"guideline", "workload", "host", "training", "function"}
"""Families of several calls of those that are compared, or of none."""


def test_every_family_has_a_row() -> None:
    assert {declared(row).family for row in (*BENCHMARKS, *FAMILIES)} == set(get_args(Family)) - NO_LOOP_IN_C
    assert set(OF_FAMILIES) < set(SERIES["all"])  # what `make bench-fidelity` runs


def test_every_row_has_its_loop_in_c() -> None:
    from tests.lab.fidelity.reference import SOURCES

    text = "".join(source.read_text() for source in SOURCES)
    assert all(f"SIGNATURE({in_c(row)})" in text for row in FAMILIES)


def test_wrong_data_are_said_with_cell_and_side() -> None:
    cells: list[dict[str, Any]] = [
        {"benchmark": "put_latency", "size": 8, "wrong_bytes": {"A": 0, "B": 8}},
        {"benchmark": "comm_dup", "size": 0, "wrong_bytes": {"A": None, "B": None}},
        {"benchmark": "latency", "size": 8},
    ]
    assert fidelity.wrong_data({"cells": cells}) == "put_latency at 8 bytes: 8 wrong bytes after side B"
    assert fidelity.wrong_data({"cells": cells[1:]}) == ""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_side_that_moves_no_data_is_found_out() -> None:
    """Real ranks; side A does nothing."""
    series = Series("idle", ("idle", "c", None), "funneled", 0.03)
    rows = [row for row in FAMILIES if row != "comm_dup"]
    cells = [{**cell, "iterations": 10, "warmup": 2, "quads": 2} for cell in plan(series, rows, (8,), 0.01)]
    try:
        result = fidelity.launch(fidelity.mpiexec(), series, cells, compile_reference())
    except NoCompiler as error:
        pytest.skip(f"no C compiler here: {error}")
    for cell in result["cells"]:
        assert cell["wrong_bytes"]["A"] >= 8, cell["benchmark"]
        assert cell["wrong_bytes"]["B"] == 0, cell["benchmark"]
