"""Flux: ``flux run``, and the resources of an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from omb_py.errors import EnvironmentProblem
from omb_py.launchers.core_binding import bound_by_user
from omb_py.launchers.launcher import (
    Allocation,
    Ask,
    BatchSystem,
    Environment,
    LaunchCommand,
    Launcher,
    RankRequest,
    RankVariables,
    expand_hosts,
    first_set,
)
from omb_py.launchers.mpiexec_family import OPEN_MPI

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine

_RESOURCES = ("flux", "resource", "list", "--states=all", "--no-header", "--format={nodelist} {nnodes} {ncores}")


class Flux(BatchSystem):
    """Allocations by asking flux."""

    def allocation(self, environ: Environment, ask: Ask) -> Allocation | None:
        job = first_set(environ, self.job)
        return parse_resources(ask(_RESOURCES), job) if environ.get(self.sign) and job else None


def parse_resources(text: str, job: str) -> Allocation:
    """Parse ``flux resource list``, which has a line for each kind of node: node list, number of nodes, cores.

    Raises EnvironmentProblem when the text cannot be read.
    """
    nodes: list[tuple[str, int]] = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        if len(words) != 3 or not words[1].isdigit() or not words[2].isdigit() or words[1] == "0":
            raise EnvironmentProblem(f"flux resource list says {line.strip()!r}, which is no list: give --hosts")
        nodes += [(name, int(words[2]) // int(words[1])) for name in expand_hosts(words[0], "flux resource list")]
    if not nodes:
        raise EnvironmentProblem("flux resource list names no node: give -n and --hosts")
    return Allocation("Flux", job, tuple(dict(nodes).items()), asked=False)


class FluxRun(Launcher):
    def missing(self, machine: LaunchMachine) -> str:
        return "" if machine.which("flux") else "flux not found in PATH: use --launcher mpiexec, or load Flux's module"

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        options = ["-n", str(ranks.count)]
        if ranks.hosts:
            names = ranks.host_names("flux run", "leave them out, or give the same to each host,", ())
            options += ["-N", str(len(names)), f"--requires=host:{','.join(names)}"]
        if ranks.gpus != "none" and not bound_by_user(ranks.extra, ("g", "gpus-per-task", "gpus-per-node")):
            # to ranks without a GPU of the job Flux says CUDA_VISIBLE_DEVICES=-1; shared ones are more ranks than GPUs
            options.append("-g1" if ranks.gpus == "own" else "-ogpu-affinity=off")
        library = machine.library
        if not bound_by_user(ranks.extra, ("o", "setopt")):
            options.append(f"-ocpu-affinity={'per-task' if ranks.bind else 'off'}")
            if library.vendor == OPEN_MPI:
                options.append("-opmi=pmix")  # Flux speaks the protocol of other libraries without an option
        words = (machine.which("flux") or "flux", "run", *options, *ranks.extra, *ranks.program)
        return LaunchCommand(
            "flux run",
            words,
            machine.rank_environ(),
            local=False,
            library=library,
            local_rank_variable=self.local_rank_variable,
        )


LAUNCHER: Final = FluxRun(
    "flux",
    "Flux's launcher, inside an instance",
    (
        RankVariables(
            "flux run",
            ("FLUX_TASK_RANK",),
            ("FLUX_JOB_SIZE",),
            ("FLUX_TASK_LOCAL_ID",),
            # no local size: Flux says how many nodes a job has, not how many tasks are on this one
            nodes=("FLUX_JOB_NNODES",),
            joins_by_mpi=False,
            detected=lambda environ: "MPI_LOCALNRANKS" not in environ,
            precedence=30,
        ),
    ),
    prefixes=("FLUX_",),
    per_job="FLUX_",
    batch=Flux(
        "Flux",
        sign="FLUX_URI",
        job=("FLUX_ENCLOSING_ID", "FLUX_JOB_ID"),
        nodes=(),
        drain="flux resource drain {nodes} omb-py",
        exclude="flux batch --requires=-host:{nodes}",
    ),
)
