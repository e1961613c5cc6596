"""Whatever a row holds comes back: through the journal, through Parquet, and through a journal torn at any byte."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.results.store import schema
from omb_py.results.store.journal import Journal, decode_row, encode_row
from omb_py.results.store.read import load, load_table, read_provenance, to_rows
from omb_py.results.store.recovery import read, recover
from omb_py.results.store.write import write_launch

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(allow_nan=False, width=64)
KINDS: dict[schema.Kind, st.SearchStrategy[Any]] = {
    "string": words,
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": numbers,
    "bool": st.booleans(),
    "time": st.datetimes().map(lambda t: t.replace(year=2026).isoformat() + "+00:00"),
    "floats": st.lists(st.floats(allow_nan=False, width=32), max_size=20),
    "strings": st.lists(words, max_size=4),
    "numbers": st.dictionaries(words, numbers, max_size=3),
    "texts": st.dictionaries(words, words, max_size=3),
}
FIXED = {"run_id": "r1", "launch_id": "r1-0", "launch_index": 0, "started_at": "2026-11-21T12:00:00+00:00"}


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row with any values of the right kinds, and nulls where nulls may be."""
    row = schema.blank_row()
    filled = draw(st.sets(st.sampled_from(schema.COLUMNS), max_size=15))
    for column in schema.COLUMNS:
        if column.required or column in filled:
            row[column.name] = draw(KINDS[column.kind])
    return {**row, **FIXED}


launches = st.lists(rows(), min_size=1, max_size=3)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    """Equal row by row; lists of samples may be arrays."""
    return [plain(row) for row in found] == [plain(row) for row in expected]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: [float(x) for x in v] if k in schema.FLOAT_LISTS and v is not None else v for k, v in row.items()}


@pytest.mark.slow
@given(rows())
@settings(max_examples=60)
def test_a_row_through_the_journals_line(row: dict[str, Any]) -> None:
    assert same([decode_row(encode_row(row))], [row])


@pytest.mark.slow
@given(launches, st.dictionaries(words, words | st.integers()))
@settings(max_examples=40)
def test_rows_through_parquet(launch: list[dict[str, Any]], provenance: dict[str, Any]) -> None:
    with folder() as store:
        path = write_launch(store, launch, provenance)
        assert same(to_rows(load_table(store, columns=schema.NAMES)), launch)
        assert read_provenance(path) == provenance
        frame = load(store)
        assert len(frame) == len(launch)
        assert list(frame.columns) == [*schema.NAMES, "date"]


@pytest.mark.slow
@given(launches)
@settings(max_examples=25)
def test_rows_through_the_journal_into_parquet(launch: list[dict[str, Any]]) -> None:
    with folder() as store:
        with Journal(store, "r1-0", {"run_id": "r1", "provenance": {"a": 1}}) as journal:
            for row in launch:
                journal.append(row)
        [result] = recover(store)
        assert (result.state, result.cells) == ("recovered", len(launch))
        assert same(to_rows(load_table(store, columns=schema.NAMES)), launch)
        assert read_provenance(result.path) == {"a": 1, "recovered": True}
        assert not recover(store)


@pytest.mark.slow
@given(rows(), rows())
@settings(max_examples=2)
def test_a_journal_torn_at_every_byte_keeps_what_was_whole(first: dict[str, Any], second: dict[str, Any]) -> None:
    with folder() as store:
        with Journal(store, "r1-0", {"provenance": {"old": 1}}) as journal:
            journal.append(first)
            journal.provenance({"new": 2})
            journal.append(second)
        whole = journal.path.read_bytes()
        head, row_1, facts, row_2 = (len(line) + 1 for line in whole.split(b"\n")[:-1])
        for cut in range(head, len(whole) + 1):
            torn = store / "torn.jsonl"
            torn.write_bytes(whole[:cut])
            found = read(torn)
            # a line is whole when only its end is missing
            expected = [first] * (cut >= head + row_1 - 1) + [second] * (cut >= head + row_1 + facts + row_2 - 1)
            assert same(found.rows, expected), cut
            assert found.provenance == ({"new": 2} if cut >= head + row_1 + facts - 1 else {"old": 1})
            assert found.damaged == 0


def test_samples_are_single_precision_arrays() -> None:
    row = {**schema.blank_row(), **FIXED, "schema_version": 1, "source": "omb-py", "benchmark": "bw", "backend": "mpi"}
    row.update(metric="latency", unit="us", samples_us=np.array([0.1, 2.5]))
    with folder() as store:
        write_launch(store, [row], {})
        [samples] = load(store)["samples_us"]
    assert samples.dtype == np.float32
    assert samples.tolist() == [float(np.float32(0.1)), 2.5]
