"""The whole check on a real GPU; and on the simulated device, so that the check itself is known to work."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import omb_py
from omb_py.cli import main
from omb_py.cli.commands.benchmark import command, request_of
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.orchestrate.planning.plan import plan
from omb_py.orchestrate.planning.validation import gpu_here
from omb_py.suites.registry import find
from tests.backends.nccl.test_nccl import COLLECTIVES as OF_NCCL
from tests.lab.gpu import check
from tests.lab.gpu.parts import COLLECTIVES, COMMUNICATORS, MODES, POINT_TO_POINT, STAGED, Part, every, parts
from tests.support.c_library import COMPILER
from tests.support.machines.mpi import ROOT
from tests.support.machines.standin import library
from tests.support.optional import needs_torch

SMALL: dict[str, Any] = {"sizes": "64:64", "iterations": 3, "warmup": 1}


@pytest.mark.gpu
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not gpu_here("cuda"), reason="no NVIDIA GPU here")
def test_everything_on_one_gpu(tmp_path: Path) -> None:
    assert check.run_all(check.Check("cuda", tmp_path)) == {}


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.calm
@pytest.mark.timeout(600)  # half a minute where nothing else runs
@pytest.mark.skipif(COMPILER is None, reason="no C compiler for the stand-in libnccl")
@needs_torch
def test_everything_on_the_simulated_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMB_PY_NCCL", str(library()))
    monkeypatch.setenv("OMB_PY_SIM_DELAY_US", "50")
    # of each entry its first and last benchmark: the others are tried where the device is (tests/backends)
    few = [
        replace(
            part,
            suite=tuple(
                {**entry, "benchmarks": entry["benchmarks"][:: len(entry["benchmarks"]) - 1 or 1]}
                for entry in part.suite
            ),
        )
        for part in parts("sim")
    ]
    assert check.run_all(check.Check("sim", tmp_path, **SMALL), few) == {}
    rows = omb_py.load(tmp_path).to_dict("records")
    assert all(row["device"] == "sim" for row in rows)
    unchecked = {row["benchmark"] for row in rows if not row["validated"]}
    assert unchecked == {COMMUNICATORS[0], COMMUNICATORS[-1], "barrier"}
    assert {row["buffer"] for row in rows if row["backend"] == "mpi" and row["binding"] == "mpi4py"} >= set(ON_DEVICE)
    ways = {(row["backend"], dict(row["parameters"]).get("staging")) for row in rows}
    assert ways == {("nccl", None), ("mpi", "staged"), ("mpi", "direct"), ("gloo", "staged")}
    assert {row["timing"] for row in rows} == {"local_max", *MODES}
    assert {row["benchmark"] for row in rows if row["backend"] == "nccl"} >= {COLLECTIVES[0], POINT_TO_POINT[-1]}
    assert {dict(row["parameters"]).get("placement") for row in rows} == {None, "MD MH", "H D"}
    assert {dict(row["parameters"]).get("filler") for row in rows} == {None, "gpu", "both"}
    assert "gloo" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.calm
def test_the_direct_part_fails_where_the_library_takes_no_device_buffers(tmp_path: Path) -> None:
    direct = next(part for part in parts("sim") if part.name == "mpi direct")
    short = tuple({**entry, "benchmarks": entry["benchmarks"][:1]} for entry in direct.suite[:1])
    told = check.Check("sim", tmp_path, **SMALL).run(replace(direct, suite=short, environ=STAGED))
    assert "exit status 3" in told and "--staging never: " in told


def test_what_is_over_its_time_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "GRACE_S", 0.2)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    words = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}])"]
    code, out, _ = check.run_within(0.5, words, dict(os.environ))  # returns when nobody holds its pipes
    assert (code, out) == (None, "")


def test_one_rank_that_hangs_costs_its_own_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "run_within", lambda limit_s, words, variables: (None, "", ""))
    assert check.one_rank("sim", 300) == "not done within 300 s"


def test_parts_share_the_time_and_those_without_any_fail_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds, limits = [0.0], []

    def run(limit_s: float, words: list[str], variables: dict[str, str]) -> tuple[int | None, str, str]:
        limits.append(limit_s)
        seconds[0] += min(40.0, limit_s)
        return (0 if limit_s >= 40 else None), "", ""

    monkeypatch.setattr(check, "run_within", run)
    four = [Part(name, command=("latency",)) for name in ("first", "second", "third", "fourth")]
    budget = check.Budget(limit_s=100, part_limit_s=60, clock=lambda: seconds[0])
    failed = check.run_all(check.Check("sim", tmp_path, budget=budget), four)
    assert limits == [60, 60, 20]
    assert failed == {"third": "not done within 20 s", "fourth": "not begun: the 100 s of --limit were spent"}
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines() if " s" in line]
    assert lines[0] == ["first", "40.0", "s", "ok"] and lines[2] == ["third", "20.0", "s", "FAILED"]
    assert "all parts" in printed and "100.0 s of 100" in printed


def test_numbers_are_not_cut_where_launches_have_nothing_in_common(capsys: pytest.CaptureFixture[str]) -> None:
    sides = [("mpi", "native", "a long text of a library", "gpu"), ("nccl", "nccl4py", "NCCL", "")]
    rows = [
        dict(
            launch_id=f"20261123T061232-10f{number}-0",
            backend=backend,
            binding=binding,
            library=library,
            library_version="2.28.3+cuda13.0.a.b",
            value=12345.678,
            unit="us",
            size_bytes=8,
            parameters={"staging": "staged", "placement": "MD MH"} if filler else {},
        )
        for number, (backend, binding, library, filler) in enumerate(sides)
    ]
    check.print_tables(rows)
    printed = capsys.readouterr().out
    assert printed.count("12345.68") == 2 and "…" not in printed


def test_usual_limits_are_within_eight_minutes() -> None:
    assert check.LIMIT_S + check.GRACE_S < 8 * 60 and check.PART_LIMIT_S < check.LIMIT_S


@pytest.mark.parametrize(("words", "says"), [(["--limit", "0"], "seconds above 0"), (["--warmup", "x"], "from 1 on")])
def test_a_limit_that_is_none_is_refused(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check", *words])
    with pytest.raises(SystemExit) as ended:
        check.main()
    assert ended.value.code == 2 and says in capsys.readouterr().err


def lines_of_docs() -> list[list[str]]:
    """The commands of docs/nccl.md that start the check, as words."""
    text = (ROOT / "docs" / "nccl.md").read_text()
    return [shlex.split(line)[3:] for line in text.splitlines() if line.startswith("python -m tests.lab.gpu.check")]


def test_the_first_run_s_commands_name_parts_that_there_are_and_end_in_time() -> None:
    read = [check.arguments(words) for words in lines_of_docs()]
    assert len(read) == 2 and all(each.limit + check.GRACE_S < 9 * 60 for each in read)
    named = [name for each in read for name in each.part]
    assert sorted(named) == sorted({check.ONE_RANK, *(part.name for part in parts("cuda"))})


def test_one_rank_alone_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(check, "one_rank", lambda device, limit_s: asked.append(device) or "")
    monkeypatch.setattr(check, "mpi_library", lambda: SimpleNamespace(vendor=""))
    monkeypatch.setattr(sys, "argv", ["check", "--store", str(tmp_path), "sim", check.ONE_RANK])
    assert check.main() == 0 and asked == ["sim"]


def test_another_package_of_the_same_name_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").write_text("raise SystemExit('another package')")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))}
    words = [sys.executable, "-m", "tests.lab.gpu.check", "--help"]
    done = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--part-limit" in done.stdout, done.stderr


def test_every_collective_of_nccl_is_in_a_part() -> None:
    lowered = {benchmark for entry in parts("sim")[0].suite for benchmark in entry["benchmarks"]}
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
    for module in ("omb_py.orchestrate.planning.validation", "omb_py.backends.nccl.capabilities"):
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
