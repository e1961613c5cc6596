"""Commands with a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tests.support.machines.mpi import ROOT

GRACE_S = 15.0
"""How long a command that is over its time may take to store its rows and end its ranks."""


def run_within(limit_s: float, words: Sequence[str], variables: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Run a command with a time limit; one that is over it is asked to end, and then ended with all it has started.

    Returns:
        Exit status, None where it was over its time; stdout; stderr.
    """
    child = subprocess.Popen(
        words,
        cwd=ROOT,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=limit_s)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        child.terminate()  # its ranks end with it, and its rows are stored
    try:
        out, err = child.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
    return None, out, err
