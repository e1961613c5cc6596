"""The summary index gives what the files give, whatever happened to them since it was made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omb_py.results.store import index, read, schema
from omb_py.results.store.compaction import compact
from omb_py.results.store.paths import StoreFile, entries, files
from omb_py.results.store.read import load
from omb_py.results.store.write import write_launch

QUERIES = (
    {},
    {"columns": ["launch_id", "size_bytes", "value", "date"]},
    {"columns": ["launch_id", "value"], "size_bytes": 8},
    {"size_bytes": [4, 8], "benchmark": "bcast"},
    {"columns": ["value", "samples_us"], "value": 3.0},
    {"columns": ["value", "tags", "metrics", "hosts"], "run_id": "r1"},
    {"columns": ["launch_id"], "size_bytes": None},
    {"columns": ["launch_id"], "date": ["2026-11-02", "2026-11-03"], "benchmark": "bcast"},
    {"columns": ["launch_id", "value"], "tags": {"n": "4"}},
    {"tags": {"n": "4"}, "size_bytes": 8},
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small numbers, so that few files show what many would."""
    monkeypatch.setattr(index, "WORTH", 4)
    monkeypatch.setattr(index, "_NEW", 2)
    monkeypatch.setattr(index, "_PARTS", 3)
    monkeypatch.setattr(index, "_BATCH", 3)
    monkeypatch.setattr(index, "_YOUNG_NS", -(10**9))


@pytest.fixture
def add(tmp_path, make_row):
    """Writes launch number n of three cells."""

    def write(number: int, value: float = 0.0) -> Path:
        rows = [
            make_row(
                run_id=f"r{number // 3}",
                launch_id=f"r{number // 3}-{number % 3}",
                launch_index=number % 3,
                started_at=f"2026-11-{1 + number % 4:02d}T12:00:00",
                benchmark=("allreduce", "bcast")[number % 2],
                size_bytes=size,
                value=value or float(number),
                samples_us=[float(number)] * 3,
                tags={"n": str(number)},
                metrics={"x": 1.5},
                hosts=["a", "b"],
            )
            for size in (8, 4, None)
        ]
        return write_launch(tmp_path, rows, {"n": number})

    return write


@pytest.fixture
def store(tmp_path, add) -> Path:
    for number in range(8):
        add(number)
    return tmp_path


def truth(store: Path, monkeypatch, **query) -> pd.DataFrame:
    with monkeypatch.context() as patch:
        patch.setattr(index, "WORTH", 10**9)
        return load(store, on_skip=lambda path, why: None, **query)


def check(store: Path, monkeypatch) -> dict[str, str]:
    """Every query by the index is as from the files; what was skipped."""
    skipped: dict[str, str] = {}
    for query in QUERIES:
        found = load(store, on_skip=lambda path, why: skipped.__setitem__(path.name, why), **query)
        pd.testing.assert_frame_equal(found, truth(store, monkeypatch, **query))
    return skipped


def parts(store: Path) -> list[Path]:
    return sorted((store / ".index").glob("*.part"))


@pytest.mark.slow
def test_gives_what_the_files_give(store, monkeypatch) -> None:
    assert check(store, monkeypatch) == {}
    assert len(parts(store)) == 1
    assert not any(name in schema.FLOAT_LISTS for name in pq.read_schema(parts(store)[0]).names)


def test_answers_without_opening_the_files(store, monkeypatch) -> None:
    wanted = truth(store, monkeypatch, **QUERIES[2])
    load(store, columns=["value"])
    for path in files(store):
        facts = path.stat()
        with path.open("r+b") as handle:  # same size; the index sees a change only in the time of it
            handle.write(b"\xff" * 100)
        monkeypatch.setattr(index, "entries", None, raising=False)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    # told that nothing changed, it does not look
    known = {f[0]: f for part in index._parts(store / ".index") for f in part.files}
    listed = [type(e)(e.path, e.relative, known[e.relative][1], known[e.relative][2]) for e in entries(store)]
    monkeypatch.setattr(read, "entries", lambda root, on_skip: listed)
    pd.testing.assert_frame_equal(load(store, **QUERIES[2]), wanted)


@pytest.mark.slow
def test_notices_new_changed_and_removed_files(store, add, monkeypatch) -> None:
    load(store, columns=["value"])
    add(20)
    check(store, monkeypatch)
    assert len(parts(store)) == 1  # one file is not worth a part
    add(21), add(22)
    check(store, monkeypatch)
    assert len(parts(store)) == 2
    add(3, value=99.0)
    (store / "date=2026-11-02" / "r0-1.parquet").unlink()
    check(store, monkeypatch)
    assert 99.0 in load(store, columns=["value"])["value"].tolist()


@pytest.mark.slow
def test_parts_are_merged(store, add, monkeypatch) -> None:
    for number in range(30, 42, 2):
        add(number), add(number + 1)
        load(store, columns=["value"])
        assert len(parts(store)) <= 5
    check(store, monkeypatch)
    for number in range(30, 42):
        add(number, value=7.5)
    check(store, monkeypatch)
    assert len(parts(store)) <= 5
    total = sum(len(part.files) for part in index._parts(store / ".index"))
    assert total <= 2 * len(files(store))


@pytest.mark.slow
def test_a_torn_part_is_made_anew(store, monkeypatch) -> None:
    load(store, columns=["value"])
    parts(store)[0].write_bytes(b"PAR1 torn")
    (store / ".index" / "00000009-x.tmp").write_bytes(b"left by a kill")
    check(store, monkeypatch)
    assert len(index._parts(store / ".index")) == 1 and not list(store.rglob("*.tmp"))


