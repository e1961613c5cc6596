"""Whole suites on simulated ranks: printed, stored under one run, gone on with after a kill, and the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.mock.session import MockSession
from omb_py.backends.mock.simulator import lower
from omb_py.cli.suite_options import CommandLine
from omb_py.engine.program.requirements import types_of
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import NEWEST
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.running.run import new_run
from omb_py.orchestrate.running.suite_run import ranks_here, remaining_launches, run_suite
from omb_py.orchestrate.suites.expand import Expanded, Ranks, expand
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.compare.tags import SUITE_CELL
from omb_py.results.store.read import load
from tests.orchestrate.running.test_joined_run import under_mpiexec
from tests.support.machines.mpi import ROOT, run_command

HEAD = 'name = "mine"\ndescription = "d"\n[defaults]\nbackend = "mock"\niterations = 5\n'
TWO = (
    HEAD
    + """
[[entry]]
benchmarks = ["latency", "bcast"]
message-size = "8:32"
[[entry]]
benchmarks = ["allreduce"]
message-size = "8:16"
full = true
"""
)


def suite(text: str, store: Path, ranks: Ranks | None = None, **given: Any) -> Expanded:
    return expand(parse_suite(text, "f.toml"), CommandLine(), {"quiet": True, "store": store, **given}, ranks)


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def test_tables_one_after_the_other_and_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_suite(suite(TWO, tmp_path)) == 0
    out, err = capsys.readouterr()
    titles = [line for line in out.splitlines() if line.startswith("# OSU")]
    assert [title.split()[3] for title in titles] == ["Latency", "Broadcast", "Allreduce"]
    assert [len(row) for row in rows_of(out)] == [2] * 6 + [5] * 2, "-f is for the second entry alone"
    assert err == ""
    frame = load(tmp_path)
    assert frame["run_id"].nunique() == 1 and frame["launch_id"].nunique() == 1
    assert list(zip(frame["benchmark"], frame["size_bytes"], strict=True)) == [
        (name, size)
        for name, sizes in (("latency", (8, 16, 32)), ("bcast", (8, 16, 32)), ("allreduce", (8, 16)))
        for size in sizes
    ]
    assert {tags["suite"] for tags in frame["tags"]} == {"mine"}
    assert len({tags[SUITE_CELL] for tags in frame["tags"]}) == 8, "every cell has a name of its own"


def test_what_differs_is_printed_above_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HEAD + '[[entry]]\nbenchmarks = ["bw"]\nwindow-size = [2, 4]\nmessage-size = "8:8"\n'
    assert run_suite(suite(text, tmp_path)) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^# OSU MPI Bandwidth Test v7.5\n# \[ backend: mock .+\n(# .+ ])$", out, re.M) == [
        "# [ window-size: 2 ]",
        "# [ window-size: 4 ]",
    ]


def test_other_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_suite(suite(TWO, tmp_path, format="json")) == 0
    assert Counter(row["benchmark"] for row in json.loads(capsys.readouterr().out)) == {
        "latency": 3,
        "bcast": 3,
        "allreduce": 2,
    }
    assert run_suite(suite(TWO, tmp_path, format="table")) == 0
    out = capsys.readouterr().out
    assert [out.count(f"{name} · mock") for name in ("latency", "bcast", "allreduce")] == [1, 1, 1]


@pytest.mark.slow
def test_a_failed_validation_ends_its_sweep_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TWO.replace("iterations = 5", 'iterations = 5\nvalidation = true\nlaunches = 2\nmock = "flip=1:16"')
    assert run_suite(suite(text, tmp_path)) == 1
    frame = load(tmp_path)
    first = frame[frame["launch_index"] == 0]
    assert first[first["benchmark"] == "bcast"]["validated"].tolist() == [True, False]
    assert first["benchmark"].tolist() == ["latency"] * 2 + ["bcast"] * 2 + ["allreduce"] * 2
    assert (frame["launch_index"] == 1).sum() == 0, "a sweep that failed is not begun again"
    assert capsys.readouterr().out.count("DATA VALIDATION ERROR") == 3


def test_a_benchmark_that_the_library_lacks_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower, "_CODES", {k: v for k, v in lower._CODES.items() if k != "bcast"})
    assert run_suite(suite(TWO, tmp_path)) == 0
    out, err = capsys.readouterr()
    assert err.startswith("omb-py: skipped: bcast: mock cannot simulate the step 'bcast'") and err.count("\n") == 1
    assert "Broadcast" not in out
    frame = load(tmp_path)
    assert frame["benchmark"].tolist() == ["latency"] * 3 + ["allreduce"] * 2
    assert sorted(frame["launch_index"].unique()) == [0, 1], "the rest in a launch of its own"


def test_a_hang_is_a_failure_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TWO.replace("iterations = 5", 'iterations = 5\nmock = "hang=1:32"')
    assert run_suite(suite(text, tmp_path)) == 3
    err = capsys.readouterr().err
    assert "omb-py: failed: latency: " in err and "omb-py: failed: bcast: " in err
    frame = load(tmp_path)
    assert list(zip(frame["benchmark"], frame["size_bytes"], strict=True)) == [
        ("latency", 8),
        ("latency", 16),
        ("bcast", 8),
        ("bcast", 16),
        ("allreduce", 8),
        ("allreduce", 16),
    ]


def test_want_of_memory_is_found_sweep_by_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_suite(suite(TWO.replace("8:16", "8,1T"), tmp_path)) == 0
    assert "omb-py: skipped: allreduce: the largest message needs " in capsys.readouterr().err
    assert set(load(tmp_path)["benchmark"]) == {"latency", "bcast"}


def test_nothing_can_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    with pytest.raises(EnvironmentProblem, match="nothing of this suite can be measured here"):
        run_suite(suite(HEAD + '[[entry]]\nbenchmarks = ["latency", "bw"]\n', tmp_path, Ranks(3, 3, given=True)))
    assert "skipped: latency: latency needs exactly 2 ranks, not 3" in capsys.readouterr().err
    monkeypatch.setattr(lower, "_CODES", {})
    with pytest.raises(EnvironmentProblem, match="nothing of this suite"):
        run_suite(suite(TWO, tmp_path))
    assert "skipped: latency: mock cannot simulate the step 'send'" in capsys.readouterr().err


def test_a_full_disk_ends_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from omb_py.results.store import journal

    def full(*arguments: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(journal.os, "fsync", full)
    with pytest.raises(EnvironmentProblem, match="no space left"):
        run_suite(suite(TWO, tmp_path))


DIES = """
import os, signal
from omb_py.__main__ import main
from omb_py.results.store.journal import Journal

