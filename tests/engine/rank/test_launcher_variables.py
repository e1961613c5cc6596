from __future__ import annotations

import subprocess
import sys

import pytest

from omb_py.engine.rank.launcher_variables import (
    Joined,
    environment_rank,
    joined_environment,
    local_rank,
    on_one_host,
    started_by_mpi,
)
from omb_py.launchers import srun
from omb_py.launchers.srun import inside_step

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_RANK": "3",
}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
SRUN = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_LOCALID": "1"}
INHERITED = SRUN | {"SLURM_PTY_PORT": "40000"}
"""A shell of ``srun --pty``, or a task of an ``srun`` that was typed there: the terminal tells which."""
TORCHRUN_RANK = {"TORCHELASTIC_RUN_ID": "x", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
FLUX = {"FLUX_TASK_RANK": "3", "FLUX_JOB_SIZE": "4", "FLUX_TASK_LOCAL_ID": "1", "PMI_RANK": "3", "PMI_SIZE": "4"}
PRTE = {"PRTE_LAUNCHED": "1", "PMIX_RANK": "1"}
PALS = {
    "PALS_RANKID": "13",
    "PALS_LOCAL_RANKID": "1",
    "PALS_LOCAL_SIZE": "12",
    "PMI_RANK": "13",
    "PMI_SIZE": "24",
    "PMI_LOCAL_RANK": "1",
}
MVAPICH = {
    "MV2_COMM_WORLD_RANK": "5",
    "MV2_COMM_WORLD_SIZE": "8",
    "MV2_COMM_WORLD_LOCAL_RANK": "1",
    "MV2_COMM_WORLD_LOCAL_SIZE": "4",
}


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
        (TORCHRUN_RANK, Joined("torchrun", 1, 2, 1)),
        (PRTE, Joined("prterun", 1, None, None)),
        (FLUX, Joined("flux run", 3, 4, 1)),
        (FLUX | HYDRA, Joined("mpiexec (hydra)", 2, 4, 0)),
        (FLUX | PRTE | OPEN_MPI, Joined("mpiexec (Open MPI)", 3, 8, 1)),
        (PALS, Joined("mpiexec (PALS)", 13, 24, 1)),
        (PALS | HYDRA, Joined("mpiexec (hydra)", 2, 4, 0)),
        (MVAPICH, Joined("mpirun_rsh (MVAPICH)", 5, 8, 1)),
        ({"PMIX_RANK": "4"}, Joined("a PMIx launcher", 4, None, None)),
        ({"PMIX_RANK": "4", "SLURM_STEP_NUM_TASKS": "6"}, Joined("a PMIx launcher", 4, 6, None)),
        (PRTE | {"SLURM_NTASKS": "2"}, Joined("prterun", 1, None, None)),
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
        INHERITED,
    ],
    ids=["salloc", "batch step", "interactive step", "empty", "srun --pty"],
)
def test_a_shell_inside_slurm_is_not_a_rank(shell: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srun, "has_terminal", lambda: True)
    assert joined_environment(shell) is None


def test_a_task_of_srun_in_an_interactive_shell_is_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(srun, "has_terminal", lambda: False)
    assert joined_environment(INHERITED) == Joined("srun", 5, 6, 1)
    assert joined_environment(INHERITED | {"PMI_RANK": "5", "PMI_SIZE": "6"}) == Joined("srun", 5, 6, 1)


TERMINAL = """
import os, sys
from omb_py.launchers.srun import has_terminal
if sys.argv[1:]:
    os.open(os.ttyname(os.openpty()[1]), os.O_RDWR)  # the first that the leader of a session opens controls it
print(has_terminal())
"""


@pytest.mark.parametrize(("words", "answer"), [((), "False"), (("open",), "True")])
def test_whether_a_process_has_a_terminal(words: tuple[str, ...], answer: str) -> None:
    command = [sys.executable, "-c", TERMINAL, *words]
    assert subprocess.check_output(command, text=True, start_new_session=True).strip() == answer


