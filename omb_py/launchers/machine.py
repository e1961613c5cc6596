"""The machine on which a launcher is looked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from omb_py.errors import EnvironmentProblem
from omb_py.launchers.core_binding import Processors, processors
from omb_py.launchers.launcher import ONE_THREAD, Environment
from omb_py.launchers.mpi_library import MPILibrary, recall_library


@dataclass(frozen=True, slots=True)
class LaunchMachine:
    """The environment, the Python and the cores of ranks. The MPI library is looked for only when it is asked for."""

    environ: Environment
    python: str = sys.executable
    cores: Processors = field(default_factory=processors)
    find_library: Callable[[str], MPILibrary] = recall_library
    root: bool = field(default_factory=lambda: os.geteuid() == 0)

    @property
    def library(self) -> MPILibrary:
        """The MPI library that the ranks' Python loads."""
        return self.find_library(self.python)

    def which(self, name: str) -> str | None:
        """The path of a program; None where there is none in PATH."""
        return shutil.which(name, path=self.environ.get("PATH", os.defpath))

    def rank_environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a launcher's command."""
        return {**ONE_THREAD, **self.environ, **(more or {})}

    def output(self, *words: str) -> str:
        """All that a program prints; empty where it cannot be run."""
        try:
            child = subprocess.run(
                words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, env=dict(self.environ)
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return child.stdout + child.stderr


def ask_scheduler(words: tuple[str, ...]) -> str:
    """The output of a batch system's command. Raises EnvironmentProblem where it does not answer."""
    try:
        process = subprocess.run(
            words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{words[0]} does not answer: {error}: give -n and --hosts") from None
    if process.returncode:
        last = (process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise EnvironmentProblem(f"{' '.join(words[:3])}: {last}: give -n and --hosts")
    return process.stdout
