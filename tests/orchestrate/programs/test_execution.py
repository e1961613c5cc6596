"""One start of a program."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.programs import execution
from omb_py.orchestrate.programs.execution import Execution, run_program
from omb_py.orchestrate.programs.mapped_files import MappedFile, mapped_by
from tests.support.patience import PATIENCE_S


def run(script: str, timeout_s: float = 20.0, out: Path | None = None) -> Execution:
    return run_program(["/bin/sh", "-c", script], os.environ, timeout_s, out)


def test_output_ending_and_time_are_told() -> None:
    ended = run("echo one; echo two >&2; exit 3")
    assert (ended.output, ended.errors, ended.status, ended.stopped) == (b"one\n", b"two\n", 3, "")
    assert ended.ending == "exit code 3"
    assert ended.last_line == "two"
    assert ended.seconds > 0
    assert ended.peak_bytes > 0


def test_a_signal_is_named() -> None:
    assert run("kill -9 $$").ending == "signal SIGKILL"
    assert run("sh -c 'kill -11 $$'; exit $?").ending == f"exit code {128 + signal.SIGSEGV} (signal SIGSEGV)"


def test_a_program_that_prints_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_BYTES", 1 << 20)
    ended = run("yes")
    assert ended.stopped == "it printed more than 1 MiB"
    assert len(ended.output) == 1 << 20


PYTHON = Path(os.path.realpath(sys.executable)).name


@pytest.fixture
def until_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The code of a program that runs until a look has found Python and the C library in it."""
    seen = tmp_path / "seen"

    def look(pids: Iterable[int]) -> set[MappedFile]:
        files = mapped_by(pids)
        names = {file.name for file in files}
        if PYTHON in names and any(name.startswith("libc") for name in names):
            seen.touch()
        return files

    monkeypatch.setattr(execution, "mapped_by", look)
    return f'import os, time\nwhile not os.path.exists("{seen}"): time.sleep(0.01)'


def test_what_runs_is_seen(until_seen: str) -> None:
    ended = run_program([sys.executable, "-I", "-S", "-c", until_seen], os.environ, PATIENCE_S)
    names = {file.name for file in ended.files}
    assert PYTHON in names and any(name.startswith("libc") for name in names)


def test_the_processes_that_a_program_starts_are_seen(until_seen: str) -> None:
    ended = run(f"{sys.executable} -I -S -c '{until_seen}'; true", PATIENCE_S)
    assert PYTHON in {file.name for file in ended.files}


def test_a_file_is_read_in_place_of_the_output(tmp_path: Path) -> None:
    assert run(f"echo printed; echo written > {tmp_path}/f", out=tmp_path / "f").output == b"written\n"
    assert run("echo printed", out=tmp_path / "none").output == b""


def test_what_cannot_be_started_is_named() -> None:
    with pytest.raises(EnvironmentProblem, match="cannot start /nowhere/app: No such file"):
        run_program(["/nowhere/app"], os.environ, 1.0)
