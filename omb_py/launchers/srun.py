"""Slurm: srun, the allocation of a job, and sbatch."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.core_binding import bound_by_user
from omb_py.launchers.launcher import (
    BIND_OPTIONS,
    Allocation,
    Ask,
    BatchRequest,
    BatchSystem,
    Environment,
    LaunchCommand,
    Launcher,
    RankRequest,
    RankVariables,
    expand_hosts,
    first_set,
    host_and_slots,
)
from omb_py.launchers.mpich import agrees_with_pmi
from omb_py.launchers.mpiexec_family import MPICH, OPEN_MPI

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine

_FIRST_SPECIAL_STEP: Final = 4294967290
"""Slurm numbers its interactive, batch and external steps from here on: no rank set was started in those."""
_PTY: Final = "SLURM_PTY_PORT"
"""Set in a shell of ``srun --pty``, and inherited by the tasks of each ``srun`` that is typed there."""
_PLACE_OPTIONS = ("ntasks-per-node", "distribution", "m")


def has_terminal() -> bool:
    """Whether this process has a controlling terminal. Slurm gives the tasks of a step none without ``--pty``."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def inside_step(environ: Environment) -> bool:
    """True inside any step that ``srun`` started, a shell of ``srun --pty`` too: such a step holds its cores."""
    return _PTY in environ or _has_step(environ)


def in_srun_step(environ: Environment) -> bool:
    """True for a task of ``srun``; False in a batch script, in ``salloc`` and in an interactive shell step."""
    return _has_step(environ) and not (_PTY in environ and has_terminal())


def _has_step(environ: Environment) -> bool:
    step = environ.get("SLURM_STEP_ID", "")
    return step.isdigit() and int(step) < _FIRST_SPECIAL_STEP


SRUN_VARIABLES: Final = RankVariables(
    "srun",
    ("SLURM_PROCID",),
    ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    ("SLURM_LOCALID",),
    # no local size: SLURM_NTASKS_PER_NODE is what was asked for, not what this node has
    nodes=("SLURM_NNODES",),
    joins_by_mpi=False,
    detected=in_srun_step,
    precedence=80,
)
_WITH_PMI: Final = replace(
    SRUN_VARIABLES,
    rank=("PMI_RANK", "PMIX_RANK"),
    size=("PMI_SIZE", *SRUN_VARIABLES.size),
    joins_by_mpi=True,
    detected=lambda environ: in_srun_step(environ) and agrees_with_pmi(environ, "SLURM_PROCID"),
    precedence=40,
)


class Slurm(BatchSystem):
    """Allocations from variables, jobs by sbatch."""

    def allocation(self, environ: Environment, ask: Ask) -> Allocation | None:
        name = next((name for name in self.nodes if environ.get(name)), "")
        if not environ.get(self.sign) or not name:
            return None
        job, nodes = first_set(environ, self.job), expand_hosts(environ[name], name)
        # without -n a job has as many tasks as its cores have room for
        asked = any(environ.get(variable) for variable in (*self.tasks, "SLURM_NTASKS_PER_NODE"))
        problem = ""
        # inside a step the number of tasks is that of the step, which may have fewer nodes than the job
        for source in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"):
            if environ.get(source):
                slots = expand_counts(environ[source], source)
                if len(slots) == len(nodes):
                    return Allocation(self.name, job, tuple(zip(nodes, slots, strict=True)), asked and not problem)
                problem = problem or f"{source}={environ[source]} is of {len(slots)} nodes, {name} of {len(nodes)}"
        if problem:
            raise EnvironmentProblem(f"{problem}: give -n and --hosts")
        return Allocation(self.name, job, tuple((node, 1) for node in nodes), asked)

    def node_names(self, environ: Environment) -> list[str]:
        name = next((name for name in self.nodes if environ.get(name)), "")
        try:
            return expand_hosts(environ[name], name) if name else []
        except EnvironmentProblem:
            return []

    def directives(self, request: BatchRequest) -> list[str]:
        # Slurm expands %j in the name of the output, and reads quotes as a shell does
        output = f"{str(request.folder).replace('%', '%%')}/{'%A_%a.out' if request.array > 1 else '%j.out'}"
        options = {
            "job-name": f"omb-py-{request.words[0]}",
            "nodes": request.nodes,
            "ntasks": request.ranks,
            "array": f"0-{request.array - 1}" if request.array > 1 else None,
            "output": shlex.quote(output),
        }
        lines = [f"#SBATCH --{name}={value}" for name, value in options.items() if value is not None]
        lines.append("#SBATCH --no-requeue")  # it would begin again from nothing; --resume goes on
        lines.append("#SBATCH --no-kill")  # where a node is lost, omb-py goes on without it
        lines += ["#SBATCH --exclusive"] if request.array > 1 or request.subsets else []
        # sbatch reads several options a line; a script that is only printed has them too
        return [*lines, *([f"#SBATCH {shlex.join(request.extra)}"] if request.extra else [])]

    def submit_command(self, request: BatchRequest, script: Path, nodes: str) -> tuple[str, ...]:
        chosen = (f"--nodelist={nodes}",) if nodes else ()
        return ("sbatch", "--wait", "--parsable", *chosen, *request.extra, str(script))

    def cancel_command(self, jobs: Sequence[str]) -> tuple[str, ...]:
        return ("scancel", *jobs)


def expand_counts(text: str, source: str) -> list[int]:
    """Expand Slurm's compressed counts to a number for each node. Raises EnvironmentProblem.

    >>> expand_counts("2(x3),1", "X")
    [2, 2, 2, 1]
    """
    counts: list[int] = []
    for run in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", run.strip())
        if match is None:
            raise EnvironmentProblem(f"{source}={text}: {run!r} is no count, as 2(x3): give -n and --hosts")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


