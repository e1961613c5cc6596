"""omb-py results, over a store made by hand."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.cli.commands.results.listing import group
from omb_py.results.store import journal as journal_module
from omb_py.results.store.journal import Journal
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of

Row = dict[str, Any]
Run = Callable[[str], tuple[int, str, str]]


def row(run: str, launch: int, size: int, value: float, **more: Any) -> Row:
    return row_of(
        run,
        launch,
        started_at=f"2026-11-2{run[-1]}T10:00:0{launch}+00:00",
        library="MPICH",
        library_version="5.0",
        binding="native",
        ranks=2,
        size_bytes=size,
        value=value,
        rank_mean_us=[value - 0.5, value + 0.5],
        samples_us=[value, value + 2],
        samples_avg_us=[value, value + 2],
        iterations=2,
        **{"benchmark": "bcast", "family": "collective", "dtype": "char", **more},
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two runs: an older one of two launches, a newer one with a wrong byte."""
    where = tmp_path / "store"
    write_launch(where, [row("run-1", 0, 8, 1.25), row("run-1", 0, 16, 2.5)], {})
    write_launch(where, [row("run-1", 1, 8, 1.75)], {})
    write_launch(where, [row("run-2", 0, 8, 3.0, benchmark="allreduce", dtype="int32", validated=False)], {})
    return where


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """(exit code, stdout, stderr) of ``omb-py results`` over the store."""
    monkeypatch.setenv("OMB_PY_STORE", str(store))

    def call(line: str) -> tuple[int, str, str]:
        code = main(["results", *line.split()])
        return code, *capsys.readouterr()

    return call


def test_list(run: Run) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    first, second = (line.split() for line in out.splitlines() if "run-" in line)
    assert first == ["run-1", "2026-11-21", "10:00:00", "bcast", "mpi", "MPICH", "5.0", "2", "3", "2"]
    assert second == ["run-2", "2026-11-22", "10:00:00", "allreduce", "mpi", "MPICH", "5.0", "2", "1", "1", "1"]


def test_list_json(run: Run) -> None:
    code, out, _ = run("list --format json")
    assert code == 0
    assert [(r["run_id"], r["cells"], r["launches"], r["failed"]) for r in json.loads(out)] == [
        ("run-1", 3, 2, 0),
        ("run-2", 1, 1, 1),
    ]


def test_a_broken_file_is_named_and_the_rest_read(run: Run, store: Path) -> None:
    broken = store / "date=2026-11-21" / "broken.parquet"
    broken.write_bytes(b"PAR1 no")
    code, out, err = run("list")
    assert code == 0 and "run-1" in out and "run-2" in out
    assert err.startswith(f"omb-py: skipped {broken}: ") and err.count("\n") == 1


def test_export_all(run: Run) -> None:
    for line in ("export", "export all"):
        code, out, err = run(line)
        rows = list(csv.DictReader(io.StringIO(out)))
        assert (code, err) == (0, "")
        assert sorted(float(r["value"]) for r in rows) == [1.25, 1.75, 2.5, 3.0]
        assert "samples_us" not in rows[0]


def test_export_some(run: Run) -> None:
    code, out, _ = run("export run-2 --format json")
    (only,) = json.loads(out)
    assert code == 0 and only["samples_us"] == [3.0, 5.0]
    code, out, _ = run("export --where benchmark=bcast --where size_bytes=8 --format json")
    assert sorted(r["value"] for r in json.loads(out)) == [1.25, 1.75]
    for days, values in (
        ("2026-11-21", [1.25, 1.75, 2.5]),
        ("2026-11-22..", [3.0]),
        ("..2026-11-22", [1.25, 1.75, 2.5, 3]),
    ):
        code, out, _ = run(f"export all --where date={days} --format json")
        assert sorted(r["value"] for r in json.loads(out)) == values, days
    code, out, _ = run("export last --format osu")
    assert "Allreduce Latency Test" in out


def test_export_to_a_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    code, out, err = run(f"export last -o {target}")
    assert (code, out) == (0, "") and f"1 rows written to {target}" in err
    assert len(list(csv.DictReader(io.StringIO(target.read_text())))) == 1
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["out.csv"]


@pytest.mark.parametrize("form", ["nccl-tests", "imb"])
def test_an_export_says_what_it_leaves_out(run: Run, store: Path, tmp_path: Path, form: str) -> None:
    write_launch(store, [row("run-3", 0, size, 1.0, benchmark="multi_lat", family="pt2pt") for size in (8, 16)], {})
    code, out, err = run(f"export all --format {form}")
    said = f"omb-py: 2 rows of 6 left out, for which --format {form} has no place: multi_lat (2)\n"
    assert (code, err) == (0, said) and "llreduce" in out.replace("_r", "r")
    target = tmp_path / "out.txt"
    assert f"4 rows written to {target}" in run(f"export all --format {form} -o {target}")[2]
    assert run(f"export run-1 --format {form}")[2] == ""


