"""Open MPI's mpiexec, and the other launchers of PRRTE and PMIx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from omb_py.launchers.core_binding import CoreBinding
from omb_py.launchers.launcher import Launcher, RankRequest, RankVariables
from omb_py.launchers.mpiexec_family import OPEN_MPI, Mpiexec, MpiexecFamily

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine

OPEN_MPI_ROOT: Final = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""Both must be 1 before Open MPI's mpiexec starts ranks as root."""


class OpenMpiFamily(MpiexecFamily):
    """Options of Open MPI 4 and 5."""

    def fits(self, library: str, mpiexec: str) -> bool:
        return library.split(".")[0] == mpiexec.split(".")[0]

    def problem(self, machine: LaunchMachine) -> str:
        if not machine.root or all(machine.environ.get(name) == "1" for name in OPEN_MPI_ROOT):
            return ""
        return (
            f"Open MPI refuses to start as root. What to do: export {OPEN_MPI_ROOT[0]}=1 {OPEN_MPI_ROOT[1]}=1, "
            "or run as an ordinary user"
        )

    def options(
        self, mpiexec: Mpiexec, ranks: RankRequest, machine: LaunchMachine, placed: CoreBinding, local: bool
    ) -> tuple[list[str], Mapping[str, str]]:
        cpus = ",".join(map(str, placed.cpus))
        new = int(mpiexec.version.split(".")[0] or 5) >= 5
        options = {
            "core": ["--bind-to", "core", *(["--map-by", "core"] if local else [])],
            "hwthread": ["--use-hwthread-cpus", "--map-by", "hwthread", "--bind-to", "hwthread"],
            "list": ["--map-by", f"pe-list={cpus}:ordered"] if new else ["--cpu-set", cpus, "--bind-to", "core"],
            "none": ["--bind-to", "none"],
            "default": [],
        }[placed.policy]
        if placed.oversubscribed:
            options.append("--oversubscribe")
        if ranks.hosts:
            options += ["--host", ranks.hosts_with_slots()]
        # mpiexec gives the whole environment to ranks of this machine, and to others what is named
        for name in dict.fromkeys((*ranks.pass_names, *(() if local else ranks.decisive))):
            options += ["-x", name]
        return options, {}


_PMIX: Final = RankVariables(
    "a PMIx launcher",
    ("PMIX_RANK",),
    ("PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    ("PMIX_LOCAL_RANK",),
    ("PMIX_LOCAL_SIZE",),
    precedence=90,
)
_PRTERUN: Final = RankVariables(
    "prterun",
    ("PMIX_RANK",),
    # inside a Slurm job its helpers are tasks of srun, so Slurm's number of tasks is theirs
    ("PMIX_SIZE",),
    ("PMIX_LOCAL_RANK",),
    ("PMIX_LOCAL_SIZE",),
    detected=lambda environ: "PRTE_LAUNCHED" in environ,
    precedence=70,
)
LAUNCHER: Final = OpenMpiFamily(
    variables=(
        RankVariables(
            "mpiexec (Open MPI)",
            ("OMPI_COMM_WORLD_RANK",),
            ("OMPI_COMM_WORLD_SIZE",),
            ("OMPI_COMM_WORLD_LOCAL_RANK",),
            ("OMPI_COMM_WORLD_LOCAL_SIZE",),
            precedence=10,
        ),
    ),
    hosts=("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
    prefixes=("OMPI_", "PRTE_"),
    per_job="OMPI_(?!MCA_)|OMPI_MCA_(orte_|ess_|prte_|pmix_|PREFIXES$|initial_wdir$|num_procs$|cpu_type$)|PRTE_(?!MCA_)",
    vendor=OPEN_MPI,
    programs=("mpiexec", "mpiexec.openmpi", "mpirun.openmpi", "mpirun"),
    version=r"\(?(?:Open MPI|OpenRTE)\)?\s+v?(\S+)",
)
PMIX: Final = Launcher(variables=(_PRTERUN, _PMIX), prefixes=("PMIX_",), per_job="PMIX_(?!MCA_)")
