"""Rows of launches, and suites with criteria, as the tests of acceptance need them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from omb_py.orchestrate.running import collector
from omb_py.results.accept.criteria import Case, Criterion, Range
from omb_py.results.accept.judge import Evidence

HEAD = 'name = "mine"\ndescription = "d"\n[defaults]\nbackend = "mock"\niterations = 5\n'
ENTRY = '[[entry]]\nbenchmarks = ["latency", "allreduce"]\nmessage-size = "8,1K"\n'


def criterion(lines: str, name: str = "a") -> str:
    return f'[[criterion]]\nid = "{name}"\n{lines}\n'


def row(median: float, launch: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "launch_id": f"r-{launch}",
        "benchmark": "allreduce",
        "size_bytes": 8,
        "ranks": 2,
        "backend": "mock",
        "binding": "native",
        "dtype": "int32",
        "op": "sum",
        "unit": "us",
        "median_us": median,
        "mean_us": median * 1.1,
        "min_us": median,
        "p99_us": None,
        "comparability_key": "k",
        "library": "mock",
        "bw_formula": "nccl-tests:all_reduce",
        "bytes_total": 8,
        "device": "cpu",
        "buffer": "numpy",
        "metric": "latency",
        "value": median,
        "source": "omb-py",
        **more,
    }


def case(source: str = "contract", cell: str = "c", **more: Any) -> Case:
    made: dict[str, Any] = {"metric": "median", **more}
    facts = {
        "benchmark": "allreduce",
        "size_bytes": 8,
        "ranks": 2,
        "backend": "mock",
        "binding": "native",
        "dtype": "int32",
        "op": "sum",
    }
    if source == "contract":
        made.setdefault("ranges", {None: Range(high=10.0)})
    return Case(Criterion("crit", source, "allreduce", at="f.toml:9", **made), facts, cell)  # type: ignore[arg-type]


def evidence(*medians: float, cell: str = "c", **more: Any) -> Evidence:
    found = Evidence()
    add(found, medians, cell, **more)
    return found


def add(found: Evidence, medians: Sequence[float], cell: str = "c", beside: bool = False, **more: Any) -> None:
    for turn, median in enumerate(medians):
        found.add(cell, turn, row(median, turn, **more), beside)


def at_night(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let launches start so many days later."""
    shifted = datetime(2026, 11, 1, 22, tzinfo=UTC) + timedelta(days=number)
    monkeypatch.setattr(collector, "now", lambda: shifted.isoformat(timespec="milliseconds"))
