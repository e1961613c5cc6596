"""Questions to a library in a child process."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends import child


def test_the_child_is_a_world_of_one_whatever_launcher_started_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    of_launchers = "PMI_RANK PALS_RANKID FLUX_JOB_ID MV2_COMM_WORLD_RANK MVP_COMM_WORLD_SIZE SLURM_PROCID OMPI_UNIVERSE"
    of_users = "MV2_USE_CUDA MVP_USE_CUDA OMPI_MCA_pml LD_LIBRARY_PATH"
    for name in f"{of_launchers} {of_users}".split():
        monkeypatch.setenv(name, "1")
    given: list[Any] = []

    def run(words: Any, env: Any, **more: Any) -> Any:
        given.append(env)
        return SimpleNamespace(stdout='noise\nomb-py:{"a": 1}\n', returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    assert child.answer_of("a.module", timeout=1) == {"a": 1}
    assert not given[0].keys() & set(of_launchers.split()) and given[0].keys() >= set(of_users.split())
