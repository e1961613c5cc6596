"""The base class of each family of MPI launchers: MPICH's and its derivatives', Open MPI's, Intel MPI's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omb_py.launchers.core_binding import CoreBinding
from omb_py.launchers.launcher import Launcher, RankRequest

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine

OPEN_MPI, MPICH, INTEL = "Open MPI", "MPICH", "Intel MPI"


@dataclass(frozen=True)
class Mpiexec:
    """A launcher on this machine, and its vendor."""

    path: str
    vendor: str
    version: str


@dataclass(frozen=True)
class MpiexecFamily(Launcher):
    """The mpiexec of one family of MPI libraries. ``--launcher mpiexec`` chooses the family of the library."""

    vendor: str = ""
    """The name of the library, as mpi4py gives it."""
    programs: tuple[str, ...] = ()
    """Names of the file, the most specific first."""
    version: str = ""
    """Pattern of what ``--version`` prints; its group is the version."""

    def fits(self, library: str, mpiexec: str) -> bool:
        """Whether ranks that an mpiexec of this family starts find each other by a library of this family."""
        return True

    def problem(self, machine: LaunchMachine) -> str:
        """Why it would refuse to start ranks here, with what to do; else empty."""
        return ""

    def options(
        self, mpiexec: Mpiexec, ranks: RankRequest, machine: LaunchMachine, placed: CoreBinding, local: bool
    ) -> tuple[list[str], Mapping[str, str]]:
        """Options for binding, hosts and variables; and further variables of the command itself."""
        raise NotImplementedError