class Srun(Launcher):
    def missing(self, machine: LaunchMachine) -> str:
        return "" if machine.which("srun") else "srun not found in PATH: use --launcher mpiexec, or load Slurm's module"

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        srun = machine.which("srun") or "srun"
        options = ["-n", str(ranks.count), "--kill-on-bad-exit=1", "--export=ALL", "--input=none"]
        if inside_step(machine.environ):
            options.append("--overlap")  # the step around us holds the cores
        self._check_job(ranks, machine.environ)
        if ranks.hosts:
            names = ranks.host_names("srun", "give --launcher-args '--ntasks-per-node=…'", _PLACE_OPTIONS)
            if len(names) < len(SLURM.node_names(machine.environ)) and "--overlap" not in options:
                options.append("--overlap")  # a step that lost one of its nodes holds the cores of the others for long
            options += ["-N", str(len(names)), "-w", ",".join(names)]
        if not bound_by_user(ranks.extra, BIND_OPTIONS):
            options.append("--cpu-bind=cores" if ranks.bind else "--cpu-bind=none")
        library = machine.library
        notes: tuple[str, ...] = ()
        chosen = "SLURM_MPI_TYPE" in machine.environ or bound_by_user(ranks.extra, ("mpi",))
        if library.available and not chosen:
            answer = machine.output(srun, "--mpi=list")
            offered = list(dict.fromkeys(re.findall(r"\b(?:pmi2|pmix\w*|cray_shasta|none)\b", answer)))
            kind = srun_type(library.vendor, offered, library.text)
            if kind:
                options.append(f"--mpi={kind}")
            elif offered:
                notes = (f"srun offers no --mpi type for {library.vendor} (it has {', '.join(offered)})",)
        words = (srun, *options, *ranks.extra, *ranks.program)
        return LaunchCommand(
            "srun",
            words,
            machine.rank_environ(),
            local=False,
            notes=notes,
            library=library,
            local_rank_variable=self.local_rank_variable,
        )

    def _check_job(self, ranks: RankRequest, environ: Environment) -> None:
        """Raises UsageError where the step cannot be in the job, with the reason that srun does not give."""
        if int(environ.get("SLURM_HET_SIZE") or 1) > 1:
            if not bound_by_user(ranks.extra, ("het-group",)):
                raise UsageError(
                    "the job is heterogeneous, and srun starts ranks in one of its groups unless it is told: "
                    "srun --het-group=0,1 omb-py …, or --launcher-args=--het-group=0 for one group"
                )
            return
        there = SLURM.node_names(environ)
        lacking = [name for name, _ in map(host_and_slots, ranks.hosts) if there and name not in there]
        if lacking:
            nodes = ", ".join(there[:8]) + (f" and {len(there) - 8} more" if len(there) > 8 else "")
            raise UsageError(
                f"{SLURM.job_text(environ)} has no {', '.join(lacking)}: leave it out of --hosts; its nodes are {nodes}"
            )


def srun_type(vendor: str, offered: Sequence[str], text: str = "") -> str:
    """The ``--mpi`` type of srun with which this MPI library starts up; empty if srun offers none for it.

    `text` is what the library says of itself: Cray's MPICH has its own type.
    """
    if "cray_shasta" in offered and "cray" in f"{vendor} {text}".lower():
        return "cray_shasta"
    pmix = sorted((name for name in offered if name.startswith("pmix")), key=len)
    if vendor == OPEN_MPI:
        return pmix[0] if pmix else ""
    if "pmi2" in offered:
        return "pmi2"
    return pmix[0] if pmix and vendor == MPICH else ""


SLURM: Final = Slurm(
    "Slurm",
    sign="SLURM_JOB_ID",
    job=("SLURM_JOB_ID",),
    nodes=("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
    tasks=("SLURM_NTASKS",),
    read_by_mpiexec=("SLURM_JOB_ID",),
    submit_name="slurm",
    job_shell="$SLURM_JOB_ID",
    node=("SLURMD_NODENAME",),
    queue=("SLURM_JOB_PARTITION",),
    drain="scontrol update nodename={nodes} state=drain reason=omb-py",
    exclude="sbatch --exclude={nodes}",
    submit_fix="submit where Slurm is, or --print-script",
    task_shell='"${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"',
)
LAUNCHER: Final = Srun(
    "srun",
    "Slurm's launcher, inside an allocation",
    (_WITH_PMI, SRUN_VARIABLES),
    prefixes=("SLURM_",),
    per_job="SLURM_(?!MPI_TYPE$|CPU_BIND|DISTRIBUTION|THREADS_PER_CORE|HINT|CPUS_PER_TASK|MEM_BIND)",
    batch=SLURM,
    join_fix="srun and the MPI library do not use the same protocol. What to do: srun --mpi=pmi2 for MPICH and Intel "
    "MPI, srun --mpi=pmix for Open MPI (srun --mpi=list shows what this Slurm has)",
    refusals=(
        (
            "more processors requested|more tasks than|requested node configuration",
            "the job has no room for this step: give -n and --hosts as sbatch got them, or ask sbatch for more",
        ),
        (
            "unable to create step|step creation (?:temporarily )?disabled|job/step already completing",
            "the job takes no step now: see squeue --steps, and what else runs in it",
        ),
        ("mpi type|mpi/|pmi|plugin", "--launcher mpiexec starts ranks in this allocation without Slurm's MPI plugin"),
    ),
)
