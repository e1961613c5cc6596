"""A launcher that does not belong to the library, before MPI_Init would end the process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omb_py.backends.mpi.start import refuse_pmix_launcher
from omb_py.errors import EnvironmentProblem

MPICH = "MPICH Version:      5.0.2\nMPICH configure:    --with-pm=hydra"
OPEN_MPI, SLURM = {"PMIX_NAMESPACE": "1", "OMPI_COMM_WORLD_SIZE": "2"}, {"PMIX_NAMESPACE": "1", "SLURM_STEP_ID": "0"}


def library(text: str) -> Any:
    return SimpleNamespace(Get_library_version=lambda: text, get_vendor=lambda: ("MPICH", (5, 0, 2)))


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (OPEN_MPI, "Open MPI's mpirun started this rank, but its library is MPICH 5.0.2.* with MPICH's mpiexec, or"),
        (OPEN_MPI | {"SLURM_STEP_ID": "0"}, "Open MPI's mpirun started this rank"),
        (SLURM, "srun --mpi=pmix started this rank, .* start it with srun --mpi=pmi2"),
    ],
)
def test_mpich_without_pmix_refuses_a_launcher_of_pmix(environ: dict[str, str], said: str) -> None:
    with pytest.raises(EnvironmentProblem, match=said):
        refuse_pmix_launcher(library(MPICH), environ)


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (MPICH, {"PMI_RANK": "0"}),
        (MPICH + " --with-pmix=/usr", SLURM),
        (MPICH, SLURM | {"MPIR_CVAR_PMI_VERSION": "2"}),
        ("Open MPI v5.0.11", OPEN_MPI),
        ("Intel(R) MPI Library 2021.19", OPEN_MPI),
    ],
)
def test_a_library_that_may_know_the_launcher_is_started(text: str, environ: dict[str, str]) -> None:
    refuse_pmix_launcher(library(text), environ)
