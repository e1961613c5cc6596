"""Forked children sleep, hold no files, and never outlive the process that forked them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from omb_py.engine.rank.lifetime import Children
from tests.support.patience import PATIENCE_S

RANK = SimpleNamespace(local=(0,))
_KILLED = """
import sys, time
from types import SimpleNamespace
from omb_py.engine.rank.lifetime import Children
made = Children(2)
made.start(SimpleNamespace(local=(0,)))
print(*made.pids, flush=True)
time.sleep(600)
"""


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def eventually(pids: list[int], wanted: str) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if all(state(pid) in wanted for pid in pids):
            return True
        time.sleep(0.01)
    return False


def test_they_sleep_without_files_until_they_are_ended() -> None:
    children = Children(3)
    children.start(RANK)
    try:
        pids = list(children.pids)
        assert len(set(pids)) == 3 and eventually(pids, "S")
        deadline = time.monotonic() + PATIENCE_S
        while any(os.listdir(f"/proc/{pid}/fd") for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [os.listdir(f"/proc/{pid}/fd") for pid in pids] == [[], [], []]
    finally:
        children.end(RANK)
    assert children.pids == [] and [state(pid) for pid in pids] == ["gone"] * 3


def test_they_die_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _KILLED], stdout=subprocess.PIPE, text=True) as rank:
        assert rank.stdout is not None
        pids = [int(word) for word in rank.stdout.readline().split()]
        assert len(pids) == 2 and eventually(pids, "S")
        rank.send_signal(signal.SIGKILL)
    assert eventually(pids, "goneZX")


@pytest.mark.parametrize("local", [(), (0, 1)])
def test_a_simulation_forks_nothing(local: tuple[int, ...]) -> None:
    children = Children(2)
    children.start(SimpleNamespace(local=local))
    assert children.pids == []
