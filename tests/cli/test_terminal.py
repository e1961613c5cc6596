"""Text from a store cannot drive the terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.cli.stdout import PRINTED, REDRAWN, PlainTerminal, guarded, write_out_controls
from tests.support.machines.mpi import environment
from tests.support.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("plain µs ✓ \n\t", "plain µs ✓ \n\t"),
        ("\x1b[1;32mPASS\x1b[0m", "\x1b[1;32mPASS\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("FAIL\rPASS", "FAIL\\x0dPASS"),
        ("\x1b[2A\x1b[2K", "\\x1b[2A\\x1b[2K"),
        ("\x9b2J\x00", "\\x9b2J\\x00"),
    ],
)
def test_control_sequences_are_shown(text: str, printed: str) -> None:
    assert write_out_controls(text) == printed
    assert "\x1b]" not in write_out_controls(text, REDRAWN)


def test_progress_may_draw_a_line_again() -> None:
    assert write_out_controls("\r\x1b[2Kround 2", REDRAWN) == "\r\x1b[2Kround 2"


def test_a_file_gets_every_byte() -> None:
    stream = io.StringIO()
    assert guarded(stream, PRINTED) is stream
    plain = PlainTerminal(stream, PRINTED)
    assert plain.write("\x07") == 1 and plain.getvalue() == "\\x07"


@pytest.mark.slow
def test_a_store_of_a_stranger_does_not_reach_the_terminal(tmp_path: Path) -> None:
    """The command line as a user has it: stdout is a terminal."""
    store = str(tmp_path / "store")
    words = [sys.executable, "-m", "omb_py"]
    file = tmp_path / "osu.txt"
    file.write_text("# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n8    1.00\n")
    hostile = "library=\x1b]0;owned\x07"
    brought = [*words, "results", "import", str(file), "--store", store, "--set", hostile]
    subprocess.run(brought, capture_output=True, env=environment(), timeout=60, check=True)
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [*words, "results", "list", "--store", store], stdout=follower, env=environment(COLUMNS="200")
    )
    os.close(follower)
    output = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the last writer has closed it
            break
        if not part:
            break
        output += part
    assert child.wait(PATIENCE_S) == 0
    os.close(leader)
    assert b"\x1b]" not in output and b"\x07" not in output
    assert b"owned" in output
