"""A rehearsal: a command runs on several nodes that are this machine, in namespaces that end with it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.mpi_library import recall_library
from omb_py.launchers.open_mpi import OPEN_MPI_ROOT
from omb_py.orchestrate.launching.emulated_hosts import OVER_TCP, EmulatedHosts, do, missing_program
from omb_py.process_end import TYPED

INSIDE: Final = "OMB_PY_REHEARSAL"
"""Variable of the process that has namespaces of its own: the words after ``omb-py`` that began it."""
SLOW_RATE: Final = "400mbit"
"""What goes over a slow link in each direction: a tenth of what goes over the others, or less."""
SLOW_FACTOR: Final = 2
"""How many times as long messages over it take in the simulation."""
_MOST: Final = 253
_RANKS: Final = re.compile(r"-n\d*$|--ranks(=|$)")
_FOLDER: Final = Path("/run")
"""Where ``ip`` and the agent have their files; a file system in memory, which ends with the namespaces."""
_SBIN: Final = ("/usr/sbin", "/sbin")
"""Where ``tc`` is, which the PATH of a user who is not root often lacks."""
_CROWDED: Final = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
"""There may be more ranks than cores: those that wait let others run."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How many nodes there are, at most 253, and which link is slow."""

    nodes: int
    slow: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Raise UsageError where there are too many nodes, or the link has an end that is none of them."""
        if self.nodes > _MOST:
            raise UsageError(f"--nodes {self.nodes}: at most {_MOST} fit into one network here")
        for end in self.slow or ():
            if end >= self.nodes:
                raise UsageError(f"--slow-link: node {end} is not among {self.nodes} nodes, 0 to {self.nodes - 1}")

    @property
    def text(self) -> str:
        """``4 nodes, node0 to node3, with a slow link between node1 and node3``."""
        link = f", with a slow link between node{self.slow[0]} and node{self.slow[1]}" if self.slow else ""
        return f"{self.nodes} nodes, node0 to node{self.nodes - 1}{link}"

    def simulated(self, words: Sequence[str]) -> list[str]:
        """The words of a command on simulated nodes."""
        link = f",link={self.slow[0]}-{self.slow[1]}:{SLOW_FACTOR}" if self.slow else ""
        says_ranks = words[0] == "accept" or any(_RANKS.match(word) for word in words)
        ranks = [] if says_ranks else ["-n", str(self.nodes)]
        return [words[0], "--backend", "mock", "--mock", f"nodes={self.nodes},noise=0.03{link}", *ranks, *words[1:]]

    def run_inside(self, words: Sequence[str]) -> NoReturn:
        """Make the nodes in this process's own namespaces, and become the command. Raises EnvironmentProblem."""
        hosts = EmulatedHosts(self.nodes, 0)
        try:
            do("mount", "-t", "tmpfs", "tmpfs", str(_FOLDER))
            do("ip", "link", "set", "lo", "up")
            hosts.make()
            if self.slow:
                hosts.limit(*self.slow, SLOW_RATE)
        except OSError as error:
            raise EnvironmentProblem(f"cannot make nodes here: {error}: --simulated needs none") from None
        agent = hosts.agent(_FOLDER, recall_library().vendor == "Open MPI")
        where = ["--hosts", ",".join(hosts.names), "--launcher-args", " ".join(agent)]
        environ = {**OVER_TCP, **_CROWDED, **os.environ}
        environ[TYPED] = environ.pop(INSIDE)
        os.execve(sys.executable, [*_omb_py(), words[0], *where, *words[1:]], environ)


def _omb_py() -> list[str]:
    return [sys.executable, "-P", "-m", "omb_py"]


def _unshare() -> list[str]:
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *as_root, "--net", "--mount"]


def _path(environ: Mapping[str, str]) -> str:
    return os.pathsep.join((environ.get("PATH", os.defpath), *_SBIN))


def why_no_nodes() -> str:
    """Why nodes can only be simulated here; empty where they can be made."""
    path = _path(os.environ)
    if why := missing_program(path):
        return why
    probe = ["ip", "link", "add", "omb0", "type", "veth", "peer", "name", "omb1"]
    environ = {**os.environ, "PATH": path}
    done = subprocess.run([*_unshare(), *probe], capture_output=True, text=True, timeout=20, check=False, env=environ)
    return f"this machine allows no namespaces: {done.stderr.strip()}" if done.returncode else ""


def enter(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> NoReturn:
    """Begin ``omb-py rehearse`` with these words anew in namespaces of its own."""
    path = _path(environ)
    program = shutil.which("unshare", path=path) or "unshare"
    as_user = dict.fromkeys(OPEN_MPI_ROOT, "1") if os.geteuid() else {}  # root inside, but nobody's root outside
    variables = {**environ, **as_user, "PATH": path, INSIDE: shlex.join(["rehearse", *arguments])}
    os.execve(program, [*_unshare(), *_omb_py(), "rehearse", *arguments], variables)
