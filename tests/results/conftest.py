from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Row = dict[str, Any]


@pytest.fixture
def make_row() -> Callable[..., Row]:
    """Makes a row with what a store requires; more by keyword."""
    from omb_py.results.store.schema import SCHEMA_VERSION, blank_row

    def make(**values: Any) -> Row:
        return {
            **blank_row(),
            "run_id": "r1",
            "launch_id": "r1-0",
            "launch_index": 0,
            "started_at": "2026-11-21T23:59:58.250000+00:00",
            "schema_version": SCHEMA_VERSION,
            "source": "omb-py",
            "benchmark": "allreduce",
            "backend": "mpi",
            "metric": "latency",
            "unit": "us",
            **values,
        }

    return make
