"""Was this process started by a launcher? The variables that each launcher sets say so.

The more specific launcher wins: ``mpiexec`` inside a Slurm job starts its helpers through ``srun``, so that its ranks
see Slurm's variables too, with the helper's numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omb_py.engine.rank.launcher_environment import by_torchrun

_FIRST_SPECIAL_STEP = 4294967290
"""Slurm numbers its interactive, batch and external steps from here on: no rank set was started in those."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The place that a launcher gave to this process."""

    launcher: str
    rank: int
    size: int | None
    """None where the launcher does not say."""
    local_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """The variables of one launcher; of several names the first that is set counts."""

    launcher: str
    rank: tuple[str, ...]
    size: tuple[str, ...]
    local_rank: tuple[str, ...]
    holds: Callable[[Mapping[str, str]], bool] = lambda environ: True
    """A further condition on the environment."""


def in_srun_step(environ: Mapping[str, str]) -> bool:
    """True for a task of ``srun``; False in a batch script, in ``salloc`` and in an interactive shell step."""
    step = environ.get("SLURM_STEP_ID", "")
    interactive = "SLURM_PTY_PORT" in environ
    return step.isdigit() and int(step) < _FIRST_SPECIAL_STEP and not interactive


FAMILIES: tuple[Family, ...] = (
    Family("torchrun", ("RANK",), ("WORLD_SIZE",), ("LOCAL_RANK",), by_torchrun),
    Family("mpiexec (Open MPI)", ("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",), ("OMPI_COMM_WORLD_LOCAL_RANK",)),
    Family(
        "srun",
        ("PMI_RANK", "PMIX_RANK"),
        ("PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        ("SLURM_LOCALID",),
        # srun's own PMI, not that of an mpiexec whose helpers srun started: the two ranks agree.
        lambda environ: (
            in_srun_step(environ)
            and "MPI_LOCALNRANKS" not in environ
            and environ.get("SLURM_PROCID") == environ.get("PMI_RANK", environ.get("PMIX_RANK"))
        ),
    ),
    Family(
        "flux run",
        ("FLUX_TASK_RANK",),
        ("FLUX_JOB_SIZE",),
        ("FLUX_TASK_LOCAL_ID",),
        lambda environ: "MPI_LOCALNRANKS" not in environ,
    ),
    Family("mpiexec (hydra)", ("PMI_RANK",), ("PMI_SIZE",), ("MPI_LOCALRANKID",)),
    Family("prterun", ("PMIX_RANK",), ("PMIX_SIZE",), ("PMIX_LOCAL_RANK",), lambda e: "PRTE_LAUNCHED" in e),
    Family("srun", ("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), ("SLURM_LOCALID",), in_srun_step),
    Family("a PMIx launcher", ("PMIX_RANK",), ("PMIX_SIZE",), ("PMIX_LOCAL_RANK",)),
)


def joined_environment(environ: Mapping[str, str]) -> Joined | None:
    """The launcher that started this process, and the place it gave; None outside a launcher.

    Args:
        environ: usually ``os.environ``.
    """
    for family in FAMILIES:
        rank = _number(environ, family.rank)
        if rank is None or not family.holds(environ):
            continue
        return Joined(family.launcher, rank, _number(environ, family.size), _number(environ, family.local_rank))
    return None


def _number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = environ.get(name, "").strip()
        if value.isdigit():
            return int(value)
    return None


SPEAK_S = 1.5


def let_rank_0_speak() -> None:
    """Wait before a rank leaves with an error that rank 0 prints.

    Launchers end the whole job when the first rank fails: rank 0 might not have come to its line by then.
    """
    time.sleep(SPEAK_S)
