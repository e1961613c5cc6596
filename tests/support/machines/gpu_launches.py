"""Two nodes with eight GPUs each, as launchers start sixteen ranks there: the user's line and each rank's environment.

The variables of hydra, Open MPI and torchrun are recorded from launches of two ranks on one machine, and continued to
sixteen. Those of Slurm, Flux and PALS are the names that omb-py's table of launchers has, not a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NODES = ("n1", "n2")
EACH = 8
RANKS = len(NODES) * EACH
ALL = ",".join(map(str, range(EACH)))
_BENCHMARK = "omb-py allreduce --backend nccl -d cuda"


@dataclass(frozen=True, slots=True)
class GpuLaunch:
    """A way to start them."""

    name: str
    line: str
    """What the user types; with torchrun on each node."""
    environ: Callable[[int, int], dict[str, str]]
    """(rank, local rank) -> the variables that matter."""

    def environments(self) -> list[dict[str, str]]:
        """Those of all ranks: launchers fill one node after the other."""
        return [self.environ(rank, rank % EACH) for rank in range(RANKS)]


def _open_mpi(rank: int, local: int) -> dict[str, str]:
    world = {"RANK": rank, "SIZE": RANKS, "LOCAL_RANK": local, "LOCAL_SIZE": EACH, "NODE_RANK": local}
    variables = {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in world.items()}
    return variables | {"PMIX_RANK": str(rank), "PRTE_LAUNCHED": "1", "OMPI_UNIVERSE_SIZE": str(RANKS)}


def _hydra(rank: int, local: int) -> dict[str, str]:
    variables = {"PMI_RANK": str(rank), "PMI_SIZE": str(RANKS), "PMI_FD": "9", "PMI_HOSTNAME": NODES[rank // EACH]}
    return variables | {"MPI_LOCALRANKID": str(local), "MPI_LOCALNRANKS": str(EACH)}


def _torchrun(rank: int, local: int) -> dict[str, str]:
    group = {"GROUP_RANK": str(rank // EACH), "LOCAL_RANK": str(local), "LOCAL_WORLD_SIZE": str(EACH)}
    meeting = {"MASTER_ADDR": NODES[0], "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
    return {"RANK": str(rank), "WORLD_SIZE": str(RANKS), **group, **meeting}


def _slurm(rank: int, local: int) -> dict[str, str]:
    job = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NNODES": "2", "SLURM_NODEID": str(rank // EACH)}
    task = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local), "SLURM_STEP_NUM_TASKS": str(RANKS)}
    return {**job, **task, "SLURM_NTASKS": str(RANKS), "PMI_RANK": str(rank), "PMI_SIZE": str(RANKS)}


def _flux(rank: int, local: int) -> dict[str, str]:
    job = {"FLUX_JOB_ID": "ƒ7", "FLUX_JOB_SIZE": str(RANKS), "FLUX_JOB_NNODES": "2", "PMI_SIZE": str(RANKS)}
    return {**job, "FLUX_TASK_RANK": str(rank), "FLUX_TASK_LOCAL_ID": str(local), "PMI_RANK": str(rank)}


def _pals(rank: int, local: int) -> dict[str, str]:
    pals = {"PALS_RANKID": rank, "PALS_LOCAL_RANKID": local, "PALS_LOCAL_SIZE": EACH, "PALS_NODEID": rank // EACH}
    pmi = {"PMI_RANK": rank, "PMI_SIZE": RANKS, "PMI_LOCAL_RANK": local, "PMI_LOCAL_SIZE": EACH}
    return {name: str(value) for name, value in {**pals, **pmi}.items()}


def _seeing(
    environ: Callable[[int, int], dict[str, str]], gpus: Callable[[int], str]
) -> Callable[[int, int], dict[str, str]]:
    """The same where the launcher also chooses the GPUs that a rank sees, by its local rank."""
    return lambda rank, local: environ(rank, local) | {"CUDA_VISIBLE_DEVICES": gpus(local)}


LAUNCHES = (
    GpuLaunch(
        "torchrun",
        f"torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint n1:29500 --no-python {_BENCHMARK}",
        _torchrun,
    ),
    GpuLaunch("Open MPI", f"mpirun -n 16 --host n1:8,n2:8 --bind-to none {_BENCHMARK}", _open_mpi),
    GpuLaunch("MPICH and Intel MPI (hydra)", f"mpiexec -n 16 -hosts n1:8,n2:8 {_BENCHMARK}", _hydra),
    GpuLaunch("Slurm", f"srun -N 2 -n 16 --gpus-per-node=8 {_BENCHMARK}", _seeing(_slurm, lambda local: ALL)),
    GpuLaunch(
        "Slurm, one GPU for each task",
        f"srun -N 2 -n 16 --gpus-per-task=1 {_BENCHMARK}",
        _seeing(_slurm, lambda local: "0"),
    ),
    GpuLaunch("Flux", f"flux run -N 2 -n 16 -g 1 {_BENCHMARK}", _seeing(_flux, lambda local: ALL)),
    GpuLaunch(
        "Flux, one GPU for each task",
        f"flux run -N 2 -n 16 -g 1 -o gpu-affinity=per-task {_BENCHMARK}",
        _seeing(_flux, str),
    ),
    GpuLaunch("PALS", f"mpiexec -n 16 --ppn 8 --cpu-bind none {_BENCHMARK}", _pals),
)
