"""Questions to a library, answered by a child process, so that a library that breaks harms nobody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any, Final

MARK: Final = "omb-py:"
"""Begins the line of a child's answer; a library may print others."""
_OF_LAUNCHERS: Final = re.compile(
    r"^(PMI|OMPI_|PRTE_|PALS_|FLUX_|MV2_|MVP_|SLURM_|HYDRA_|MPI_LOCAL|MPIR_CVAR_CH3|RANK$|WORLD_SIZE$)"
)
_OF_USERS: Final = ("OMPI_MCA_", "OMPI_ALLOW", "MV2_USE_", "MVP_USE_")


def answer_of(module: str, *words: str, timeout: float) -> dict[str, Any]:
    """Run a module of ours in a child process, as a world of one process, and read what it answers.

    Args:
        module: its name; it prints :data:`MARK` and a JSON object in one line.
        timeout: seconds.

    Returns:
        The object, or ``{"error": why}`` where none came.
    """
    # without the launcher's variables MPI starts the child as a world of one process
    environ = {
        name: value for name, value in os.environ.items() if name.startswith(_OF_USERS) or not _OF_LAUNCHERS.match(name)
    }
    try:
        child = subprocess.run(
            [sys.executable, "-m", module, *words],
            env=environ,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": f"{type(error).__name__}"}
    for line in child.stdout.splitlines():
        if line.startswith(MARK):
            answer: dict[str, Any] = json.loads(line.removeprefix(MARK))
            return answer
    ended = f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
    return {"error": ended}
