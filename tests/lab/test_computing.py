"""What computes beside a bench ends with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.computing import beside


def test_what_computes_beside_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words: started.append(start(words)) or started[-1])
    with beside(2):
        assert [process.poll() for process in started] == [None, None]
    assert [process.returncode for process in started] == [-9, -9]


def test_what_computes_ends_with_a_bench_that_is_killed() -> None:
    bench = "from tests.lab.computing import beside\nwith beside(2): print('computing', flush=True), input()"
    pipe, root = subprocess.PIPE, Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", bench], stdin=pipe, stdout=pipe, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"computing\n"
        process.kill()
        assert process.stdout.read() == b""  # it ends when no process has the pipe any more
