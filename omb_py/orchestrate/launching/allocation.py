"""What a batch system gave to this job: its nodes, and how many ranks go on each. Pure but for reading one file.

Slurm says it in variables, PBS in a file with a line a slot, Flux when asked.
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
    """Names, in the scheduler's order, each with the ranks that it has room for."""
    asked: bool = True
    """The user said how many tasks there are; else the slots are cores."""

    @property
    def ranks(self) -> int:
        """Ranks that there is room for."""
        return sum(slots for _, slots in self.nodes)

    @property
    def hosts(self) -> tuple[str, ...]:
        """As ``--hosts`` takes them: ``node1:4``."""
        return tuple(f"{name}:{slots}" for name, slots in self.nodes)


def _run(words: tuple[str, ...]) -> str:
    try:
        told = subprocess.run(words, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{words[0]} does not answer: {error}: give -n and --hosts") from None
    if told.returncode:
        last = (told.stderr.strip().splitlines() or [f"exit status {told.returncode}"])[-1]
        raise EnvironmentProblem(f"{' '.join(words[:3])}: {last}: give -n and --hosts")
    return told.stdout


def allocation(environ: Mapping[str, str], ask: Callable[[tuple[str, ...]], str] = _run) -> Allocation | None:
    """The allocation around this process; None outside one.

    Args:
        environ: usually ``os.environ``.
        ask: runs a command and returns what it prints; Flux alone is asked.

    Raises:
        EnvironmentProblem: what the scheduler says cannot be read; with the variable or file.
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
    # without -n a job has the tasks that its cores have room for
    asked = any(environ.get(n) for n in (*SLURM.tasks, "SLURM_NTASKS_PER_NODE"))
    for source in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"):
        if environ.get(source):
            slots = expand_counts(environ[source], source)
            if len(slots) != len(nodes):
                raise EnvironmentProblem(f"{source}={environ[source]} is of {len(slots)} nodes, {name} of {len(nodes)}")
            return Allocation(SLURM.name, job, tuple(zip(nodes, slots, strict=True)), asked)
    return Allocation(SLURM.name, job, tuple((node, 1) for node in nodes), asked)


def _pbs(environ: Mapping[str, str]) -> Allocation:
    (name,) = PBS.nodes
    path = environ[name]
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(f"{name}={path} cannot be read: {error}: give -n and --hosts") from None
    found = nodefile(text)
    if not found:
        raise EnvironmentProblem(f"{name}={path} names no node: give -n and --hosts")
    return Allocation(PBS.name, first_set(environ, PBS.job), found)


def nodefile(text: str) -> tuple[tuple[str, int], ...]:
    """The nodes of a PBS node file, a line for each slot (PBS: each MPI process), in the order in which they come.

    >>> nodefile("n1\\nn1\\nn2\\n")
    (('n1', 2), ('n2', 1))
    """
    return tuple(Counter(line.split()[0] for line in text.splitlines() if line.strip()).items())


def flux_resources(text: str, job: str) -> Allocation:
    """What ``flux resource list`` says of an instance, a line for each kind of node: node list, nodes, cores.

    Raises EnvironmentProblem when it cannot be read.
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
    """A compressed list of hosts, as Slurm and Flux write it.

    Args:
        text: as ``node[01-03,7],login``.
        source: where it stands, for the message.

    Raises:
        EnvironmentProblem: it cannot be read.

    >>> expand_hosts("node[01-03,7],r[1-2]n[1-2]", "X")
    ['node01', 'node02', 'node03', 'node7', 'r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    found: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text.strip()):
        names = [""]
        for k, piece in enumerate(_PART.split(part)):
            ends = [piece] if k % 2 == 0 else _numbers(piece, text, source)
            names = [name + end for name in names for end in ends]
        if any(not name or set(name) & set("[] \t") for name in names):
            raise EnvironmentProblem(f"{source}={text} is no list of hosts: give -n and --hosts")
        found += names
    return found


def _numbers(piece: str, text: str, source: str) -> list[str]:
    found: list[str] = []
    for span in piece.split(","):
        low, dash, high = span.partition("-")
        high = high if dash else low
        if not (low.isascii() and low.isdigit() and high.isascii() and high.isdigit()) or int(high) < int(low):
            raise EnvironmentProblem(f"{source}={text}: {span!r} is no range of numbers: give -n and --hosts")
        found += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return found


def expand_counts(text: str, source: str) -> list[int]:
    """Slurm's compressed counts, a number a node. Raises EnvironmentProblem.

    >>> expand_counts("2(x3),1", "X")
    [2, 2, 2, 1]
    """
    found: list[int] = []
    for part in text.split(","):
        told = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if told is None:
            raise EnvironmentProblem(f"{source}={text}: {part!r} is no count, as 2(x3): give -n and --hosts")
        found += [int(told[1])] * int(told[2] or 1)
    return found


def ranks_for(benchmark: Benchmark, found: Allocation | None) -> int | None:
    """How many ranks a benchmark has in an allocation where ``-n`` is not given; None: the default number.

    As many as the user asked the scheduler for, where the benchmark admits so many.
    """
    if found is None or not found.asked or not benchmark.ranks.admits(found.ranks):
        return None
    return found.ranks
