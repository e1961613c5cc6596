"""omb-py results import: what is stored, what is said, what is refused."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import omb_py
from omb_py.cli import main
from omb_py.results.dialects import log_files
from omb_py.results.store.read import files, load_table, read_provenance, to_rows
from tests.results.dialects import nccl_texts
from tests.results.dialects.imb_texts import MPI1
from tests.results.dialects.texts import OMB

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """(exit code, stdout, stderr) of ``omb-py results``, in a folder with logs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMB_PY_STORE", "store")
    for name, text in (
        ("allreduce.log", OMB["allreduce -f -c -z"]),
        ("mixed.log", "starting\n" + OMB["bw"] + nccl_texts.FOURTH + MPI1),
        ("notes.txt", "\nhello, world\n1 2 3\n"),
        ("cut.log", OMB["latency"] + OMB["bw"][:-4]),
        ("empty.log", ""),
        ("run.json", nccl_texts.JSON),
    ):
        Path(name).write_text(text)
        os.utime(name, (1_790_000_000, 1_790_000_000))
    Path("binary.log").write_bytes(b"PAR1\0\0\0")

    def call(line: str) -> tuple[int, str, str]:
        code = main(["results", *line.split()])
        return code, *capsys.readouterr()

    return call


def test_a_log_is_stored_with_where_it_comes_from(run: Run) -> None:
    code, out, err = run("import allreduce.log --tag site=a")
    assert (code, err) == (0, "")
    assert out.startswith("allreduce.log: 1 table of OMB 7.5, 1 cell, as import-") and out.endswith(" in store\n")
    [path] = files("store")
    facts = read_provenance(path)["imported"]
    assert (facts["file"], facts["tool"], facts["tool_version"], facts["line"]) == ("allreduce.log", "OMB", "7.5", 2)
    assert len(facts["sha256"]) == 64 and facts["sha256"].startswith(path.stem[7:23])
    [row] = omb_py.load("store").to_dict("records")
    assert (row["source"], row["value"], row["tags"]) == ("OMB", 24.34, {"site": "a"})
    assert str(row["started_at"]).startswith("2026-09-2")
    assert (row["median_us"] != row["median_us"] and row["library"] is None) or row["library"] != row["library"]


def test_importing_twice_is_noticed(run: Run) -> None:
    run("import allreduce.log")
    Path("copy.log").write_text(Path("allreduce.log").read_text())
    code, out, _ = run("import copy.log")
    assert code == 0 and "imported before as import-" in out and "--again" in out
    assert len(files("store")) == 1
    code, out, _ = run("import copy.log --again --set ranks=4")
    assert code == 0 and list(omb_py.load("store")["ranks"]) == [4]


@pytest.mark.slow
def test_imported_runs_are_listed_shown_and_exported(run: Run) -> None:
    run("import mixed.log")
    code, out, _ = run("list")
    assert code == 0 and "import-" in out and "NCCL 2.30.7" in out
    for form in ("osu", "table", "csv", "json"):
        code, out, err = run(f"show last --format {form}")
        assert (code, err) == (0, "") and "2.66" in out
    assert OMB["bw"] in run("show last")[1]
    assert len(json.loads(run("export all --format json --where source=IMB")[1])) == 6


def test_columns_that_the_log_does_not_say(run: Run) -> None:
    code, _, _ = run("import allreduce.log --set ranks=8 --set library_version=5.0.7 --started-at 2026-01-02T03:04")
    [row] = omb_py.load("store").to_dict("records")
    assert code == 0 and (row["ranks"], row["library_version"], row["date"]) == (8, "5.0.7", "2026-01-02")


