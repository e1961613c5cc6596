"""Notes that follow the results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from omb_py.orchestrate.running.collector import Collector


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
