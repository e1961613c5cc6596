"""MPICH's mpiexec, hydra, and those of libraries that are derived from MPICH."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from omb_py.launchers.core_binding import CoreBinding
from omb_py.launchers.launcher import Environment, Launcher, RankRequest, RankVariables
from omb_py.launchers.mpiexec_family import MPICH, Mpiexec, MpiexecFamily

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine


def agrees_with_pmi(environ: Environment, name: str) -> bool:
    """Whether a launcher's rank equals PMI's. An mpiexec with helpers in it sets another, or MPI_LOCALNRANKS."""
    rank = environ.get(name)
    return "MPI_LOCALNRANKS" not in environ and rank == environ.get("PMI_RANK", environ.get("PMIX_RANK", rank))


HYDRA: Final = RankVariables(
    "mpiexec (hydra)", ("PMI_RANK",), ("PMI_SIZE",), ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS",), precedence=60
)
"""Intel MPI's mpiexec sets the same."""


class MpichFamily(MpiexecFamily):
    """Options of hydra."""

    def options(
        self, mpiexec: Mpiexec, ranks: RankRequest, machine: LaunchMachine, placed: CoreBinding, local: bool
    ) -> tuple[list[str], Mapping[str, str]]:
        """Binding and hosts; hydra passes all variables on."""
        options = {
            "core": ["-bind-to", "core"],
            "hwthread": ["-bind-to", "hwthread"],
            "list": ["-bind-to", "user:" + ",".join(map(str, placed.cpus))],
            "none": ["-bind-to", "none"],
            "default": [],
        }[placed.policy]
        return [*options, *(["-hosts", ranks.hosts_with_slots()] if ranks.hosts else [])], {}


LAUNCHER: Final = MpichFamily(
    variables=(HYDRA,),
    hosts=("HYDRA_HOST_FILE",),
    prefixes=("HYDRA_",),
    per_job="PMI_|MPI_LOCAL",
    vendor=MPICH,
    programs=("mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun"),
    version=r"HYDRA build details:.*?Version:\s+(\S+)",
)
MVAPICH: Final = Launcher(
    variables=(
        RankVariables(
            "mpirun_rsh (MVAPICH)",
            ("MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK"),
            ("MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE"),
            ("MV2_COMM_WORLD_LOCAL_RANK", "MVP_COMM_WORLD_LOCAL_RANK"),
            ("MV2_COMM_WORLD_LOCAL_SIZE", "MVP_COMM_WORLD_LOCAL_SIZE"),
            precedence=20,
        ),
    ),
    prefixes=("MV2_", "MVP_"),
    per_job="MV2_COMM_WORLD_",
)
"""A launcher around omb-py; its ranks are started by hydra otherwise."""