@pytest.mark.parametrize(
    ("environ", "inside"),
    [({}, False), (SRUN, True), (SRUN | {"SLURM_STEP_ID": "4294967291"}, False), ({"SLURM_PTY_PORT": "1"}, True)],
)
def test_a_step_holds_its_cores(environ: dict[str, str], inside: bool) -> None:
    assert inside_step(environ) is inside


@pytest.mark.parametrize(
    ("inner", "launcher"),
    [(OPEN_MPI, "mpiexec (Open MPI)"), (HYDRA, "mpiexec (hydra)"), (TORCHRUN_RANK, "torchrun"), (PRTE, "prterun")],
)
def test_a_launcher_that_srun_helped_wins_over_srun(inner: dict[str, str], launcher: str) -> None:
    helper = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    joined = joined_environment(helper | inner)
    assert joined is not None
    assert (joined.launcher, joined.rank) == (launcher, joined_environment(inner).rank)  # type: ignore[union-attr]


@pytest.mark.parametrize("environ", [{}, OPEN_MPI, HYDRA, SRUN, TORCHRUN_RANK, PRTE, FLUX, PALS, MVAPICH])
def test_the_link_reads_the_same_rank(environ: dict[str, str]) -> None:
    joined = joined_environment(environ)
    assert environment_rank(environ)[0] == (None if joined is None else joined.rank)


def test_torchruns_rank_wins_over_that_of_the_batch_step_around_it() -> None:
    around = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "RANK": "1", "WORLD_SIZE": "2"}
    assert environment_rank(around) == (0, 1)
    assert environment_rank({**around, "TORCHELASTIC_RUN_ID": "x"}) == (1, 2)


def test_the_local_rank_is_known_before_anything_starts() -> None:
    assert local_rank({}) == 0
    assert local_rank({"OMPI_COMM_WORLD_LOCAL_RANK": "2", "LOCAL_RANK": "5"}) == 2
    assert local_rank({"LOCAL_RANK": "5"}) == 5
    around = {"SLURM_LOCALID": "0", "FLUX_TASK_LOCAL_ID": "1", "LOCAL_RANK": "3"}
    assert local_rank(around) == 1
    assert local_rank({**around, "TORCHELASTIC_RUN_ID": "x"}) == 3, "not of the batch step around torchrun"
    assert local_rank(PALS) == 1
    assert local_rank({name: value for name, value in PALS.items() if name != "PMI_LOCAL_RANK"}) == 1
    assert local_rank({"MVP_COMM_WORLD_LOCAL_RANK": "2"}) == 2


@pytest.mark.parametrize(
    ("environ", "alone"),
    [
        ({}, False),
        (OPEN_MPI, False),
        (OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, False),
        (OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "8"}, True),
        (HYDRA, False),
        (HYDRA | {"PMI_SIZE": "2"}, True),
        (TORCHRUN_RANK | {"LOCAL_WORLD_SIZE": "2"}, True),
        (TORCHRUN_RANK | {"LOCAL_WORLD_SIZE": "1", "SLURM_NNODES": "2"}, False),
        (SRUN | {"SLURM_NNODES": "1"}, True),
        (SRUN | {"SLURM_NNODES": "2"}, False),
        (FLUX | {"FLUX_JOB_NNODES": "1"}, True),
        (PALS, False),
        (PALS | {"PMI_SIZE": "12"}, True),
        (MVAPICH | {"MV2_COMM_WORLD_SIZE": "4"}, True),
    ],
)
def test_whether_all_ranks_are_here(environ: dict[str, str], alone: bool) -> None:
    assert on_one_host(environ) is alone


def test_ranks_of_mpi_are_told_from_others() -> None:
    for environ in (OPEN_MPI, HYDRA, PRTE, FLUX, PALS, MVAPICH, SRUN | {"PMI_RANK": "5"}):
        assert started_by_mpi(environ)
        assert not started_by_mpi(environ | {"RANK": "0"})
    assert not any(started_by_mpi(environ) for environ in ({}, SRUN, TORCHRUN_RANK))