def append(self, row):
    real(self, row)
    rows.append(row)
    if len(rows) == 18:
        os.kill(os.getpid(), signal.SIGKILL)

real, rows, Journal.append = Journal.append, [], append
main()
"""
"""A run that is killed in its second launch, when half of it is in the journal."""


def cells(store: Path) -> Counter[str]:
    return Counter(tags[SUITE_CELL] for tags in load(store)["tags"])


@pytest.mark.slow
def test_a_killed_run_is_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real kill; then nothing is lost, nothing measured twice, and all under one run."""
    text = HEAD + '[[entry]]\nbenchmarks = ["allreduce", "bcast", "allgather"]\nranks = [2, 3, 4]\n'
    text += 'message-size = "8:16K"\n'
    text = text.replace("iterations = 5", "iterations = 200")
    file, store = tmp_path / "mine.toml", tmp_path / "store"
    file.write_text(text)
    victim = run_command([sys.executable, "-c", DIES, "run", str(file), "--store", str(store), "--quiet"], cwd=ROOT)
    assert victim.returncode == -signal.SIGKILL, victim.stderr

    wanted = sum(len(launch.cells) for launch in plan_launches(suite(text, store).checked))
    assert run_suite(suite(text, store), NEWEST) == 0
    found = cells(store)
    assert len(found) == wanted and set(found.values()) == {1}
    frame = load(store)
    assert frame["run_id"].nunique() == 1
    assert frame.groupby("launch_id")["launch_index"].nunique().tolist() == [1] * frame["launch_id"].nunique()
    capsys.readouterr()
    assert run_suite(suite(text, store, quiet=False), NEWEST) == 0
    out, err = capsys.readouterr()
    assert out == "" and f"{wanted} of {wanted} cells are in the store, 0 are left" in err
    assert cells(store) == found


