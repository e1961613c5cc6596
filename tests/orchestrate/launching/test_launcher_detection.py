from __future__ import annotations

import pytest

from omb_py.engine.rank.link import environment_rank
from omb_py.orchestrate.launching.launcher_detection import Joined, joined_environment

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_RANK": "3",
}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
SRUN = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_LOCALID": "1"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
FLUX = {"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4", "FLUX_TASK_LOCAL_ID": "1", "PMI_RANK": "3", "PMI_SIZE": "4"}
PRTE = {"PRTE_LAUNCHED": "1", "PMIX_RANK": "1"}


@pytest.mark.parametrize(
    ("environ", "joined"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "", "PMI_RANK": "none"}, None),
        (OPEN_MPI, Joined("mpiexec (Open MPI)", 3, 8, 1)),
        (HYDRA, Joined("mpiexec (hydra)", 2, 4, 0)),
        (SRUN, Joined("srun", 5, 6, 1)),
        (SRUN | {"SLURM_NTASKS": "9", "SLURM_STEP_NUM_TASKS": "6"}, Joined("srun", 5, 6, 1)),
        (SRUN | {"PMI_RANK": "5", "PMI_SIZE": "6"}, Joined("srun", 5, 6, 1)),
        (SRUN | {"PMIX_RANK": "5"}, Joined("srun", 5, 6, 1)),
        (TORCHRUN, Joined("torchrun", 1, 2, 1)),
        (PRTE, Joined("prterun", 1, None, None)),
        (FLUX, Joined("flux run", 3, 4, 1)),
        (FLUX | HYDRA, Joined("mpiexec (hydra)", 2, 4, 0)),
        ({"PMIX_RANK": "4"}, Joined("a PMIx launcher", 4, None, None)),
    ],
)
def test_each_launcher_is_known_by_its_variables(environ: dict[str, str], joined: Joined | None) -> None:
    assert joined_environment(environ) == joined


@pytest.mark.parametrize(
    "shell",
    [
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "6", "SLURM_PROCID": "0"},
        SRUN | {"SLURM_STEP_ID": "4294967291"},
        SRUN | {"SLURM_STEP_ID": "4294967290"},
        SRUN | {"SLURM_STEP_ID": ""},
        SRUN | {"SLURM_PTY_PORT": "40000"},
    ],
    ids=["salloc", "batch step", "interactive step", "empty", "srun --pty"],
)
def test_a_shell_inside_slurm_is_not_a_rank(shell: dict[str, str]) -> None:
    assert joined_environment(shell) is None


@pytest.mark.parametrize(
    ("inner", "launcher"),
    [(OPEN_MPI, "mpiexec (Open MPI)"), (HYDRA, "mpiexec (hydra)"), (TORCHRUN, "torchrun"), (PRTE, "prterun")],
)
def test_a_launcher_that_srun_helped_wins_over_srun(inner: dict[str, str], launcher: str) -> None:
    helper = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    joined = joined_environment(helper | inner)
    assert joined is not None
    assert (joined.launcher, joined.rank) == (launcher, joined_environment(inner).rank)  # type: ignore[union-attr]


@pytest.mark.parametrize("environ", [{}, OPEN_MPI, HYDRA, SRUN, TORCHRUN, PRTE])
def test_the_link_reads_the_same_rank(environ: dict[str, str]) -> None:
    joined = joined_environment(environ)
    assert environment_rank(environ)[0] == (None if joined is None else joined.rank)
