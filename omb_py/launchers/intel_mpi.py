"""Intel MPI's mpiexec: hydra, which is told by variables where ranks are pinned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from omb_py.launchers.core_binding import CoreBinding
from omb_py.launchers.launcher import RankRequest
from omb_py.launchers.mpich import HYDRA
from omb_py.launchers.mpiexec_family import INTEL, Mpiexec, MpiexecFamily

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine


class IntelFamily(MpiexecFamily):
    """Options of Intel MPI."""

    def options(
        self, mpiexec: Mpiexec, ranks: RankRequest, machine: LaunchMachine, placed: CoreBinding, local: bool
    ) -> tuple[list[str], Mapping[str, str]]:
        """Hosts; and variables for pinning where the user gives none."""
        pin = {
            "core": {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "core"},
            "hwthread": {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "all"},
            "list": {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": ",".join(map(str, placed.cpus))},
            "none": {"I_MPI_PIN": "0"},
            "default": {},
        }[placed.policy]
        if any(name.startswith("I_MPI_PIN") for name in machine.environ):
            pin = {}
        return (["-hosts", ranks.hosts_with_slots()] if ranks.hosts else []), pin


LAUNCHER: Final = IntelFamily(
    variables=(HYDRA,),
    hosts=("I_MPI_HYDRA_HOST_FILE",),
    prefixes=("I_MPI_",),
    per_job="I_MPI_HYDRA_(?!BOOTSTRAP$)",
    vendor=INTEL,
    programs=("mpiexec.hydra", "mpiexec", "mpirun"),
    version=r"Intel\(R\) MPI Library.*?Version (\S+)",
)
