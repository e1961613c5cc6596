"""The first run on a GPU (tests/lab/gpu/first_run.py): its steps, and all of it on the simulated device."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omb_py
from omb_py.engine.program.buffers import ON_DEVICE
from tests.lab.gpu import first_run
from tests.lab.gpu.first_run import CALLS, FirstRunStep, Kit, run_steps
from tests.lab.gpu.parts import MODES
from tests.support.machines.standin import library, needs_compiler
from tests.support.optional import needs_torch

OF_NCCL_TESTS = re.compile(r"one rank: \w+_perf of nccl-tests")
"""Steps that need a program of nccl-tests."""


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


@pytest.mark.slow
def test_each_step_is_told_by_how_it_ended_and_the_next_ones_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_run, "LEAST_S", 1.0)
    steps = [
        FirstRunStep("right", 60, python("print('every byte')"), says="every byte"),
        FirstRunStep("wrong", 60, python("import sys; print('NCCL WARN: no peer'); sys.exit(3)")),
        FirstRunStep("silent", 60, python(""), says="every byte"),
        FirstRunStep("refused", 60, python("import sys; sys.exit(3)"), code=3),
        FirstRunStep("elsewhere", 60, python("1/0"), without="no such device"),
        FirstRunStep("hangs", first_run.LEAST_S, python("import time; time.sleep(600)")),
    ]
    assert run_steps(iter(steps), Kit("cuda", tmp_path), 500) == ["wrong", "silent", "hangs"]
    lines = (tmp_path / "summary.txt").read_text().splitlines()
    starts = "ok right|FAILED wrong|FAILED silent|ok refused|left out elsewhere: no such device|FAILED hangs".split("|")
    assert [line.partition(" (")[0] for line in lines] == starts
    assert [line.partition("s) ")[2] for line in lines if line.startswith("FAILED")] == [
        "exit status 3, not 0",
        "it does not say 'every byte'",
        "over its time",
    ]
    assert "NCCL WARN: no peer" in capsys.readouterr().out and "===== wrong" in (tmp_path / "log.txt").read_text()


def test_what_there_is_no_time_for_is_left_out_by_name(tmp_path: Path) -> None:
    seconds = iter([0.0, 1.0, 400.0, 509.0, 510.0])

    def steps() -> Iterator[FirstRunStep]:
        yield FirstRunStep("first", 60, python(""))
        yield FirstRunStep("second", 60, python("1/0"))

    assert run_steps(steps(), Kit("sim", tmp_path), 520, lambda: next(seconds)) == []
    assert (tmp_path / "summary.txt").read_text().splitlines() == ["ok first (399.0 s)", "left out second: no time"]


def test_the_library_of_a_folder_is_named_to_mpi4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPI4PY_LIBMPI", "PATH", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    for file in ("bin/mpiexec", "lib/libmpi.so.12"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch()
    first_run.use_mpi(tmp_path)
    assert os.environ["MPI4PY_LIBMPI"] == str(tmp_path / "lib/libmpi.so.12")
    assert os.environ["PATH"].startswith(f"{tmp_path}/bin") and os.environ["LD_LIBRARY_PATH"].startswith(
        f"{tmp_path}/lib"
    )


@pytest.mark.parametrize("call", CALLS)
def test_no_step_may_take_longer_than_the_whole_and_each_has_a_name(call: int, tmp_path: Path) -> None:
    steps = list(CALLS[call](Kit("cuda", tmp_path)))
    assert len({step.name for step in steps}) == len(steps)
    assert all(first_run.LEAST_S < step.limit_s < first_run.LIMIT_S for step in steps)


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.timeout(3600)  # a minute and a half where nothing else runs
@needs_compiler
@needs_torch
@pytest.mark.parametrize("call", CALLS)
def test_all_steps_are_ok_on_the_simulated_device(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    monkeypatch.setenv("STANDIN_VERSION", "23203")
    monkeypatch.setenv("OMB_PY_SIM_DELAY_US", "50")
    words = ["--device", "sim", "--sizes", "64", "--iterations", "3", "--limit", "3400", "--call", str(call)]
    code = first_run.main([str(tmp_path), *words])
    told = (tmp_path / "summary.txt").read_text()
    assert code == 0, told
    left_out = {line.removeprefix("left out ").rpartition(": ")[0] for line in told.splitlines() if "left out" in line}
    left_out = {name for name in left_out if not OF_NCCL_TESTS.fullmatch(name)}
    assert left_out == ({"doctor"} if call == 1 else set())  # it looks at GPUs
    rows = omb_py.load(tmp_path / "store").to_dict("records")
    assert {row["device"] for row in rows} == {"sim"} and not any(row["wrong_bytes"] for row in rows)
    ways = {(row["backend"], dict(row["parameters"]).get("staging")) for row in rows}
    if call == 2:
        assert ways == {("nccl", None), ("mpi", "staged")}
        assert {row["binding"] for row in rows} == {"native", "mpi4py", "cupy", "nccl4py", "torch"}
        return
    assert ways == {("nccl", None), ("mpi", "staged"), ("mpi", "direct"), ("gloo", "staged")}
    assert {row["timing"] for row in rows} == {"local_max", *MODES}
    assert {row["buffer"] for row in rows if row["backend"] == "mpi" and row["binding"] == "mpi4py"} >= set(ON_DEVICE)
    assert {dict(row["parameters"]).get("placement") for row in rows} == {None, "MD MH", "H D"}
    assert {dict(row["parameters"]).get("filler") for row in rows} == {None, "gpu", "both"}
