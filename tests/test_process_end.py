"""The quick end of a process: nothing that was to be done or written at the end is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machines.mpi import run_command
from tests.support.patience import PATIENCE_S

QUICK = "from omb_py.process_end import end_process\n"


def ended(code: str, *python: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *python, "-c", QUICK + code]
    return run_command(words)


@pytest.mark.parametrize("code", [0, 2, 130])
def test_what_was_registered_is_called_and_what_was_printed_is_written(code: int) -> None:
    done = ended(f"import atexit\natexit.register(print, 'last')\nprint('first')\nend_process({code})")
    assert (done.returncode, done.stdout, done.stderr) == (code, "first\nlast\n", "")


def test_modules_are_left_as_they_are() -> None:
    """Python's own end would print this, as it does where a library needs it."""
    watched = "class Last:\n    def __del__(self):\n        print('taken apart', flush=True)\nlast = Last()\n"
    assert ended(f"{watched}end_process(0)").stdout == ""
    assert ended(f"{watched}import sys; sys.modules['torch'] = sys\nend_process(0)").stdout == "taken apart\n"


@pytest.mark.slow
def test_a_thread_that_works_is_waited_for_and_one_that_may_end_is_not() -> None:
    thread = "import threading, time\ndef work():\n    time.sleep(0.3)\n    print('worked')\n"
    start = "threading.Thread(target=work, daemon={}).start()\nend_process(0)"
    assert ended(thread + start.format(False)).stdout == "worked\n"
    assert ended(thread + start.format(True)).stdout == ""


def test_the_end_of_the_c_library_comes() -> None:
    """As of a preloaded profiler, and of text that a library has not written yet."""
    code = "import ctypes\nctypes.CDLL(None).printf(b'by the library\\n')\nend_process(0)"
    assert ended(code).stdout == "by the library\n"


def test_where_nobody_reads_the_output_the_code_stays() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-c", f"{QUICK}print('x')\nend_process(4)"]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=buffered, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (4, b"")
    os.close(write)


def test_a_profile_of_a_command_is_printed() -> None:
    words = [sys.executable, "-m", "cProfile", "-m", "omb_py", "--version"]
    done = run_command(words, cwd=Path(__file__).parents[1])
    assert done.returncode == 0 and "function calls" in done.stdout