@pytest.mark.slow
def test_a_damaged_page_of_a_part_does_not_hide_rows(store, monkeypatch) -> None:
    load(store, columns=["value"])
    part = parts(store)[0]
    data = bytearray(part.read_bytes())
    data[4:2000] = b"\xff" * 1996
    part.write_bytes(data)
    assert check(store, monkeypatch) == {}


@pytest.mark.slow
def test_bad_files_are_named_every_time(store, monkeypatch) -> None:
    (store / "junk.parquet").write_bytes(b"junk")
    pq.write_table(pa.table({"a": [1]}), store / "foreign.parquet")
    for _ in range(2):
        skipped = check(store, monkeypatch)
        assert skipped["foreign.parquet"] == "not written by omb-py"
        assert skipped["junk.parquet"].startswith("not a readable Parquet file")


def test_what_another_user_could_not_read_is_read(store, monkeypatch) -> None:
    """The index of a store that several users share is that of whoever read it first."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as other:
        other.setattr(index, "read_excerpt", refuse)
        other.setattr(read, "read_schema", refuse)
        skipped: dict[Path, str] = {}
        assert load(store, on_skip=skipped.__setitem__, columns=["value"]).empty
    assert set(skipped.values()) == {"not a readable Parquet file (permission denied)"}
    assert check(store, monkeypatch) == {}


@pytest.mark.slow
def test_a_store_that_cannot_be_written_is_read_and_that_is_said(store, monkeypatch) -> None:
    (store / ".index").write_text("in the way")
    assert check(store, monkeypatch) == {
        ".index": "no index can be written (a file is in the way, not a folder), so every file is read"
    }


@pytest.mark.slow
def test_a_full_disk(store, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index.os, "fsync", full)
    assert check(store, monkeypatch) == {
        ".index": "no index can be written (no space left on the disk), so every file is read"
    }
    assert list((store / ".index").glob("*.*")) == []


def test_waits_for_another_that_is_indexing(store, monkeypatch) -> None:
    import fcntl

    (store / ".index").mkdir()
    monkeypatch.setattr(index, "_PATIENCE_S", 0.1)
    with (store / ".index" / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        start = time.monotonic()
        load(store, columns=["value"])
        assert time.monotonic() - start >= 0.1
    assert parts(store) == []


@pytest.mark.slow
def test_a_batch_is_bounded_by_its_rows(store, monkeypatch) -> None:
    def held() -> int:
        return pq.read_metadata(parts(store)[0]).num_row_groups

    monkeypatch.setattr(index, "_BATCH", 100)
    check(store, monkeypatch)
    assert held() == 1
    index.discard(store)
    monkeypatch.setattr(index, "_BATCH_ROWS", 6)  # files have three rows
    check(store, monkeypatch)
    assert held() == -(-len(files(store)) // 2)


@pytest.mark.slow
def test_merging_files_leaves_nothing_to_index(store, monkeypatch) -> None:
    assert compact(store, timedelta(0), now=datetime(2026, 12, 1, tzinfo=UTC))
    listed = entries(store)
    assert len(listed) >= index.WORTH
    made = parts(store)
    check(store, monkeypatch)
    assert parts(store) == made and index.refreshed(store, listed, pytest.fail).missing(listed) == []


@pytest.mark.parametrize("merged", [False, True])
def test_a_tag_is_looked_for_before_rows_become_a_table(store, monkeypatch, merged: bool) -> None:
    """Of eight launches one has the tag: no table of more than its three cells is made, by index nor from files."""
    if merged:
        compact(store, timedelta(days=7), now=datetime.now(UTC))
    load(store, columns=["value"])
    made: list[int] = []
    for module, name in ((index, "read"), (read._Reading, "read")):
        whole = getattr(module, name)

        def counted(*args: object, whole=whole, **more: object) -> pa.Table:
            table = whole(*args, **more)
            made.append(table.num_rows)
            return table

        monkeypatch.setattr(module, name, counted)
    for columns in (["value"], ["value", "tags", "metrics"], ["value", "samples_us"]):
        assert len(load(store, columns=columns, tags={"n": "4"})) == 3
    assert made and max(made) <= 3


@pytest.mark.parametrize("indexed", [False, True])
def test_texts_as_dictionaries_are_the_same_texts(store, monkeypatch, indexed: bool) -> None:
    monkeypatch.setattr(index, "WORTH", index.WORTH if indexed else 1000)
    columns = ["launch_id", "benchmark", "library", "value", "date", "tags"]
    for filters in ({}, {"benchmark": "bcast"}, {"launch_id": ["r0-1", "r1-0"]}):
        plain = read.load_table(store, columns=columns, **filters)
        coded = read.load_encoded(store, columns, filters=filters)
        assert pa.types.is_dictionary(coded.schema.field("library").type)
        assert coded.cast(plain.schema).to_pylist() == plain.to_pylist() != []


def test_a_new_file_that_goes_while_it_is_read_is_looked_for_again(store, monkeypatch) -> None:
    """It may have been merged into another: its rows would be lost."""
    (store / ".index").write_text("in the way")
    whole, asked = index._rows_of, []

    def late(listed: list[StoreFile]) -> Iterator[index.Batch]:
        if not asked:
            files(store)[0].unlink()
        asked.append(len(listed))
        return whole(listed)

    monkeypatch.setattr(index, "_rows_of", late)
    assert len(load(store, columns=["value"], on_skip=lambda path, why: None)) == 3 * len(files(store))
    assert asked == [len(files(store)) + 1, len(files(store))]
