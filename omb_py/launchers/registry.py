"""All launchers: ours, and those of installed packages (entry points ``omb_py.launchers``).

No installed package is searched before somebody names a launcher that is not ours, or variables are stored. Ranks of
such a launcher know its name by :data:`NAME_VARIABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from omb_py.errors import UsageError, nearest
from omb_py.launchers import batch_systems, flux, intel_mpi, mpich, mpiexec, none, open_mpi, srun, torchrun
from omb_py.launchers.launcher import Allocation, Ask, BatchSystem, Environment, Launcher, RankVariables
from omb_py.plug_ins import REPAIR, load_plug_ins

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine

ENTRY_POINTS: Final = "omb_py.launchers"
NAME_VARIABLE: Final = "OMB_PY_LAUNCHER"
"""Variable with the name of a launcher of another package, for ranks that it started."""
LAUNCHERS: Final[tuple[Launcher, ...]] = (
    mpiexec.LAUNCHER,
    srun.LAUNCHER,
    batch_systems.PALS,
    batch_systems.LSF,
    batch_systems.GRID_ENGINE,
    flux.LAUNCHER,
    torchrun.LAUNCHER,
    none.LAUNCHER,
    open_mpi.LAUNCHER,
    open_mpi.PMIX,
    mpich.LAUNCHER,
    mpich.MVAPICH,
    intel_mpi.LAUNCHER,
)
NAMED: Final[Mapping[str, Launcher]] = {launcher.name: launcher for launcher in LAUNCHERS if launcher.name}
"""Our launchers by the values of ``--launcher``."""
AUTO: Final = "auto"


class _Choices(tuple[str, ...]):
    """The values of ``--launcher``. Those of other packages are looked up when they are named."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in installed()


CHOICES: Final = _Choices((AUTO, *NAMED))
BATCH_SYSTEMS: Final = tuple(launcher.batch for launcher in LAUNCHERS if launcher.batch)
BATCH_LAUNCHERS: Final = frozenset(name for name, launcher in NAMED.items() if launcher.batch)
"""Launchers that may start ranks on other nodes without being told so."""
MANAGED: Final = tuple(
    chain(*(system.read_by_mpiexec for system in BATCH_SYSTEMS), *(launcher.hosts for launcher in LAUNCHERS))
)
"""Variables through which mpiexec learns of other nodes by itself."""
TASKS: Final = tuple(name for system in BATCH_SYSTEMS for name in system.tasks)
"""Variables in which batch systems give the number of tasks for which a job has room."""


def _sort_variables(launchers: tuple[Launcher, ...]) -> tuple[RankVariables, ...]:
    every = dict.fromkeys(variables for launcher in launchers for variables in launcher.variables)
    return tuple(sorted(every, key=lambda variables: variables.precedence))


RANK_VARIABLES: Final = _sort_variables(LAUNCHERS)
"""The variables of our launchers, in the order in which they are asked."""


@cache
def installed() -> Mapping[str, Launcher]:
    """The launchers of other packages. One that cannot be loaded says so when it is asked for."""
    plug_ins = load_plug_ins(ENTRY_POINTS, Launcher, ours=NAMED.get)
    broken = {name: _BrokenLauncher(name, reason) for name, reason in plug_ins.broken.items()}
    return {**plug_ins.loaded, **broken}


@cache
def prefixes() -> tuple[str, ...]:
    """Prefixes of the names of all variables of launchers and batch systems, those of other packages too."""
    return tuple(prefix for launcher in (*LAUNCHERS, *installed().values()) for prefix in launcher.prefixes)


@cache
def per_job() -> str:
    """Pattern of what begins the names of variables that they set anew for each job or rank."""
    return "|".join(launcher.per_job for launcher in (*LAUNCHERS, *installed().values()) if launcher.per_job)


class _BrokenLauncher(Launcher):
    """A launcher whose package cannot be loaded; its summary is the reason."""

    def missing(self, machine: LaunchMachine) -> str:
        return f"launcher {self.name} cannot be loaded ({self.summary}): {REPAIR}"


def find_launcher(name: str) -> Launcher:
    """The launcher with this name. Raises UsageError with the nearest one."""
    launcher = NAMED.get(name) or installed().get(name)
    if launcher is None:
        raise UsageError(f"unknown launcher {name!r}: {nearest(name, [*CHOICES, *installed()])}")
    return launcher


def rank_variables(environ: Environment) -> tuple[RankVariables, ...]:
    """The variables from which a process with this environment may know its rank, in the order of asking."""
    other = installed().get(environ[NAME_VARIABLE]) if NAME_VARIABLE in environ else None
    return RANK_VARIABLES if other is None else _sort_variables((other, *LAUNCHERS))


def launcher_titled(title: str) -> Launcher | None:
    """The launcher that messages call so; None for an mpiexec or an unknown one."""
    return next((launcher for launcher in LAUNCHERS if launcher.name and launcher.name == title), None)


def batch_around(environ: Environment) -> BatchSystem | None:
    """The batch system in whose job this process runs; None outside one."""
    return next((system for system in BATCH_SYSTEMS if environ.get(system.sign)), None)


def job_around(environ: Environment, ask: Ask | None = None) -> Allocation | None:
    """Find the allocation in which this process runs; None outside one.

    Args:
        ask: runs a command of the batch system and returns its output.

    Raises:
        EnvironmentProblem: the scheduler's answer cannot be read; the text names the variable or file.
    """
    from omb_py.launchers.machine import ask_scheduler  # ranks load this module

    answers = (system.allocation(environ, ask or ask_scheduler) for system in BATCH_SYSTEMS)
    return next((job for job in answers if job is not None), None)
