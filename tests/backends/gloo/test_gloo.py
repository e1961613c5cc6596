"""Gloo on real processes: one launch a launcher and rank count, many looks at it; then whole runs of the command."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.gloo.capabilities import CAPABILITIES
from omb_py.options.table import usual_cell
from omb_py.suites.registry import BENCHMARKS
from tests.orchestrate.supervision.faultlab import Run
from tests.support.kinds import checkable
from tests.support.machines.mpi import report, run_omb_py, start, torchrun
from tests.support.optional import needs_torch
from tests.support.patient import PATIENT
from tests.support.sessions.gloo_session import ENOUGH

pytestmark = [pytest.mark.mpi, pytest.mark.calm, needs_torch]
LAUNCHES = [("mpiexec", 3), ("torchrun", 2)]
FULL = ("torchrun", 2)
"""Here every option, type and reduction is tried, and a fault in every benchmark."""
NO_MPI = {"MPI4PY_LIBMPI": "/nowhere/libmpi.so"}
"""With this mpi4py finds no MPI library."""


@cache
def told(launcher: str, ranks: int) -> dict[str, Any]:
    """What rank 0 of a launch wrote."""
    few = (launcher, ranks) != FULL
    by = torchrun(ranks) if launcher == "torchrun" else ()
    more = NO_MPI if launcher == "torchrun" else {}
    found: dict[str, Any] = report("tests.support.sessions.gloo_session", ranks, few, by=by, **more)
    return found


@pytest.fixture(
    params=[
        LAUNCHES[0],  # the other shows the other launcher and every option
        *(pytest.param(launch, marks=pytest.mark.slow) for launch in LAUNCHES[1:]),
    ],
    ids=lambda launch: f"{launch[0]}-{launch[1]}",
)
def launch(request: pytest.FixtureRequest) -> tuple[str, int]:
    found: tuple[str, int] = request.param
    return found


def test_what_a_session_says(launch: tuple[str, int]) -> None:
    _, ranks = launch
    for rank, one in enumerate(told(*launch)["facts"]):
        assert (one["rank"], one["size"], one["local"]) == (rank, ranks, [rank])
        assert one["hosts"] == [socket.gethostname()] * ranks
        assert one["library"] == "torch gloo" and one["version"][0].isdigit()
        assert one["binding"] == f"torch {one['version']}"
        assert (one["maximum"], one["total"]) == ([ranks - 1, 1], [sum(range(ranks)), ranks])
        assert one["share"] == "from 0" and one["gather"] == (list(range(ranks)) if rank == 0 else [])
        assert one["hello_us"] > one["init_us"] > 0 and 0 <= one["skew"] < 1e6
        assert one["modules"] == []


@pytest.mark.slow
def test_under_torchrun_no_mpi_is_loaded() -> None:
    assert [one["mpi"] for one in told("torchrun", 2)["facts"]] == [False, False]


def test_every_byte_of_every_benchmark_is_right(launch: tuple[str, int]) -> None:
    right = told(*launch)["right"]
    here = [b for b in BENCHMARKS.values() if b.ranks.admits(launch[1]) and not b.ranks.over_nodes]
    assert set(right) == {b.name for b in here if not CAPABILITIES.lacks(b, usual_cell(b))}
    assert len(right) >= 24
    assert {name: wrong for name, wrong in right.items() if wrong} == {}


def test_one_inverted_byte_is_found(launch: tuple[str, int]) -> None:
    found = told(*launch)["corrupted"]
    every = {name for name in told(*launch)["right"] if checkable(BENCHMARKS[name])}
    assert set(found) == (every if launch == FULL else set(ENOUGH))
    for name, (validated, wrong) in found.items():
        assert validated is False and wrong > 0, name


def test_every_synchronisation_keeps_data_and_counts(launch: tuple[str, int]) -> None:
    for kind, (validated, iterations, skew) in told(*launch)["synchronised"].items():
        assert (validated, iterations) == (True, 5) and skew >= 0, kind


def test_with_rotating_memory_every_copy_is_right(launch: tuple[str, int]) -> None:
    found = told(*launch)["turning"]
    assert len(found) == 4 and set(map(tuple, found.values())) == {(True, 0)}


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


QUICK = ("-m", "8:512:8", "-i", "5", "-x", "1", "-c", "--format", "json")


@pytest.mark.slow
def test_without_any_mpi_torchrun_starts_the_ranks(tmp_path: Path) -> None:
    """Each on a device of its own, also inside a batch step, whose variables name one rank."""
    step = {"SLURM_LOCALID": "0", "OMB_PY_SIM_DEVICES": "2", **NO_MPI}
    words = ("--backend", "gloo", "--device", "sim", "--share-device", "-n", "2", *QUICK, "--store", str(tmp_path))
    found = rows(run_omb_py("allreduce", *words, **step))
    assert [(r["size_bytes"], r["validated"]) for r in found] == [(8, True), (64, True), (512, True)]
    for row in found:
        assert (row["backend"], row["binding"], row["library"]) == ("gloo", "torch", "torch gloo")
        assert row["library_version"] and row["in_place"] is True and row["ranks"] == 2
        assert (row["devices"], row["parameters"]["ranks_per_device"]) == (2, "1")
    (file,) = tmp_path.glob("date=*/*.parquet")
    assert b'"launcher": "torchrun"' in file.read_bytes() or b'"launcher":"torchrun"' in file.read_bytes()


@pytest.mark.slow
@pytest.mark.each_library
def test_inside_mpiexec_each_process_joins() -> None:
    """Inside torchrun: test_training.py."""
    words = [sys.executable, "-m", "omb_py", "alltoallv", "--backend", "gloo", *QUICK, "--no-store"]
    found = rows(start(words, 2))
    assert [(r["size_bytes"], r["validated"], r["backend"]) for r in found] == [
        (8, True, "gloo"),
        (64, True, "gloo"),
        (512, True, "gloo"),
    ]


@pytest.mark.slow
def test_an_interface_that_is_not_there_is_named_with_those_that_are() -> None:
    done = run_omb_py("noise", "--backend", "gloo", "-n", "1", "--no-store", GLOO_SOCKET_IFNAME="nope0")
    assert done.returncode == 3
    line = next(line for line in done.stderr.splitlines() if "error" in line)
    assert "nope0" in line and "interfaces of" in line and " lo" in line
    assert "Traceback" not in done.stderr


LOST = {"mpiexec": (signal.SIGSTOP, "no sign of life"), "torchrun": (signal.SIGKILL, "killed by signal 9")}


@pytest.mark.slow
def test_a_rank_that_is_lost_is_named(tmp_path: Path) -> None:
    """Under either launcher; while the first run waits for its stopped rank, the second loses one."""
    runs = {}
    for launcher, (number, _) in LOST.items():
        (folder := tmp_path / launcher).mkdir()
        words = ("allreduce", "--backend", "gloo", "-n", "2", "--launcher", launcher, "-m", "4:64")
        run = runs[launcher] = Run(folder, *words, "-i", "4:50,0:1000000", "--timeout", "5", program=PATIENT)
        run.wait_for_cells(1)
        run.wait_for("rank 1").kill(number)
    for launcher, run in runs.items():
        code, _, err = run.finish()
        run.assert_no_orphans()
        assert code == 3 and "Traceback" not in err.partition("last words")[0]
        line = next(line for line in err.splitlines() if line.startswith("omb-py: error"))
        assert line.startswith("omb-py: error: rank 1 on ") and LOST[launcher][1] in line, err
