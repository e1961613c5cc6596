"""The base class of launchers, and what they are asked and answer. Every rank loads this, so it imports little."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.launchers.core_binding import CoreBinding, bind_cores, bound_by_user

if TYPE_CHECKING:
    from omb_py.launchers.machine import LaunchMachine
    from omb_py.launchers.mpi_library import MPILibrary

Environment = Mapping[str, str]
Ask = Callable[[tuple[str, ...]], str]
"""Runs a command and returns its output. Raises EnvironmentProblem."""
Gpus = Literal["none", "own", "shared"]
"""Whether ranks use GPUs, one each or several ranks one."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Set because libraries that start threads of their own would compete with ranks for cores."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
HOST_OPTIONS = ("host", "hosts", "H", "hostfile", "hostlist", "machinefile", "machine", "f")
BIND_OPTIONS = (
    "bind-to",
    "map-by",
    "rank-by",
    "cpu-set",
    "cpu-list",
    "bind-to-core",
    "cpu-bind",
    "rankfile",
    "binding",
)


@dataclass(frozen=True)
class RankVariables:
    """Variables by which a process knows its rank; of several names the first that is set counts."""

    name: str
    """The launcher's name in messages: ``mpiexec (Open MPI)``."""
    rank: tuple[str, ...]
    size: tuple[str, ...]
    local_rank: tuple[str, ...] = ()
    local_size: tuple[str, ...] = ()
    """Number of ranks on this node."""
    nodes: tuple[str, ...] = ()
    """Number of nodes, where the launcher says it."""
    address: tuple[str, ...] = ()
    """Host and port at which the ranks can meet."""
    joins_by_mpi: bool = True
    """These processes can find each other by MPI."""
    detected: Callable[[Environment], bool] = lambda environ: True
    """A further condition, beside a rank variable that is set, under which this launcher started the process."""
    precedence: int = 5
    """The smallest is asked first. A launcher that starts its helpers by another one comes before that one."""


@dataclass(frozen=True)
class Allocation:
    """Nodes and slots of a batch job."""

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


@dataclass(frozen=True)
class BatchRequest:
    """A command line to be run as batch jobs."""

    words: tuple[str, ...]
    """The command line, without ``omb-py``."""
    folder: Path
    """Folder for the script and the jobs' output; the jobs themselves run in the current folder."""
    nodes: int | None = None
    """Nodes of each job."""
    ranks: int | None = None
    """Tasks of each job."""
    array: int = 1
    """Number of equal jobs, which share no node while they run."""
    subsets: tuple[str, ...] = ()
    """Node lists; each gets a job."""
    extra: tuple[str, ...] = ()
    """The user's own arguments for the scheduler."""
    scheduler: str = "slurm"
    """A value of ``--submit``."""
    typed: tuple[str, ...] = ()
    """The command line with the options of one job: what goes on with a run of it is another job. Empty: not known."""

    @property
    def several(self) -> bool:
        """Whether there is more than one job."""
        return self.array > 1 or len(self.subsets) > 1


