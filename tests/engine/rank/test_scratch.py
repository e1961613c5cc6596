from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from omb_py.engine.rank import scratch
from tests.support.machines.mpi import run_command

DIES = "import os; from omb_py.engine.rank import scratch; print(scratch.make(), flush=True); os._exit(0)"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_nobody_else_may_enter() -> None:
    folder = scratch.make()
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "file").touch()
    scratch.remove(folder)
    assert not folder.exists()
    scratch.remove(folder)


def test_only_what_a_dead_process_of_this_machine_made_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.make()  # of a process that lives
    done = run_command([sys.executable, "-c", DIES], check=True)
    dead = Path(done.stdout.strip())
    name = dead.name.split("-")
    elsewhere = dead.with_name("-".join([*name[:2], "00000000", *name[3:]]))  # of another namespace or boot
    elsewhere.mkdir()
    (dead.parent / "omb-py-results").mkdir()
    link = dead.with_name(dead.name + "x")
    link.symlink_to(elsewhere)
    assert list(scratch.abandoned()) == [dead]
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert list(scratch.abandoned()) == [], "another user's"
