"""The whole check on a real GPU, and the parts of which it is made. CI runs all of them on the simulated device."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.cli.commands.benchmark import command, request_of
from omb_py.orchestrate.planning.availability import gpu_here
from omb_py.suites.registry import find
from tests.backends.nccl.test_nccl import COLLECTIVES as OF_NCCL
from tests.lab.gpu import check, processes
from tests.lab.gpu.parts import STAGED, Part, every, parts
from tests.support.planning import plan

SMALL: dict[str, Any] = {"sizes": "64:64", "iterations": 3, "warmup": 1}


@pytest.mark.gpu
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not gpu_here("cuda"), reason="no NVIDIA GPU here")
def test_everything_on_one_gpu(tmp_path: Path) -> None:
    assert check.run_all(check.Check("cuda", tmp_path)) == {}


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.calm
def test_the_direct_part_fails_where_the_library_takes_no_device_buffers(tmp_path: Path) -> None:
    direct = next(part for part in parts("sim") if part.name == "mpi direct")
    short = tuple({**entry, "benchmarks": entry["benchmarks"][:1]} for entry in direct.suite[:1])
    told = check.Check("sim", tmp_path, **SMALL).run(replace(direct, suite=short, environ=STAGED))
    assert "exit status 3" in told and "--staging never: " in told


def test_what_is_over_its_time_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    words = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}])"]
    code, out, _ = processes.run_within(0.5, words, dict(os.environ))  # returns when nobody holds its pipes
    assert (code, out) == (None, "")


def test_every_collective_of_nccl_is_in_a_part() -> None:
    lowered = {benchmark for entry in parts("cuda")[0].suite for benchmark in entry["benchmarks"]}
    assert lowered >= {*OF_NCCL, "barrier"}


def test_what_fails_is_named_and_what_does_not_apply_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "one_rank", lambda device, limit_s: "")
    there = Part(
        "mock",
        (every("allreduce", device="cpu", share_device=False), every("latency", device="cpu", share_device=False)),
    )
    gone = Part("nccl", (every("allreduce"),))
    other = Part("mpi direct", (every("bcast"),), mpi="a library that nobody has")
    failed = check.run_all(check.Check("cuda", tmp_path, **SMALL), [there, gone, other])
    assert list(failed) == ["nccl"] and "exit status" in failed["nccl"]
    told = capsys.readouterr().out
    assert "left out: mpi direct: the MPI library is " in told and "allreduce" in told and "latency" in told


@pytest.mark.parametrize("number", range(len(parts("sim"))))
def test_every_word_of_every_part_is_right(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("omb_py.orchestrate.planning.side_rules", "omb_py.backends.nccl.capabilities"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: True)
    words = check.Check("sim", tmp_path).words(parts("sim")[number])
    if words[0] != "run":
        name, *more = words
        with command(find(name)).make_context(name, more) as context:
            assert plan(request_of(find(name), dict(context.params)), 2)
        return
    assert main(["suite", "show", words[1]]) == 0
    told = capsys.readouterr().out
    assert "skipped" not in told and all(
        name in told for entry in parts("sim")[number].suite for name in entry["benchmarks"]
    )


@pytest.mark.parametrize("device", ["sim", "cuda", "rocm"])
def test_every_part_has_its_own_name_and_one_way_to_run(device: str) -> None:
    all_parts = parts(device)
    assert len({part.name for part in all_parts}) == len(all_parts)
    assert all(bool(part.suite) != bool(part.command) for part in all_parts)