def test_an_export_without_rows_says_so(run: Run, store: Path) -> None:
    code, out, err = run("export --where benchmark=bw --format json")
    assert (code, json.loads(out)) == (0, [])
    assert err == f"omb-py: no row of {store} matches: look at omb-py results list\n"
    assert run("export --where run_id=run-1")[2] == "", "a run may be named by --where where none is an argument"


def test_recover(run: Run, store: Path) -> None:
    assert run("recover")[:2] == (0, f"nothing to recover in {store}\n")
    journal = Journal(store, "run-3-0", {})
    journal.append(row("run-3", 0, 8, 9.0))
    journal.close()
    assert "omb-py: 1 launch not finished, or ended early: omb-py results recover --store" in run("list")[2]
    code, out, err = run("recover")
    assert (code, err) == (0, "")
    assert out.startswith("recovered: run-3-0, 1 cell, ")
    code, out, err = run("list")
    assert "run-3" in out and err == ""


def test_journals_that_cannot_be_listed(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are another user's."""

    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(journal_module.os, "listdir", refuse)
    problem = f"cannot list '{store}/.journal': permission denied"
    code, out, err = run("list")
    assert (code, err) == (0, f"omb-py: {problem}: whether runs have not ended is not known\n") and "run-1" in out
    assert run("recover") == (3, "", f"omb-py: error: {problem}\n")


def test_recover_says_what_it_cannot_read(run: Run, store: Path) -> None:
    journal = Journal(store, "run-4-0", {})
    journal.append(row("run-4", 0, 8, 9.0))
    journal.close()
    (path,) = (p for p in store.rglob("*") if "run-4" in p.name and p.is_file())
    path.write_bytes(b"no journal\n" + path.read_bytes()[5:])
    code, out, err = run("recover")
    assert code == 3
    assert "unreadable: " in out and "1 of 1 journals could not be recovered" in err
    assert path.exists()


def comparison(store: Path) -> None:
    for launch, side in enumerate(("BASE", "NEW")):
        tags = {"compare_side": side, "compare_look": "1", "site": "alps"}
        write_launch(store, [row("run-7", launch, 8, 1.0, tags=tags)], {})


def test_list_and_show_name_sides_and_tags_of_a_comparison(run: Run, store: Path) -> None:
    comparison(store)
    (line,) = (line for line in run("list")[1].splitlines() if "run-7" in line)
    assert line.rstrip().endswith("BASE and NEW   site=alps")
    (listed,) = (r for r in json.loads(run("list --format json")[1]) if r["run_id"] == "run-7")
    assert (listed["tags"]["compare_side"], listed["tags"]["site"]) == (["BASE", "NEW"], ["alps"])
    heads = [line for line in run("show run-7")[1].splitlines() if line.startswith("# launch")]
    assert heads == ["# launch 1 of 2, side BASE, site=alps", "# launch 2 of 2, side NEW, site=alps"]
    assert "NEW" in run("show run-7 --format table")[1]


@pytest.mark.parametrize("more", ["", " -f", " --format osu", " --format csv"])
def test_a_run_of_links_is_shown_by_its_report(
    more: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f" --store {tmp_path / 'links'}"
    sweep = "links --backend mock -n 4 --mock slow=2:2 --passes 2 -i 10 --windows 2"
    assert main(f"{sweep}{store}".split()) == 1
    printed = capsys.readouterr().out
    assert "4 nodes, 6 links: node2 is slow (" in printed
    code, out, err = run(f"show{more}{store}")
    assert code == 0
    if more:
        assert "node2 is slow" not in out and out.count("\n") > 72
    else:
        assert (out, err) == (printed, "omb-py: --format osu prints its 72 cells\n")


def test_a_search_by_groups_is_shown_as_other_runs(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its report is not made of rows alone."""
    store = f" --store {tmp_path / 'links'}"
    search = "links --backend mock -n 4 --isolate --large 64 --passes 1 -i 10"
    assert main(f"{search}{store}".split()) == 0
    capsys.readouterr()
    code, out, err = run(f"show{store}")
    assert code == 0 and "\n# OSU MPI Allreduce Latency Test v7.5\n" in out and not err


def test_ids_of_runs_are_completed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMB_PY_STORE", str(store))
    verb = group().commands["show"]  # type: ignore[attr-defined]
    ctx = verb.make_context("show", [], resilient_parsing=True)
    (argument,) = (param for param in verb.params if param.name == "run")
    assert [item.value for item in argument.shell_complete(ctx, "run")] == ["run-2", "run-1"]
    assert [item.value for item in argument.shell_complete(ctx, "run-1")] == ["run-1"]
