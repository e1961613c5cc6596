"""Processes write into one folder at once, while others read, index and merge it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from omb_py.results.store import index
from omb_py.results.store.compaction import compact
from omb_py.results.store.integrity import verify
from omb_py.results.store.paths import files
from omb_py.results.store.provenance import provenances
from omb_py.results.store.read import load
from tests.results.store import writers as writer
from tests.support.machines.mpi import ROOT

LAUNCHES = 5
NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.parametrize("writers", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_many_writers_on_one_folder(writers, tmp_path, monkeypatch) -> None:
    for name, value in (("WORTH", 8), ("_NEW", 4), ("_YOUNG_NS", 10**8)):
        monkeypatch.setattr(index, name, value)
    store = tmp_path / "store"
    store.mkdir()
    words = [[sys.executable, "-m", writer.__name__, str(store), f"w{n}", str(LAUNCHES)] for n in range(writers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
    running = [subprocess.Popen(line, cwd=ROOT, env=environment, stderr=subprocess.PIPE) for line in words]
    try:
        seen = 0
        merged = 0
        while any(process.poll() is None for process in running):
            frame = load(store, columns=["launch_id", "size_bytes"], on_skip=lambda path, why: pytest.fail(why))
            assert not frame.duplicated().any() and len(frame) % 2 == 0
            assert len(frame) >= seen  # what was once there is there
            seen = len(frame)
            merged += len(compact(store, timedelta(days=1), now=NOW))
            time.sleep(0.3)
        for process in running:
            assert process.communicate()[1] == b"" and process.returncode == 0
    finally:
        for process in running:
            process.kill()
            process.wait()
    merged += len(compact(store, timedelta(days=1), now=NOW))
    assert merged > 0
    frame = load(store, columns=["launch_id", "size_bytes"])
    assert len(frame) == 2 * writers * LAUNCHES and not frame.duplicated().any()
    found = {name: facts for path in files(store) for name, facts in provenances(path).items()}
    assert found == {f"w{n}-{k}": {"name": f"w{n}"} for n in range(writers) for k in range(LAUNCHES)}
    assert {checked.state for checked in verify(store)} == {"ok"}
