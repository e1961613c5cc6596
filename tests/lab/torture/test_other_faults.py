"""A full disk, a crowd in one store and a row of runs: small parts of the three commands, and what they call wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.torture import crowd, full_disk, series
from tests.support.c_library import COMPILER


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_writes_below_a_folder_fail_from_the_chosen_one_on(tmp_path: Path) -> None:
    script = """
import ctypes, errno, os, sys
library = ctypes.CDLL(os.environ["LD_PRELOAD"])
folder, elsewhere = sys.argv[1:]
library.injected_fault(3, errno.ENOSPC, folder.encode())
os.mkdir(folder + "/a")
handle = os.open(folder + "/b", os.O_WRONLY | os.O_CREAT)
attempts = (
    lambda: os.write(handle, b"x"), lambda: os.rename(folder + "/b", folder + "/c"), lambda: os.mkdir(folder + "/d")
)
for attempt in attempts:
    try:
        attempt()
    except OSError as error:
        print(errno.errorcode[error.errno])
open(elsewhere, "w").write("room")
print(library.injected_writes(), sorted(os.listdir(folder)))
"""
    below = tmp_path / "below"
    below.mkdir()
    words = [sys.executable, "-c", script, str(below), str(tmp_path / "elsewhere")]
    done = subprocess.run(
        words, env={**os.environ, "LD_PRELOAD": str(full_disk.compiled(tmp_path))}, capture_output=True, text=True
    )
    assert done.stdout.split("\n") == ["ENOSPC", "ENOSPC", "ENOSPC", "5 ['a', 'b']", ""], done.stderr


class Library:
    """The preloaded one, where nothing fails."""

    def injected_fault(self, first: int, error: int, folder: bytes) -> None:
        """Nothing."""

    def injected_writes(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (full_disk.Ended(3, "", "omb-py: error: no space left on the disk", 1), ""),
        (full_disk.Ended(0, "", "", 1), "exit code 0, last line ''"),
        (full_disk.Ended(1, "", "no space left", 1), "exit code 1"),
        (
            full_disk.Ended(3, "8                       1.00\n", "no space left", 1),
            "printed, and not stored: [(8, '1.00')]",
        ),
        (full_disk.Ended(3, "", "Traceback (most recent call last)\nno space left", 1), "a traceback"),
    ],
)
def test_what_is_wrong_after_a_full_disk(ended: full_disk.Ended, says: str, tmp_path: Path) -> None:
    wrong = full_disk.wrong_after(ended, tmp_path / "none", Library(), tmp_path)
    assert [says in text for text in wrong] == ([True] if says else [])


@pytest.mark.slow
def test_a_small_crowd(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    said, wrong = crowd.crowd(store, writers=2, launches=3)
    assert wrong == [] and said.startswith("2 writers wrote 6 launches")


def test_a_reading_with_half_a_launch_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrong: list[str] = []
    rows = pd.DataFrame({"launch_id": ["a", "a", "b"], "size_bytes": [4, 8, 4]})
    monkeypatch.setattr(crowd, "load", lambda store, **options: rows)
    assert crowd.launches_in(tmp_path, wrong) == ["a", "b"]
    assert wrong == ["a reading has parts of launches: {'b': 1}"]
    monkeypatch.setattr(crowd, "load", lambda store, **options: rows.iloc[[0, 0]])
    crowd.launches_in(tmp_path, wrong)
    assert wrong[1:] == ["a row stands twice in a reading"]


def test_a_series_counts_what_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[set[str]] = [set(), set(), {"/tmp/left"}, {"/tmp/left"}]
    monkeypatch.setattr(series, "RUN", ("allreduce", "-m", "8:16", "-i", "5", "--store", str(tmp_path / "store")))
    monkeypatch.setattr(series, "files", lambda: there.pop(0))
    wrong: list[str] = []
    assert series.simulated(2, wrong) == 4
    assert len(wrong) == 1 and "/tmp/left" in wrong[0]
