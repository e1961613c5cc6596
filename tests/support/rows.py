"""Rows of the store, filled in where a test has nothing to say."""

from __future__ import annotations

from typing import Any

from omb_py.results.store.keys import comparability_key
from omb_py.results.store.schema import SCHEMA_VERSION, blank_row


def row_of(run: str = "r1", launch: int = 0, **values: Any) -> dict[str, Any]:
    """A row that can be stored, of a launch of a run."""
    return {
        **blank_row(),
        "run_id": run,
        "launch_id": f"{run}-{launch}",
        "launch_index": launch,
        "started_at": "2026-11-21T12:00:00+00:00",
        "schema_version": SCHEMA_VERSION,
        "source": "omb-py",
        "benchmark": "allreduce",
        "backend": "mpi",
        "metric": "latency",
        "unit": "us",
        **values,
    }


def collective_row(name: str, size: int, ranks: int, per_node: int, time: float, **values: Any) -> dict[str, Any]:
    """A row of a collective whose calls took nearly the same: `time`, in µs. Run and time of the launch are missing."""
    middle = dict.fromkeys(("value", "mean_us", "median_us"), time)
    spread = {"min_us": 0.97 * time, "p25_us": 0.99 * time, "p75_us": 1.01 * time, "p99_us": 1.1 * time}
    row = row_of(
        benchmark=name,
        family="collective",
        binding="native",
        process_sync="barrier",
        ranks=ranks,
        nodes=-(-ranks // per_node),
        ranks_per_node=min(ranks, per_node),
        size_bytes=size,
        iterations=1000,
        stop_reason="count",
        sync_limited=False,
        **{**middle, **spread, **values},
    )
    return {**row, "comparability_key": comparability_key(row, name)}