@pytest.mark.slow
def test_only_the_same_suite_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run 'x': there is no store"):
        run_suite(suite(TWO, tmp_path / "none"), "x")
    assert run_suite(suite(TWO, tmp_path), NEWEST) == 0, "nothing to go on with: a new run"
    (run_id,) = set(load(tmp_path)["run_id"])
    with pytest.raises(UsageError, match=f"run {run_id} was begun by another version of suite mine"):
        run_suite(suite(TWO.replace("8:32", "8:64"), tmp_path), run_id)
    with pytest.raises(UsageError, match=f"run {run_id} is not one of suite yours"):
        run_suite(suite(TWO.replace("mine", "yours"), tmp_path), run_id[:8])
    with pytest.raises(UsageError, match="no run 'x'"):
        run_suite(suite(TWO, tmp_path), "x")
    assert run_suite(suite(TWO.replace("8:32", "8:64"), tmp_path), NEWEST) == 0
    assert load(tmp_path)["run_id"].nunique() == 2


@pytest.mark.slow
def test_a_cell_of_other_options_is_measured_again(tmp_path: Path) -> None:
    assert run_suite(suite(TWO, tmp_path)) == 0
    assert run_suite(suite(TWO, tmp_path, buffer="bytearray"), NEWEST) == 0
    frame = load(tmp_path)
    assert frame["run_id"].nunique() == 1 and Counter(frame["buffer"]) == {"numpy": 8, "bytearray": 8}


@pytest.mark.slow
def test_a_failed_sweep_stays_failed(tmp_path: Path) -> None:
    text = TWO.replace("iterations = 5", 'iterations = 5\nvalidation = true\nmock = "flip=1:16"')
    assert run_suite(suite(text, tmp_path)) == 1
    before = cells(tmp_path)
    assert run_suite(suite(text, tmp_path), NEWEST) == 1
    assert cells(tmp_path) == before


@pytest.mark.slow
def test_every_turn_has_cells_of_its_own(tmp_path: Path) -> None:
    text = TWO.replace("iterations = 5", "iterations = 5\nlaunches = 3")
    assert run_suite(suite(text, tmp_path)) == 0
    assert len(cells(tmp_path)) == 24


def test_a_running_run_is_left_alone(tmp_path: Path) -> None:
    from omb_py.results.store.journal import Journal

    assert run_suite(suite(TWO, tmp_path)) == 0
    (run_id,) = set(load(tmp_path)["run_id"])
    # another process holds a journal of this run
    held = Journal(tmp_path, f"{run_id}-7", {"run_id": run_id, "started_at": "2026-01-01T00:00:00+00:00"})
    with held, pytest.raises(UsageError, match=f"run {run_id} is still running"):
        run_suite(suite(TWO, tmp_path), NEWEST)


@pytest.mark.parametrize(
    ("given", "environ", "wanted"),
    [
        (None, {"SLURM_NTASKS": "64"}, Ranks(2, 64)),
        (8, {"SLURM_NTASKS": "64"}, Ranks(8, 8, given=True)),
        (None, {"PMI_RANK": "1", "PMI_SIZE": "6"}, Ranks(6, 6, given=True, only=True)),
        (6, {"PMI_RANK": "1", "PMI_SIZE": "6"}, Ranks(6, 6, given=True, only=True)),
    ],
)
def test_how_many_ranks(given: int | None, environ: Mapping[str, str], wanted: Ranks) -> None:
    assert ranks_here(given, environ) == wanted


def test_how_many_ranks_on_this_machine() -> None:
    here = ranks_here(None, {})
    assert here.usual == 2 and here.most >= 2 and not here.given
    with pytest.raises(UsageError, match=r"-n 4, but mpiexec .* started 6 ranks: leave -n out"):
        ranks_here(4, {"PMI_RANK": "1", "PMI_SIZE": "6"})
    with pytest.raises(UsageError, match="a PMIx launcher does not say how many ranks it started: add -n N"):
        ranks_here(None, {"PMIX_RANK": "1"})
    assert ranks_here(4, {"PMIX_RANK": "1"}).usual == 4


def test_ranks_that_never_began_are_given_up_together(tmp_path: Path) -> None:
    expanded = suite(TWO, tmp_path)
    requests = expanded.requests
    (launch,) = plan_launches(expanded.checked)
    run = new_run(requests[0], [launch])
    rest, skips = remaining_launches(EnvironmentProblem("no mpiexec"), launch, run)
    assert rest == [] and [(skip.what, skip.failed) for skip in skips] == [
        ("latency", False),
        ("bcast", False),
        ("allreduce", False),
    ]


