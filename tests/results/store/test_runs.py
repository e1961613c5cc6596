from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from omb_py.errors import UsageError
from omb_py.results.store.journal import RunLock
from omb_py.results.store.runs import RunSummary, find_run, runs, show
from omb_py.results.store.schema import BY_NAME, arrow_type
from omb_py.results.store.write import write_launch


@pytest.fixture
def store(tmp_path, make_row) -> Path:
    def launch(run_id: str, index: int, started: str, **values: object) -> None:
        common = {"run_id": run_id, "launch_id": f"{run_id}-{index}", "launch_index": index, "started_at": started}
        rows = [
            make_row(**{**common, "ranks": 2, "library": "MPICH", "library_version": "5.0", **values, "size_bytes": n})
            for n in (8, 4)
        ]
        write_launch(tmp_path, rows, {})

    launch("bcd", 0, "2026-11-22T10:00:00+00:00", benchmark="bw", validated=False)
    for index in range(12):
        launch("abc", index, f"2026-11-21T10:{index:02}:00+00:00", binding="native" if index % 2 else "mpi4py")
    launch("abd", 0, "2026-11-20T10:00:00+00:00", backend="mock", library=None, library_version=None)
    return tmp_path


def test_runs_are_one_line_each_oldest_first(store) -> None:
    assert runs(store) == [
        RunSummary("abd", "2026-11-20T10:00:00+00:00", ("allreduce",), ("mock",), (), (2,), 2, 1, 0),
        RunSummary("abc", "2026-11-21T10:00:00+00:00", ("allreduce",), ("mpi",), ("MPICH 5.0",), (2,), 24, 12, 0),
        RunSummary("bcd", "2026-11-22T10:00:00+00:00", ("bw",), ("mpi",), ("MPICH 5.0",), (2,), 2, 1, 2),
    ]


def test_a_run_that_ended_early_is_marked(store) -> None:
    RunLock(store, "abc").ended_early("interrupted")
    assert {run.run_id: run.state for run in runs(store)} == {"abd": None, "abc": "interrupted", "bcd": None}


def test_benchmarks_are_listed_as_they_were_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand runs Arrow gives the benchmarks of some thirty in another order, by the hashes of their ids."""
    names = ("allreduce", "latency", "bcast")
    listed = {"backend": "mpi", "library": None, "library_version": None, "ranks": 2, "validated": None, "tags": {}}
    rows = [
        {**listed, "run_id": f"r{n}", "launch_id": f"r{n}-0", "started_at": datetime(2026, 11, 21), "benchmark": name}
        for n in range(1000)
        for name in names
    ]
    table = pa.Table.from_pylist(rows, pa.schema([(name, arrow_type(BY_NAME[name].kind)) for name in rows[0]]))
    monkeypatch.setattr("omb_py.results.store.runs.load_table", lambda store, **kwargs: table)
    assert {run.benchmarks for run in runs("s")} == {names}


@pytest.mark.parametrize(("which", "run_id"), [("abc", "abc"), ("b", "bcd"), ("abd", "abd"), ("last", "bcd")])
def test_a_run_is_found_by_id_prefix_or_last(store, which: str, run_id: str) -> None:
    assert find_run(store, which) == run_id


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("ab", "2 runs start with 'ab': abd, abc"),
        ("abx", "no run 'abx' in .*: did you mean ab[cd]"),
        ("", "a run is its id, the beginning of it, or last"),
    ],
)
def test_another_is_refused(store, which: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        show(store, which)


@pytest.mark.slow
def test_show_gives_rows_in_order_of_launch_and_as_measured(store) -> None:
    rows = show(store, "abc")
    assert [row["launch_index"] for row in rows] == [index for index in range(12) for _ in (0, 1)]
    assert [row["size_bytes"] for row in rows[:2]] == [8, 4]
    assert rows[0]["started_at"] == "2026-11-21T10:00:00+00:00"


def test_skipped_files_are_told_once(store) -> None:
    (store / "junk.parquet").write_bytes(b"junk")
    found: list[Path] = []
    assert len(show(store, "abd", on_skip=lambda path, why: found.append(path))) == 2
    assert found == [store / "junk.parquet"]
