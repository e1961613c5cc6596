"""What the parent does with the cells of a launch."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from omb_py.orchestrate.running.collector import Collector
from tests.support.machines.mpi import run_command


def notes(*rows: dict[str, Any]) -> list[str]:
    """What is said after these rows of a run."""
    run = SimpleNamespace(later=[])
    collector = cast(Collector, SimpleNamespace(run=run))
    for row in rows:
        Collector._overlap_of(collector, row)
    return run.later


def row(name: str, overlap: float | None, tests: str = "0") -> dict[str, Any]:
    metrics = {} if overlap is None else {"overlap_pct": overlap}
    return {"benchmark": name, "family": "non-blocking", "metrics": metrics, "parameters": {"tests": tests}}


def test_an_overlap_of_nothing_is_explained_once_a_benchmark() -> None:
    said = notes(row("iallreduce", 0.0), row("iallreduce", 0.0), row("ibcast", 0.0, "10"))
    assert len(said) == 2
    assert said[0].startswith("iallreduce: overlap 0 %") and "-t 100" in said[0]
    assert "more than 10 calls of MPI_Test" in said[1]


def test_where_something_is_hidden_or_nothing_could_be_nothing_is_said() -> None:
    assert notes(row("iallreduce", 12.5), row("allreduce", None)) == []


CELLS = """
import sys
from omb_py.cli import main
from omb_py.orchestrate.running.collector import Collector

take = Collector.cell

def cell(collector, message):
    before = set(sys.modules)
    take(collector, message)
    print("loaded by a row:", sorted(set(sys.modules) - before), file=sys.stderr)

Collector.cell = cell
sys.exit(main("allreduce --backend mock -m 8,16 -i 5 --no-store".split()))
"""


@pytest.mark.slow
def test_the_first_row_loads_nothing_beside_the_second_cell() -> None:
    """Where each core has a rank, what the parent computes while the next cell is measured is in its samples."""
    done = run_command([sys.executable, "-c", CELLS], check=True)
    assert done.stderr.splitlines().count("loaded by a row: []") == 2, done.stderr