@dataclass(frozen=True)
class BatchSystem:
    """A batch system: its variables, which every process of a job sees. Subclasses read allocations and submit jobs."""

    name: str
    sign: str
    """A variable that is set in every job."""
    job: tuple[str, ...]
    """The job's id."""
    nodes: tuple[str, ...]
    """The job's nodes: a list, or the path of a file."""
    tasks: tuple[str, ...] = ()
    """Number of tasks for which the job has room."""
    read_by_mpiexec: tuple[str, ...] = ()
    """Variables through which an mpiexec learns of the job's other nodes by itself."""
    submit_name: str = ""
    """Value of ``--submit``; empty: omb-py submits no job to it, and the methods below `allocation` are not used."""
    job_shell: str = ""
    """Shell text for the number of a job: ``$SLURM_JOB_ID``."""
    task_shell: str = ""
    """Shell text for the name of a job or of a task of an array: ``41``, ``41_0``."""
    submit_fix: str = ""
    """What to do where its commands are not here."""
    node: tuple[str, ...] = ()
    """The node of a task that the system's own launcher started."""
    queue: tuple[str, ...] = ()
    """The partition or queue of the job."""
    drain: str = ""
    """The command that takes nodes out of service, with ``{nodes}``."""
    exclude: str = ""
    """The words of a submission that leave nodes out, with ``{nodes}``."""
    separator: str = ","
    """What stands between the nodes of the two."""

    def allocation(self, environ: Environment, ask: Ask) -> Allocation | None:
        """The nodes of the job around this process; None outside one. Raises EnvironmentProblem: not readable."""
        return None

    def node_names(self, environ: Environment) -> list[str]:
        """The nodes of the job as the system names them; empty where this process cannot know."""
        text = first_set(environ, self.nodes)
        if os.path.isabs(text):  # a file with a line for each node or slot, on the first node alone
            try:
                text = " ".join(line.split()[0] for line in Path(text).read_text().splitlines() if line.strip())
            except (OSError, UnicodeDecodeError):
                return []
        return list(dict.fromkeys(text.split()))

    def job_text(self, environ: Environment) -> str:
        """The job around this process, for a ticket: ``Slurm job 4711 (gpu)``, with its queue; empty outside one."""
        job, queue = first_set(environ, self.job), first_set(environ, self.queue)
        if not environ.get(self.sign) or not job:
            return ""
        return f"{self.name} job {job}{f' ({queue})' if queue else ''}"

    def out_of_service(self, nodes: Sequence[str]) -> str:
        """How bad nodes are kept from jobs; empty where the system has no command that omb-py knows."""
        listed = self.separator.join(nodes)
        named = {
            "take out of service": self.drain.format(nodes=listed),
            "leave out of a job": self.exclude.format(nodes=listed),
        }
        return "; ".join(f"{what}: {command}" for what, command in named.items() if command)

    def directives(self, request: BatchRequest) -> list[str]:
        """The first lines of a job script. The nodes of a subset are not in it."""
        raise NotImplementedError

    def submit_command(self, request: BatchRequest, script: Path, nodes: str) -> tuple[str, ...]:
        """A command that prints the job's number in its first line and ends when the job has ended."""
        raise NotImplementedError

    def cancel_command(self, jobs: Sequence[str]) -> tuple[str, ...]:
        """A command that ends jobs."""
        raise NotImplementedError


