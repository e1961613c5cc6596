"""Bandwidths of non-blocking collectives that older versions computed from *overall*, as they are read today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.results.store import index
from omb_py.results.store.read import load_table, to_rows
from omb_py.results.store.write import write_launch

OVERALL = {"benchmark": "iallreduce", "family": "non-blocking", "value": 8.0, "algbw_gbps": 0.5, "busbw_gbps": 0.75}
OLD = {**OVERALL, "bw_formula": "nccl-tests:all_reduce", "metrics": {"pure": 2.0, "overall": 8.0}}
BANDWIDTHS = ("algbw_gbps", "busbw_gbps", "bw_formula")
MENDED = (2.0, 3.0, "nccl-tests:all_reduce:pure")


def read(store: Path, columns: tuple[str, ...] | None = BANDWIDTHS, **filters: Any) -> list[tuple[Any, ...]]:
    rows = to_rows(load_table(store, columns=columns, on_skip=pytest.fail, **filters))
    return [tuple(row[name] for name in columns or BANDWIDTHS) for row in rows]


@pytest.fixture
def store(tmp_path, make_row) -> Path:
    """A blocking, an old and a new non-blocking allreduce, and an old one that does not know its communication."""
    blocking = {**OLD, "benchmark": "allreduce", "family": "collective"}
    new = {**OLD, "bw_formula": "nccl-tests:all_reduce:pure", "algbw_gbps": 2.0, "busbw_gbps": 3.0}
    unknown = {**OLD, "metrics": {"overall": 8.0}}
    rows = [make_row(**row, size_bytes=size) for size, row in enumerate((blocking, OLD, new, unknown), 1)]
    write_launch(tmp_path, rows, {})
    return tmp_path


@pytest.mark.parametrize("columns", [BANDWIDTHS, None])
@pytest.mark.parametrize("indexed", [False, True])
def test_they_are_of_the_communication_alone(store, monkeypatch, columns, indexed) -> None:
    if indexed:
        monkeypatch.setattr(index, "WORTH", 1)
    blocking, old, new, unknown = read(store, columns)
    assert blocking == (0.5, 0.75, "nccl-tests:all_reduce")
    assert old == new == MENDED
    assert unknown == (None, None, None)


def test_one_column_and_a_filter_will_do(store) -> None:
    assert read(store, ("busbw_gbps",), size_bytes=2) == [(3.0,)]
    assert read(store, ("bw_formula", "size_bytes"), benchmark="iallreduce") == [
        (MENDED[2], 2),
        (MENDED[2], 3),
        (None, 4),
    ]
    table = load_table(store, columns=["busbw_gbps"])
    assert table.column_names == ["busbw_gbps"]


def test_a_store_without_bandwidths_is_read_as_it_is(tmp_path, make_row) -> None:
    write_launch(tmp_path, [make_row(benchmark="ibarrier", family="non-blocking", value=3.0)], {})
    assert read(tmp_path) == [(None, None, None)]
