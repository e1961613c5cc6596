"""What computes beside a bench ends with it."""

from __future__ import annotations

import subprocess

import pytest

from tests.bench.computing import beside


def test_what_computes_beside_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words: started.append(start(words)) or started[-1])
    with beside(2):
        assert [process.poll() for process in started] == [None, None]
    assert [process.returncode for process in started] == [-9, -9]
