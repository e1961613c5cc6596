"""Questions to a library, answered by child processes, so that a library that breaks harms nobody."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

MARK: Final = "omb-py:"
"""Begins a line of a child's answer; a library may print others."""
_OF_LAUNCHERS: Final = re.compile(
    r"^(PMI|OMPI_|PRTE_|PALS_|FLUX_|MV2_|MVP_|SLURM_|HYDRA_|MPI_LOCAL|MPIR_CVAR_CH3|RANK$|WORLD_SIZE$)"
)
_OF_USERS: Final = ("OMPI_MCA_", "OMPI_ALLOW", "MV2_USE_", "MVP_USE_")
_GRACE_S: Final = 5.0
"""How long a launcher that is over its time may take to end its ranks."""
Words = Sequence[str]
Variables = Mapping[str, str]
Start = Callable[[Words, Variables], tuple[Words, Variables]]
"""A command line and its environment -> those by which a launcher starts it."""


def answer_of(
    module: str, *words: str, timeout: float, start: Start = lambda words, environ: (words, environ)
) -> dict[str, Any]:
    """Run a module of ours in a child process, as a world of its own, and read what it answers.

    Args:
        module: its name; it prints lines of :data:`MARK` and a JSON object.
        timeout: seconds.
        start: what starts it where one process is not enough.

    Returns:
        All objects as one; with ``error``, why it ended, where there is none or it did not end well.
    """
    # without the launcher's variables MPI starts the child as a world of one process
    environ = {
        name: value for name, value in os.environ.items() if name.startswith(_OF_USERS) or not _OF_LAUNCHERS.match(name)
    }
    try:
        out, status = _run(*start((sys.executable, "-m", module, *words), environ), timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": type(error).__name__}
    lines = [line.removeprefix(MARK) for line in out.splitlines() if line.startswith(MARK)]
    answer = {key: value for line in lines for key, value in json.loads(line).items()}
    if status or not answer:
        answer["error"] = f"signal {-status}" if status < 0 else f"exit status {status}"
    return answer


def _run(words: Words, environ: Variables, timeout: float) -> tuple[str, int]:
    """What a command prints, and its exit status. One that is over its time is ended with all that it started."""
    with subprocess.Popen(
        words,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            return child.communicate(timeout=timeout)[0], child.returncode
        except subprocess.TimeoutExpired:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE_S)
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
