"""The command that starts the ranks of a launch, their Python and their environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.rank.link import AGENTS_VARIABLE, CONTROL_VARIABLE, TOKEN_VARIABLE
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.launcher import ONE_THREAD, Allocation, Gpus, LaunchCommand, RankRequest
from omb_py.launchers.machine import LaunchMachine
from omb_py.launchers.mpi_library import recall_library
from omb_py.launchers.own_mpi import MPI_VARIABLES, VARIABLE, own_mpi_variables
from omb_py.launchers.registry import AUTO, LAUNCHERS, NAME_VARIABLE, NAMED, find_launcher, prefixes
from omb_py.results.store.redact import is_allowed

if TYPE_CHECKING:
    from omb_py.engine.rank.launch_facts import AskedFacts

_NOTHING_ASKED: AskedFacts = {}


@dataclass(frozen=True, slots=True)
class RankEnvironment:
    """The Python and the environment of ranks."""

    python: str = sys.executable
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Changes to our own environment; None removes a variable."""
    facts: AskedFacts = field(default_factory=lambda: _NOTHING_ASKED)
    """Provenance of the launch: the Python and variables that were asked for."""

    @property
    def names(self) -> tuple[str, ...]:
        """Variables that ranks on other nodes need too."""
        return tuple(name for name, value in self.variables.items() if value is not None)

    def environment(self, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The whole environment of the ranks."""
        merged = {**ours, **self.variables}
        return {name: value for name, value in merged.items() if value is not None}


HERE = RankEnvironment()
"""The Python and environment of omb-py itself."""


_SET_LATER = (CONTROL_VARIABLE, TOKEN_VARIABLE, *ONE_THREAD)
_PASSED = (CONTROL_VARIABLE, TOKEN_VARIABLE, AGENTS_VARIABLE, *ONE_THREAD, "PYTHONPATH", NAME_VARIABLE)
_OURS = "OMB_PY_"


def command_for(
    launcher: str,
    program: Sequence[str],
    ranks: int,
    *,
    hosts: Sequence[str] = (),
    extra: Sequence[str] = (),
    pass_names: Sequence[str] = (),
    bind: bool = True,
    needs_mpi: bool = True,
    gpus: Gpus = "none",
    machine: LaunchMachine | None = None,
) -> LaunchCommand:
    """Build the command that starts `ranks` processes of `program`.

    Args:
        launcher: ``auto`` or a name of :mod:`omb_py.launchers.registry`.
        hosts: host names; empty for this machine, or for the nodes that a batch system has allocated.
        extra: the user's own arguments for the launcher.
        pass_names: further environment variables that ranks on other nodes need.
        bind: give each rank a core of its own where there are enough.
        needs_mpi: the ranks use MPI; else ``auto`` means torchrun where MPI's launcher cannot be used.
        gpus: whether ranks use GPUs, which Flux hides from those that do not ask.
        machine: for tests; by default the environment of this process.

    Raises:
        UsageError: unknown launcher, or one that cannot start that many ranks, or host by host.
        EnvironmentProblem: the launcher is missing or does not belong to the MPI library.
    """
    machine = machine or LaunchMachine(os.environ)
    name = choose(machine) if launcher == AUTO else launcher
    chosen = find_launcher(name)
    if name not in NAMED:
        machine = replace(machine, environ={**machine.environ, NAME_VARIABLE: name})
    if reason := chosen.missing(machine):
        raise EnvironmentProblem(reason)
    is_set = {*machine.environ, *_SET_LATER}
    of_mpi = MPI_VARIABLES if VARIABLE in is_set else ()
    passed = tuple(name for name in dict.fromkeys((*_PASSED, *of_mpi, *pass_names)) if name in is_set)
    decisive = tuple(sorted(filter(_decides, machine.environ)))
    request = RankRequest(tuple(program), ranks, tuple(hosts), tuple(extra), passed, decisive, bind, gpus)
    try:
        return chosen.command(request, machine)
    except EnvironmentProblem:
        # a user who gave hosts or arguments meant the launcher that cannot be used, so no other one takes its place
        torchrun = NAMED["torchrun"]
        if launcher != AUTO or needs_mpi or hosts or extra or torchrun.missing(machine):
            raise
        return torchrun.command(request, machine)


def _decides(name: str) -> bool:
    """Whether a variable decides how ranks communicate, and is not of the launcher or batch system itself."""
    return name.startswith(_OURS) or (is_allowed(name) and not name.startswith(prefixes()))


def choose(machine: LaunchMachine) -> str:
    """The launcher that ``auto`` means: that of the Slurm or Flux allocation around us, else the library's mpiexec."""
    around = (x for x in LAUNCHERS if x.name and x.batch and x.batch.sign in machine.environ)
    return next((launcher.name for launcher in around if not launcher.missing(machine)), "mpiexec")


def machine_of(where: RankEnvironment, more: Mapping[str, str]) -> LaunchMachine:
    """The machine for ranks of a Python and environment; `more` is set for those of our own."""
    if where is HERE:
        return LaunchMachine({**os.environ, **more})
    environ = where.environment()
    environ |= own_mpi_variables(environ, where.python)
    return LaunchMachine(environ, where.python, find_library=lambda python: recall_library(python, environ))


def report_launchers(machine: LaunchMachine | None = None) -> dict[str, str]:
    """Launcher -> why it cannot be used here, empty when it can; for ``doctor``. Never raises."""
    machine = machine or LaunchMachine(os.environ)
    report = {}
    for name, launcher in NAMED.items():
        try:
            report[name] = launcher.missing(machine)
            if not report[name]:
                launcher.command(RankRequest(("true",), 1), machine)
        except (EnvironmentProblem, UsageError) as problem:
            report[name] = str(problem)
    return report


def ranks_for(benchmark: Benchmark, job: Allocation | None) -> int | None:
    """Number of ranks for a benchmark without ``-n``: the tasks that the user asked the scheduler for.

    Returns:
        None, which means the default number, where there is no such number or the benchmark does not admit it.
    """
    if job is None or not job.asked or not benchmark.ranks.admits(job.ranks):
        return None
    return job.ranks
