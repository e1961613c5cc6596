"""Batch systems whose jobs start ranks by an mpiexec: PBS with PALS, LSF, Grid Engine.

omb-py reads the nodes of a PBS job. Of the others an mpiexec learns by itself, so only their variables are listed.
PALS is the launcher of PBS on HPE's machines; omb-py recognises it around itself.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from omb_py.errors import EnvironmentProblem
from omb_py.launchers.launcher import Allocation, Ask, BatchSystem, Environment, Launcher, RankVariables, first_set
from omb_py.launchers.mpich import agrees_with_pmi


class Pbs(BatchSystem):
    """Allocations from a file with a line for each slot."""

    def allocation(self, environ: Environment, ask: Ask) -> Allocation | None:
        (name,) = self.nodes
        path = environ.get(name)
        if not environ.get(self.sign) or not path:
            return None
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise EnvironmentProblem(f"{name}={path} cannot be read: {error}: give -n and --hosts") from None
        nodes = count_slots(text)
        if not nodes:
            raise EnvironmentProblem(f"{name}={path} names no node: give -n and --hosts")
        return Allocation(self.name, first_set(environ, self.job), nodes)


def count_slots(text: str) -> tuple[tuple[str, int], ...]:
    """(name, slots) of each node in a PBS node file, which has a line for each slot (PBS: MPI process), in its order.

    >>> count_slots("n1\\nn1\\nn2\\n")
    (('n1', 2), ('n2', 1))
    """
    return tuple(Counter(line.split()[0] for line in text.splitlines() if line.strip()).items())


PALS: Final = Launcher(
    variables=(
        RankVariables(
            "mpiexec (PALS)",
            ("PALS_RANKID",),
            ("PMI_SIZE",),
            ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
            ("PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"),
            detected=lambda environ: agrees_with_pmi(environ, "PALS_RANKID"),
            precedence=50,
        ),
    ),
    prefixes=("PALS_", "PBS_"),
    per_job="PALS_|PBS_",
    batch=Pbs(
        "PBS",
        sign="PBS_JOBID",
        job=("PBS_JOBID",),
        nodes=("PBS_NODEFILE",),
        tasks=("PBS_NP",),
        queue=("PBS_QUEUE",),
        drain="pbsnodes -o {nodes}",
        separator=" ",
        read_by_mpiexec=("PBS_NODEFILE",),
    ),
)
LSF: Final = Launcher(
    prefixes=("LSB_",),
    per_job="LSB_",
    batch=BatchSystem(
        "LSF",
        sign="LSB_JOBID",
        job=("LSB_JOBID",),
        nodes=("LSB_DJOB_HOSTFILE", "LSB_HOSTS"),
        tasks=("LSB_DJOB_NUMPROC",),
        queue=("LSB_QUEUE",),
        drain="badmin hclose {nodes}",
        separator=" ",
        read_by_mpiexec=("LSB_HOSTS", "LSB_DJOB_HOSTFILE"),
    ),
)
GRID_ENGINE: Final = Launcher(
    batch=BatchSystem(
        "Grid Engine",
        sign="PE_HOSTFILE",
        job=("JOB_ID",),
        nodes=("PE_HOSTFILE",),
        tasks=("NSLOTS",),
        read_by_mpiexec=("PE_HOSTFILE",),
    )
)
