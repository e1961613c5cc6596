"""Questions to a library in a child process."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends import child


def test_the_child_is_a_world_of_one_whatever_launcher_started_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    of_launchers = "PMI_RANK PALS_RANKID FLUX_JOB_ID MV2_COMM_WORLD_RANK MVP_COMM_WORLD_SIZE SLURM_PROCID OMPI_UNIVERSE"
    of_users = "MV2_USE_CUDA MVP_USE_CUDA OMPI_MCA_pml LD_LIBRARY_PATH"
    for name in f"{of_launchers} {of_users}".split():
        monkeypatch.setenv(name, "1")
    given: list[Any] = []

    def run(words: Any, env: Any, timeout: float) -> tuple[str, int]:
        given.append(env)
        return 'noise\nomb-py:{"a": 1}\nomb-py:{"b": 2}\n', 0

    monkeypatch.setattr(child, "_run", run)
    assert child.answer_of("a.module", timeout=1) == {"a": 1, "b": 2}
    assert not given[0].keys() & set(of_launchers.split()) and given[0].keys() >= set(of_users.split())


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('omb-py:{\"a\": 1}', flush=True); import os; os.kill(os.getpid(), 9)", {"a": 1, "error": "signal 9"}),
        ("print('omb-py:{\"a\": 1}')", {"a": 1}),
        ("raise SystemExit(4)", {"error": "exit status 4"}),
        ("", {"error": "exit status 0"}),
    ],
)
def test_what_was_answered_before_the_end_counts_and_the_end_is_told(code: str, answer: dict[str, object]) -> None:
    def start(words: child.Words, environ: child.Variables) -> tuple[child.Words, child.Variables]:
        return (sys.executable, "-c", code), environ

    assert child.answer_of("a.module", timeout=60, start=start) == answer


@pytest.mark.slow
def test_one_that_is_over_its_time_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_GRACE_S", 0.1)
    alive = tmp_path / "alive"
    deaf = (
        "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"while True: pathlib.Path({str(alive)!r}).write_text('1'); time.sleep(0.01)"
    )
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}])"

    def start(words: child.Words, environ: child.Variables) -> tuple[child.Words, child.Variables]:
        return (sys.executable, "-c", outer), environ

    assert child.answer_of("a.module", timeout=3, start=start) == {"error": "TimeoutExpired"}
    alive.unlink(missing_ok=True)
    time.sleep(0.2)
    assert not alive.exists()