REAL = """name = "real"
description = "d"
[defaults]
iterations = 20
message-size = "8:16"
validation = true
[[entry]]
benchmarks = ["latency", "allreduce"]
ranks = 2
[[entry]]
benchmarks = ["bcast"]
ranks = 2
binding = "mpi4py"
[[entry]]
benchmarks = ["barrier"]
ranks = 3
validation = false
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_real_ranks_in_three_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Started by omb-py, and gone on with although nothing is left."""
    found = expand(parse_suite(REAL, "f.toml"), CommandLine(), {"store": tmp_path})
    assert run_suite(found) == 0
    out, err = capsys.readouterr()
    assert out.count("Pass") == 6 and out.count("# OSU MPI ") == 4, "each benchmark has one binding: OMB's text"
    assert [line.partition(": ")[2] for line in err.splitlines() if "launch " in line] == [
        "launch 1: mpi, native binding, 2 ranks, 4 cells",
        "launch 2: mpi, mpi4py binding, 2 ranks, 2 cells",
        "launch 3: mpi, native binding, 3 ranks, 1 cell",
    ]
    frame = load(tmp_path)
    assert frame["launch_index"].tolist() == [0] * 4 + [1] * 2 + [2]
    assert frame["validated"].tolist()[:6] == [True] * 6
    assert run_suite(found, NEWEST) == 0
    assert "7 of 7 cells are in the store" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.mpi
def test_inside_a_foreign_launcher(tmp_path: Path) -> None:
    """What fits the job is measured, the rest is skipped; --resume there, and its refusal on all ranks."""
    (tmp_path / "real.toml").write_text(REAL)
    words = ("run", str(tmp_path / "real.toml"), "--store", str(tmp_path / "store"))
    told = under_mpiexec(2, *words)
    assert told.returncode == 0, told.stderr
    assert [told.stdout.count(f"# OSU MPI {name}") for name in ("Latency", "Allreduce", "Broadcast", "Barrier")] == [
        1,
        1,
        0,
        0,
    ]
    skipped = [line for line in told.stderr.splitlines() if "skipped: " in line]
    assert skipped == [
        "omb-py: skipped: barrier: it is to be measured on 3 ranks, and this job has 2",
        "omb-py: skipped: bcast (mpi at thread level multiple): this job was started once, for mpi at thread level "
        "funneled; let omb-py start the ranks to have both",
    ]
    again = under_mpiexec(2, *words, "--resume")
    assert again.returncode == 0 and "4 of 4 cells are in the store, 0 are left" in again.stderr, again.stderr
    assert load(tmp_path / "store")["run_id"].nunique() == 1
    refused = under_mpiexec(2, *words, "--resume=nothing")
    assert refused.returncode != 0 and refused.stderr.count("no run 'nothing'") == 1, refused.stderr


LACKING = """
[[entry]]
benchmarks = ["step"]
workload = ["kmeans", "decode:layers=2", "kmeans:clusters=8", "pca:dtype=bfloat16"]
"""


def test_cells_of_a_type_that_the_library_lacks_are_left_out_of_their_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others share one launch with them: it is not started again."""

    def lacks(session: Any, programs: Any) -> str:
        return "no bfloat16 here: use float32" if any("bfloat16" in types_of(each) for each in programs) else ""

    monkeypatch.setattr(MockSession, "lacks", lacks)
    assert run_suite(suite(HEAD + LACKING, tmp_path)) == 0
    out, err = capsys.readouterr()
    said = "omb-py: skipped: step (workload: decode:layers=2), step (workload: pca:dtype=bfloat16): no bfloat16 here"
    assert said in err and err.count("skipped") == 1
    frame = load(tmp_path)
    assert set(frame["launch_index"]) == {0}
    assert [p["workload"] for p in frame["parameters"]] == ["kmeans", "kmeans:clusters=8"]
    assert "[ workload: decode" not in out


NODES = """
[[entry]]
benchmarks = ["latency", "bw_fan_in", "bcast"]
message-size = "8"
"""


def test_a_benchmark_that_needs_more_nodes_is_left_out_of_its_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_suite(suite(HEAD + NODES, tmp_path)) == 0
    err = capsys.readouterr().err
    assert "skipped: bw_fan_in: bw_fan_in needs several nodes" in err and err.count("skipped") == 1
    frame = load(tmp_path)
    assert frame["benchmark"].tolist() == ["latency", "bcast"] and set(frame["launch_index"]) == {0}


def test_a_suite_of_which_the_library_can_do_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockSession, "lacks", lambda session, programs: "nothing here")
    with pytest.raises(EnvironmentProblem, match="nothing of this suite can be measured here"):
        run_suite(suite(HEAD + LACKING, tmp_path))
