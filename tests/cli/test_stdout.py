"""A command whose output nobody can take goes on, and stores what it measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.results.store.read import load
from tests.support.machines.mpi import environment, run_command
from tests.support.tiers import few_quick

LATENCY = "latency --backend mock -m 8:64 -i 5 --store s"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run omb-py with these words in a shell; stderr is text."""
    command = ["sh", "-c", f"{sys.executable} -m omb_py {line}"]
    return run_command(command, cwd=folder)


@pytest.mark.slow
def test_a_full_disk_under_the_output_is_said_after_all_was_stored(tmp_path: Path) -> None:
    done = shell(f"{LATENCY} --quiet > /dev/full", tmp_path)
    says = "omb-py: error: the output is not complete, it could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, says)
    assert sorted(row["size_bytes"] for row in load(tmp_path / "s").to_dict("records")) == [8, 16, 32, 64]


@pytest.mark.slow
@pytest.mark.parametrize("closed", few_quick(["<&- >&- 2>&-", ">&- 2>&-", ">&-", "2>&-"]))
def test_a_closed_stream_is_no_error(tmp_path: Path, closed: str) -> None:
    done = shell(f"{LATENCY} {closed}", tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert len(load(tmp_path / "s")) == 4


def test_the_version_has_the_same_care(tmp_path: Path) -> None:
    done = shell("--version > /dev/full", tmp_path)
    assert done.returncode == 3 and done.stderr.startswith("omb-py: error: the output is not complete")


@pytest.mark.slow
def test_a_working_folder_that_was_removed_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    gone = f"cd gone && rmdir ../gone && {sys.executable} -m omb_py"
    line = f"{gone} list; {sys.executable} -m omb_py {LATENCY}"
    done = run_command(["sh", "-c", line], cwd=tmp_path)
    assert "allreduce" in done.stdout
    says = "omb-py: error: this folder no longer exists, and the store is in it: cd to another\n"
    assert (done.returncode, done.stderr) == (3, says)


def test_children_have_the_streams_that_the_caller_closed() -> None:
    """Else the first file that a rank opens would be its stdout."""
    script = (
        "import os, subprocess, sys\n"
        "from omb_py.cli.stdout import open_what_is_closed\n"
        "open_what_is_closed()\n"
        "sys.exit(subprocess.call([sys.executable, '-c', 'import os; [os.fstat(n) for n in range(3)]']))"
    )
    line = f'{sys.executable} -c "$SCRIPT" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", line], env=environment(SCRIPT=script), check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--no-store "])
def test_a_full_disk_under_the_messages_changes_no_exit_code(options: str, tmp_path: Path) -> None:
    done = shell(f"{LATENCY.replace(' --store s', '')} {options}--tag a=b 2> /dev/full", tmp_path)
    assert done.returncode == 0 and done.stdout.count("\n") > 4


@pytest.mark.parametrize("word", ["\x1b]0;x\x07", "a\x1b[2Ab", "\x9b2J", "\rPASS"])
def test_a_word_of_the_command_line_cannot_drive_a_terminal(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Not where it is read through a pipe either."""
    for words in (["results", "list", word, word], ["latency", word], [word], ["latency", f"--{word}"]):
        assert main(words) == 2
        assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in capsys.readouterr().err.strip("\n"))
