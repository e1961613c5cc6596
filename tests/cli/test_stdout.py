"""A command whose output nobody can take goes on, and stores what it measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.results.store.read import load
from tests.support.machines.mpi import environment

LATENCY = "latency --backend mock -m 8:64 -i 5 --store s"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run omb-py with these words in a shell; stderr is text."""
    command = ["sh", "-c", f"{sys.executable} -m omb_py {line}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), check=False)


def test_a_full_disk_under_the_output_is_said_after_all_was_stored(tmp_path: Path) -> None:
    done = shell(f"{LATENCY} --quiet > /dev/full", tmp_path)
    says = "omb-py: error: cannot write the output: No space left on device; what was measured is in the store\n"
    assert (done.returncode, done.stderr) == (3, says)
    assert sorted(row["size_bytes"] for row in load(tmp_path / "s").to_dict("records")) == [8, 16, 32, 64]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(tmp_path: Path, closed: str) -> None:
    done = shell(f"{LATENCY} {closed}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert len(load(tmp_path / "s")) == 4


def test_the_version_has_the_same_care(tmp_path: Path) -> None:
    done = shell("--version > /dev/full", tmp_path)
    assert done.returncode == 3 and done.stderr.startswith("omb-py: error: cannot write the output")


def test_a_working_folder_that_was_removed_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    line = f"cd gone && rmdir ../gone && {sys.executable} -m omb_py list"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0 and "allreduce" in done.stdout, done.stderr