@dataclass(frozen=True)
class RankRequest:
    """The ranks to start."""

    program: tuple[str, ...]
    """The command line of one rank."""
    count: int
    hosts: tuple[str, ...] = ()
    """Host names, each perhaps with ``:slots``; empty: this machine, or the nodes of the batch job."""
    extra: tuple[str, ...] = ()
    """The user's own launcher arguments."""
    pass_names: tuple[str, ...] = ()
    """Variables that ranks on other nodes need. All of them are set when the command runs."""
    decisive: tuple[str, ...] = ()
    """Variables of the user that decide how ranks communicate."""
    bind: bool = True
    gpus: Gpus = "none"

    def hosts_with_slots(self) -> str:
        """Hosts with a number of slots each, so that all ranks fit. An address of IPv6 can have none."""
        each = -(-self.count // max(1, len(self.hosts)))
        return ",".join(host if ":" in host else f"{host}:{each}" for host in self.hosts)

    def host_names(self, launcher: str, advice: str, own: Sequence[str]) -> list[str]:
        """Hosts for a launcher of a batch system, which takes names and shares the ranks out evenly.

        Args:
            own: words of the user's by which the launcher places ranks.

        Raises:
            UsageError: a host is an address of IPv6, or the slots ask for something else.
        """
        pairs = [host_and_slots(host) for host in self.hosts]
        for name, _ in pairs:
            if ":" in name:
                raise UsageError(
                    f"{launcher} takes no address of IPv6 in --hosts, as {name}: "
                    "give the node's name or --launcher mpiexec"
                )
        slots = [count for _, count in pairs if count is not None]
        even = slots[0] >= self.count if len(pairs) == 1 and slots else all(s * len(pairs) == self.count for s in slots)
        if not even and not bound_by_user(self.extra, own):
            raise UsageError(f"{launcher} takes no slots in --hosts: {advice} or --launcher mpiexec")
        return [name for name, _ in pairs]


@dataclass(frozen=True)
class LaunchCommand:
    """The command that starts ranks."""

    name: str
    """The launcher's name in messages: ``mpiexec (MPICH 5.0.2)``."""
    words: tuple[str, ...]
    """The command line."""
    environ: Environment
    """The whole environment of the command."""
    local: bool
    """Whether all ranks run on this machine."""
    oversubscribed: bool = False
    notes: tuple[str, ...] = ()
    """Sentences for the user, to be shown before measuring."""
    library: MPILibrary | None = None
    local_rank_variable: str = "LOCAL_RANK"


@dataclass(frozen=True)
class Launcher:
    """What starts ranks, and how a rank knows its place.

    A launcher of another package is an object that an entry point of the group ``omb_py.launchers`` names::

        from omb_py.plugin import LaunchCommand, Launcher, LaunchMachine, RankRequest, RankVariables

        class Prun(Launcher):
            def missing(self, machine: LaunchMachine) -> str:
                return "" if machine.which("prun") else "prun not found in PATH: load its module"

            def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
                words = ("prun", "-n", str(ranks.count), *ranks.extra, *ranks.program)
                return LaunchCommand("prun", words, machine.rank_environ(), local=False)

        LAUNCHER = Prun(
            "prun",
            "the launcher of our cluster",
            (RankVariables("prun", rank=("PRUN_RANK",), size=("PRUN_SIZE",), local_rank=("PRUN_LOCAL_RANK",)),),
        )

    ``omb-py latency --launcher prun`` uses it. One that omb-py only has to recognise around itself needs no methods.
    """

    name: str = ""
    """Value of ``--launcher``; empty: omb-py starts no ranks with it, or `mpiexec` chooses it."""
    summary: str = ""
    variables: tuple[RankVariables, ...] = ()
    """How its processes know their rank; the first entry is that of ranks which omb-py starts."""
    hosts: tuple[str, ...] = ()
    """Variables that name the nodes on which it starts ranks without being told on the command line."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of the names of its variables and of its batch system's. The store keeps those with a launch."""
    per_job: str = ""
    """Pattern of what begins the names of variables that it sets anew for each job or rank. All others are settings of
    people, which two launches must share to be of one environment."""
    batch: BatchSystem | None = None
    """The batch system whose launcher it is."""
    join_fix: str = ""
    """Why its processes may see no common world, and what to do; empty: a general text."""
    refusals: tuple[tuple[str, str], ...] = ()
    """What it says where it starts no ranks, as a pattern, and what to do then."""

    def missing(self, machine: LaunchMachine) -> str:
        """Why it cannot be used here, with what to do; empty when it can."""
        return ""

    def command(self, ranks: RankRequest, machine: LaunchMachine) -> LaunchCommand:
        """The command that starts ranks. Raises EnvironmentProblem or UsageError."""
        raise EnvironmentProblem(f"omb-py starts no ranks with {self.name}: use --launcher mpiexec")

    def fix_of(self, output: str) -> str:
        """What to do after what it said; empty where that is no refusal it is known for."""
        return next((fix for pattern, fix in self.refusals if re.search(pattern, output, re.IGNORECASE)), "")

    @property
    def local_rank_variable(self) -> str:
        """The variable from which ranks that it starts read their local rank."""
        return self.variables[0].local_rank[0]


def host_and_slots(entry: str) -> tuple[str, int | None]:
    """The host of an entry of ``--hosts``, and its slots; None where it has none, as an address of IPv6.

    >>> host_and_slots("n1:4"), host_and_slots("n1"), host_and_slots("fd00::1")
    (('n1', 4), ('n1', None), ('fd00::1', None))
    """
    host, _, slots = entry.partition(":")
    return (host, int(slots)) if re.fullmatch("[0-9]+", slots) else (entry, None)


def first_set(environ: Environment, names: Sequence[str]) -> str:
    """The value of the first of some variables that is not empty; empty where none is."""
    return next((environ[name] for name in names if environ.get(name)), "")


def placement(ranks: RankRequest, machine: LaunchMachine, local: bool) -> CoreBinding:
    """How ranks are bound. On other nodes, whose cores are not known, each rank gets a core."""
    own = bound_by_user(ranks.extra, BIND_OPTIONS)
    if not local:
        return CoreBinding("default" if own else "core" if ranks.bind else "none")
    placed = bind_cores(ranks.count, machine.cores)
    if own or not ranks.bind:
        return CoreBinding("default" if own else "none", oversubscribed=placed.oversubscribed, notes=placed.notes)
    return placed


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
    for group in re.split(r",(?![^\[]*\])", text.strip()):
        names = [""]
        for k, piece in enumerate(re.split(r"\[([^\[\]]*)\]", group)):
            # re.split with a group alternates: plain text, then what stood in brackets
            ends = [piece] if k % 2 == 0 else _expand_numbers(piece, text, source)
            names = [name + end for name in names for end in ends]
        if any(not name or set(name) & set("[] \t") for name in names):
            raise EnvironmentProblem(f"{source}={text} is no list of hosts: give -n and --hosts")
        hosts += names
    return hosts


def _expand_numbers(piece: str, text: str, source: str) -> list[str]:
    numbers: list[str] = []
    for span in piece.split(","):
        low, dash, high = span.partition("-")
        high = high if dash else low
        if not (low.isascii() and low.isdigit() and high.isascii() and high.isdigit()) or int(high) < int(low):
            raise EnvironmentProblem(f"{source}={text}: {span!r} is no range of numbers: give -n and --hosts")
        numbers += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return numbers