@pytest.mark.parametrize("source", ["long.log", "-"])
def test_a_text_that_would_fill_the_memory_is_refused(source: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", 1 << 20)
    text = b"8 1.0 " * (1 << 18)
    Path("long.log").write_bytes(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    code, _, err = run(f"import {source}")
    assert code == 2 and "it has more than 1 MiB: split it between two tables" in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import empty.log", "empty.log: an empty file"),
        ("import binary.log", "binary.log: a binary file, not a log"),
        ("import", "FILE"),
        ("import allreduce.log --set rank=4", "a column that describes a launch, not 'rank': did you mean ranks?"),
        ("import allreduce.log --set busbw_gbps=9", "a column that describes a launch, not 'busbw_gbps'"),
        ("import allreduce.log --set environment_key=x", "a column that describes a launch, not 'environment_key'"),
        ("import allreduce.log --set started_at=2026-01-02", "--set started_at=TIME: say --started-at TIME"),
        ("import allreduce.log --set ranks=x", "ranks holds whole numbers of 32 bits, which 'x' is not"),
        ("import allreduce.log --set ranks", "--set takes COLUMN=VALUE"),
        ("import allreduce.log --set dtype=char", "--set dtype=char: line 2 says int32"),
        ("import allreduce.log --benchmark latncy", "--benchmark 'latncy' is unknown: did you mean latency?"),
        ("import allreduce.log --benchmark alreduce_perf", "did you mean all"),
        ("import allreduce.log --started-at noon", "is not a time"),
    ],
)
def test_refusals_leave_nothing(run: Run, line: str, says: str) -> None:
    code, out, err = run(line)
    assert (code, out) == (2, "") and says in err and err.count("\n") == 1
    assert not Path("store").exists() or not files("store")


@pytest.mark.parametrize(
    ("name", "ours"),
    [("osu_latency", "latency"), ("uniband", "uniband"), ("all_reduce", "allreduce"), ("PingPong", "latency")],
)
def test_a_name_of_any_tool_says_what_a_table_without_a_title_measures(run: Run, name: str, ours: str) -> None:
    head = "Bandwidth (MB/s)" if ours == "uniband" else " Avg Latency(us)"
    Path("headless.log").write_text(f"# Size      {head}\n1                       1.25\n2                       1.26\n")
    assert run(f"import headless.log --benchmark {name} --store named")[0] == 0
    assert {row["benchmark"] for row in to_rows(load_table("named"))} == {ours}


def test_good_tables_of_a_damaged_log_are_stored(run: Run) -> None:
    code, out, err = run("import cut.log notes.txt allreduce.log")
    assert code == 2 and "cut.log: 1 table of OMB 7.5, 2 cells" in out and "allreduce.log: 1 table" in out
    assert "cut.log: line 11: row left out: the file ends within the row; 1 table read, 2 cells" in err
    assert "2 of 3 files could not be imported wholly" in err
    assert len(omb_py.load("store")) == 3


def test_a_log_of_time_outs_alone_is_no_success(run: Run) -> None:
    late = re.sub(r"^ +\d.*$", '    16 time-out.; Time limit is over; use "-time X"', MPI1, flags=re.M)
    Path("late.log").write_text(late)
    code, out, err = run("import late.log")
    assert (code, out) == (2, "") and err.endswith("omb-py: error: late.log: no row to import\n")
    assert "time for Uniband was over before its first row" in err and not files("store")


def test_a_damaged_row_in_the_middle_is_no_line_of_something_else(run: Run) -> None:
    rows = OMB["latency"].splitlines(keepends=True)
    Path("bad.log").write_text("".join([*rows[:-1], "2                      4.5x\n"]))
    code, _, err = run("import bad.log")
    assert code == 2 and "line 6: row left out: '4.5x' is not a number with two decimals; 1 table read, 1 cell" in err
    Path("fine.log").write_text("".join([*rows[:-1], "2 warnings\n", rows[-1]]))
    assert run("import fine.log")[0] == 0


def test_secrets_of_a_foreign_file_are_dropped(run: Run) -> None:
    code, out, err = run("import run.json")
    assert code == 0 and "hunter2" not in out + err
    assert all(b"hunter2" not in path.read_bytes() for path in files("store"))


def test_an_import_in_a_merged_file_is_noticed(run: Run) -> None:
    run("import allreduce.log mixed.log --started-at 2026-01-02")
    assert run("compact")[0] == 0
    [path] = files("store")
    assert path.name.startswith("merged-")
    code, out, _ = run("import allreduce.log")
    assert code == 0 and "imported before" in out and files("store") == [path]
    code, _, err = run("import allreduce.log --again")
    assert code == 2 and "lies in a merged file" in err
