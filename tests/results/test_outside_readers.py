"""pandas, DuckDB and Polars read each row of a store once, whatever else is in its folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from omb_py.results.store import index
from omb_py.results.store.compaction import compact
from omb_py.results.store.journal import Journal
from omb_py.results.store.paths import report_path
from omb_py.results.store.read import load
from omb_py.results.store.write import write_launch
from tests.support.tiers import few_quick

LAUNCHES, CELLS = 8, 3
REPORT = {"kind": "aa", "verdicts": {"SAME": 4, "SLOWER": 1}, "sides": {"BASE": {}, "NEW": {}}, "cells": []}


@pytest.fixture
def store(tmp_path, make_row, monkeypatch) -> Path:
    """A store with launches of two days, a merged file, an index, a report and a running launch."""
    monkeypatch.setattr(index, "WORTH", 2)
    monkeypatch.setattr(index, "_NEW", 2)
    monkeypatch.setattr(index, "_YOUNG_NS", -(10**9))
    root = tmp_path / "omb-results"
    for number in range(LAUNCHES):
        launch = {"run_id": "r", "launch_id": f"r-{number}", "launch_index": number}
        started = f"2026-11-{20 + number % 2}T12:00:00"
        cells = [
            make_row(**launch, started_at=started, size_bytes=size, samples_us=[1.0, 2.0], tags={"a": "b"})
            for size in range(CELLS)
        ]
        write_launch(root, cells, {"number": number})
    compact(root, timedelta(0), now=datetime(2026, 11, 21, 12, tzinfo=UTC))
    load(root, columns=["value"])
    path = report_path(root, "r")
    path.parent.mkdir()
    path.write_text(json.dumps(REPORT))
    with Journal(root, "r-99", {"run_id": "r", "started_at": "2026-11-21T12:00:00"}) as journal:
        journal.append(make_row(run_id="r", launch_id="r-99", launch_index=99))
    assert list((root / ".index").glob("*.part")) and list(root.rglob("merged-*.parquet"))
    return root


def _pandas(store: Path) -> list[tuple[str, int]]:
    frame = pd.read_parquet(store)
    assert all(len(samples) == 2 for samples in frame["samples_us"])
    return list(zip(frame["launch_id"], frame["size_bytes"], strict=True))


def _duckdb(source: str) -> Callable[[Path], list[tuple[str, int]]]:
    def read(store: Path) -> list[tuple[str, int]]:
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is in the extra dev")
        with duckdb.connect() as database:
            query = f"select launch_id, size_bytes, samples_us from {source.format(store=store)}"
            rows = database.execute(query).fetchall()
        assert all(len(samples) == 2 for _, _, samples in rows)
        return [(launch, size) for launch, size, _ in rows]

    return read


def _polars(pattern: str, **options: str) -> Callable[[Path], list[tuple[str, int]]]:
    def read(store: Path) -> list[tuple[str, int]]:
        polars = pytest.importorskip("polars", reason="Polars is in the extra dev")
        frame = polars.scan_parquet(f"{store}{pattern}", **options).collect()
        assert all(len(samples) == 2 for samples in frame["samples_us"])
        return list(zip(frame["launch_id"], frame["size_bytes"], strict=True))

    return read


READERS = {
    "pandas": _pandas,
    "duckdb, all": _duckdb("'{store}/**/*.parquet'"),
    "duckdb, days": _duckdb("read_parquet('{store}/*/*.parquet', union_by_name = true)"),
    "polars, all": _polars("/**/*.parquet", missing_columns="insert", extra_columns="ignore"),
    "polars, days": _polars("/*/*.parquet"),
}
ROWS = sorted((f"r-{number}", size) for number in range(LAUNCHES) for size in range(CELLS))


@pytest.mark.parametrize("reader", few_quick(READERS, 2))
def test_each_row_is_read_once(reader, store) -> None:
    assert sorted(READERS[reader](store)) == ROWS


@pytest.mark.slow
def test_only_rows_have_the_names_of_rows(store) -> None:
    assert [path for path in store.rglob("*") if path.name.endswith(".json")] == []
    days = {path.parent.name for path in store.rglob("*.parquet")}
    assert days == {"date=2026-11-20", "date=2026-11-21"}
