"""The allocation of a batch job: its nodes, and the number of ranks on each.

Slurm gives it in variables, PBS in a file with a line for each slot; Flux is asked by a command.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.rank.launcher_variables import FLUX, PBS, SLURM, first_set
from omb_py.errors import EnvironmentProblem

_FLUX_ASKS = ("flux", "resource", "list", "--states=all", "--no-header", "--format={nodelist} {nnodes} {ncores}")
_PART = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes and slots of a job."""

    scheduler: str
    job: str
    nodes: tuple[tuple[str, int], ...]
    """(name, ranks that fit on the node), in the scheduler's order."""
    asked: bool = True
    """True when the user asked for a number of tasks; else the slots are cores."""

    @property
    def ranks(self) -> int:
        """Number of ranks that fit on all nodes."""
        return sum(slots for _, slots in self.nodes)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The nodes in the form that ``--hosts`` takes: ``node1:4``."""
        return tuple(f"{name}:{slots}" for name, slots in self.nodes)


def _run(words: tuple[str, ...]) -> str:
    try:
        process = subprocess.run(
            words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{words[0]} does not answer: {error}: give -n and --hosts") from None
    if process.returncode:
        last = (process.stderr.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise EnvironmentProblem(f"{' '.join(words[:3])}: {last}: give -n and --hosts")
    return process.stdout


def allocation(environ: Mapping[str, str], ask: Callable[[tuple[str, ...]], str] = _run) -> Allocation | None:
    """Find the allocation in which this process runs; None outside one.

    Args:
        environ: usually ``os.environ``.
        ask: runs a command and returns its output; used for Flux alone.

    Raises:
        EnvironmentProblem: the scheduler's answer cannot be read; the text names the variable or file.
    """
    for system, read in ((SLURM, _slurm), (PBS, _pbs)):
        if environ.get(system.sign) and first_set(environ, system.nodes):
            return read(environ)
    job = first_set(environ, FLUX.job)
    if environ.get(FLUX.sign) and job:
        return flux_resources(ask(_FLUX_ASKS), job)
    return None


def _slurm(environ: Mapping[str, str]) -> Allocation:
    name = next(name for name in SLURM.nodes if environ.get(name))
    job = first_set(environ, SLURM.job)
    nodes = expand_hosts(environ[name], name)
    # without -n a job has as many tasks as its cores have room for
    asked = any(environ.get(variable) for variable in (*SLURM.tasks, "SLURM_NTASKS_PER_NODE"))
    problem = ""
    # inside a step the number of tasks is that of the step, which may have fewer nodes than the job
    for source in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"):
        if environ.get(source):
            slots = expand_counts(environ[source], source)
            if len(slots) == len(nodes):
                return Allocation(SLURM.name, job, tuple(zip(nodes, slots, strict=True)), asked and not problem)
            problem = problem or f"{source}={environ[source]} is of {len(slots)} nodes, {name} of {len(nodes)}"
    if problem:
        raise EnvironmentProblem(f"{problem}: give -n and --hosts")
    return Allocation(SLURM.name, job, tuple((node, 1) for node in nodes), asked)


def _pbs(environ: Mapping[str, str]) -> Allocation:
    (name,) = PBS.nodes
    path = environ[name]
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(f"{name}={path} cannot be read: {error}: give -n and --hosts") from None
    nodes = nodefile(text)
    if not nodes:
        raise EnvironmentProblem(f"{name}={path} names no node: give -n and --hosts")
    return Allocation(PBS.name, first_set(environ, PBS.job), nodes)


def nodefile(text: str) -> tuple[tuple[str, int], ...]:
    """(name, slots) of each node in a PBS node file, which has a line for each slot (PBS: MPI process), in its order.

    >>> nodefile("n1\\nn1\\nn2\\n")
    (('n1', 2), ('n2', 1))
    """
    return tuple(Counter(line.split()[0] for line in text.splitlines() if line.strip()).items())


def flux_resources(text: str, job: str) -> Allocation:
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
    return Allocation(FLUX.name, job, tuple(dict(nodes).items()), asked=False)


def expand_hosts(text: str, source: str) -> list[str]:
    """Expand a compressed list of hosts, as Slurm and Flux write it.

    Args:
        text: such as ``node[01-03,7],login``.
        source: variable or command that gave the text, for the error.

    Raises:
        EnvironmentProblem: the text is no list of hosts.

    >>> expand_hosts("node[01-03,7],r[1-2]n[1-2]", "X")
    ['node01', 'node02', 'node03', 'node7', 'r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    hosts: list[str] = []
    # split at commas outside brackets
    for part in re.split(r",(?![^\[]*\])", text.strip()):
        names = [""]
        for k, piece in enumerate(_PART.split(part)):
            # re.split with a group alternates: plain text, then what stood in brackets
            ends = [piece] if k % 2 == 0 else _numbers(piece, text, source)
            names = [name + end for name in names for end in ends]
        if any(not name or set(name) & set("[] \t") for name in names):
            raise EnvironmentProblem(f"{source}={text} is no list of hosts: give -n and --hosts")
        hosts += names
    return hosts


def _numbers(piece: str, text: str, source: str) -> list[str]:
    numbers: list[str] = []
    for span in piece.split(","):
        low, dash, high = span.partition("-")
        high = high if dash else low
        if not (low.isascii() and low.isdigit() and high.isascii() and high.isdigit()) or int(high) < int(low):
            raise EnvironmentProblem(f"{source}={text}: {span!r} is no range of numbers: give -n and --hosts")
        numbers += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return numbers


def expand_counts(text: str, source: str) -> list[int]:
    """Expand Slurm's compressed counts to a number for each node. Raises EnvironmentProblem.

    >>> expand_counts("2(x3),1", "X")
    [2, 2, 2, 1]
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            raise EnvironmentProblem(f"{source}={text}: {part!r} is no count, as 2(x3): give -n and --hosts")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def ranks_for(benchmark: Benchmark, job: Allocation | None) -> int | None:
    """Number of ranks for a benchmark without ``-n``: the tasks that the user asked the scheduler for.

    Returns:
        None, which means the default number, where there is no such number or the benchmark does not admit it.
    """
    if job is None or not job.asked or not benchmark.ranks.admits(job.ranks):
        return None
    return job.ranks
