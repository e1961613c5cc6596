"""The capabilities of a backend, and what can be set in its library. Each backend declares them in one place.

The planner refuses, ``list`` and ``doctor`` report, and launchers start by this alone, so a backend of another
package gets the same refusals and hints as ours (docs/extending.md). Nothing here loads a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from omb_py.engine.measuring.async_timing import Multiplicity
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.dtypes import DTYPES, MPI_OPS
from omb_py.engine.program.language import all_steps
from omb_py.engine.program.steps import RESIZED

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a knob takes."""

    word: str
    """The value as it is set."""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Knob:
    """One thing that can be set: a control variable of MPI_T (MPI-4.1, section 15.3), or a declared variable."""

    name: str
    type: str
    """The type as the library has it: ``int``, ``char``, ``bool``, …; ``enum`` where it lists its values."""
    value: str
    """The value here: the default, unless the environment says otherwise. Empty: none, or unknown."""
    variable: str = ""
    """The environment variable that sets it; empty: none does."""
    choices: tuple[Choice, ...] = ()
    """All values it takes; empty: any of its type."""
    scope: str = ""
    """Of MPI_T: where it may be written while a program runs. ``all_eq``: on all processes to the same value."""
    verbosity: str = ""
    """Of MPI_T: whom it is for, as ``tuner basic``."""
    category: str = ""
    description: str = ""
    source: str = ""
    """Where this was read; empty: in the library itself."""

    def choice(self, word: str) -> Choice | None:
        """The choice called `word`."""
        return next((choice for choice in self.choices if choice.word == word), None)


@dataclass(frozen=True, slots=True)
class PerformanceVariable:
    """Something that a library counts: a performance variable of MPI_T (MPI-4.1, section 15.3)."""

    name: str
    kind: str
    """Of MPI_T: ``counter`` and ``aggregate`` only grow, ``size`` and ``level`` are what they are now, …"""
    type: str
    binding: str = ""
    """What it belongs to: ``communicator``, ``window``, …; empty: the process."""
    verbosity: str = ""
    category: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LibraryKnobs:
    """Everything that can be set in one library on this machine, and everything that it counts."""

    backend: str
    library: str = ""
    version: str = ""
    how: str = ""
    """The source of the lists: MPI_T, or documentation."""
    knobs: tuple[Knob, ...] = ()
    pvars: tuple[PerformanceVariable, ...] = ()
    reason: str = ""
    """Why there are none; empty where there are some."""
    fix: str = ""
    """What to do about it."""
    joined: bool = False
    """Whether several knobs choose an algorithm together, as NCCL_ALGO and NCCL_PROTO do."""
    trees: tuple[str, ...] = ()
    """The selection of collectives that is built into MPICH, as JSON texts; empty in other libraries."""

    @property
    def title(self) -> str:
        """Name and version of the library."""
        return f"{self.library} {self.version}".strip() or self.backend

    def knob(self, name: str) -> Knob | None:
        """The knob with this name or environment variable, in any letter case."""
        wanted = name.lower()
        return next((knob for knob in self.knobs if wanted in (knob.name.lower(), knob.variable.lower())), None)


SCAN, GROUPS, SCATTER_FROM_ONE_PLACE = "scan", "groups", "scatter from one place"
"""Features that mock-ups of guidelines need (:attr:`Capabilities.without`)."""
FROM_ANYONE: Final = "receive from anyone"
"""A receive from whoever comes first, and an answer to that rank (:attr:`Capabilities.without`)."""
ONE_SIDED: Final = "one-sided"
"""Writes into the memory of another rank (:attr:`Capabilities.without`)."""
_MOST_RANKS = 17


def usable(*words: str) -> Mapping[str, str]:
    """Bindings or devices against which nothing is known: word -> empty reason."""
    return dict.fromkeys(words, "")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of ``omb-py doctor`` about a backend."""

    subject: str
    passed: bool
    text: str
    fix: str = ""
    """The remedy where the check has not passed."""
    device: str = ""
    """The kind of device that it is about; empty: all."""


@dataclass(frozen=True, slots=True)
class OwnOption:
    """The command-line option of one backend, ``--NAME TEXT``, which is named as the backend is."""

    metavar: str
    help: str
    default: str
    """The setting without the option, for the help page."""
    read: Callable[[str], str] = str
    """Text as given -> the same settings always as the same text. Raises UsageError."""
    run_wide: bool = False
    """One text holds for all cells of a run, as where it describes the machine."""
    lacks: Callable[[str, str], str] = lambda binding, text: ""
    """(binding, text) -> why the binding does not take these settings, with what to do."""
    multiplicity: Callable[[str], Multiplicity] = lambda text: Multiplicity()
    """Text -> the number of calls that a sample makes at once."""
    marks: tuple[str, ...] = ()
    """Marks that a runner sets for these settings; rows that differ in one are not comparable."""
    measured_as: Callable[[str, str], str] = lambda form, text: text
    """(value of ``--format``, text) -> the text with which rows are measured as that tool measures them."""
    on_nodes: Callable[[str, int], str] = lambda text, nodes: text
    """(text, number of nodes of the ranks) -> the text with that number."""
    nodes_of: Callable[[str], int] = lambda text: 1
    """Text -> the number of nodes that it simulates."""


@dataclass(frozen=True, slots=True)
class RankStart:
    """How the ranks of a backend are started."""

    needs_mpi: bool = True
    """An MPI launcher starts them; else torchrun does as well."""
    bound: bool = True
    """Each rank gets a core of its own; not where a rank has a thread that moves its data."""
    alone: bool = False
    """One rank by itself can call collectives, as where a machine has one GPU."""
    pass_names: tuple[str, ...] = ()
    """Environment variables that ranks on other nodes need."""
    prefixes: tuple[str, ...] = ()
    """What begins the names of further variables of its library, beyond those that :mod:`omb_py.results.store.redact`
    knows: ranks on other nodes get them, and the store keeps them."""

    def passed(self, environ: Iterable[str]) -> tuple[str, ...]:
        """The names of variables that ranks on other nodes need, of those that are set and others."""
        return (*self.pass_names, *(name for name in environ if name.startswith(self.prefixes)))


@dataclass(frozen=True, slots=True)
class Inspection:
    """What was found of a backend on this machine."""

    reason: str = ""
    """Why it cannot be used here at all."""
    fix: str = ""
    """The remedy: a package to install, a variable to set."""
    library: str = ""
    version: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts for ``doctor``: the path of the library, the launcher that belongs to it."""


@dataclass(frozen=True)
class Capabilities:
    """The abilities of a backend; :meth:`here` adds what this machine lacks. A backend overrides methods as it needs.

    Methods that say why something cannot be done return an empty text where it can. Such a text ends with a colon
    and what to do instead.
    """

    name: str
    bindings: Mapping[str, str] = field(default_factory=lambda: usable("native"))
    """Code that issues the calls -> why it cannot be used here. The first is the default."""
    devices: Mapping[str, str] = field(default_factory=lambda: usable("cpu"))
    """Device that can hold buffers -> why it cannot be used here."""
    buffers: tuple[str, ...] = ("numpy",)
    """Kinds of objects that may hold the bytes (:data:`omb_py.engine.program.buffers.BUFFERS`)."""
    device_buffers: tuple[str, ...] = ()
    """The same on a device, besides `buffers`."""
    title: str = ""
    """Its name in sentences; empty: `name`."""
    priority: int = 50
    """Place in lists, smallest first; the first backend is the default of a request."""

    steps: frozenset[str] = frozenset()
    """Operations that it has; empty: all."""
    dtypes: tuple[str, ...] = ()
    """Element types that it has; empty: all."""
    ops: tuple[str, ...] = MPI_OPS
    """Reductions that it has."""
    instead: str = "use --backend mpi"
    """The remedy where an operation is missing."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Feature that a guideline or a workload needs -> why this backend lacks it."""
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Field of a request -> value -> the error of a request that has it."""

    in_process: bool = False
    """All ranks live in the calling process: no launcher starts them."""
    simulated: bool = False
    """Times are computed, not measured."""
    start: RankStart = RankStart()

    asynchronous: bool = False
    """Calls return before they are done: ``--timing`` chooses what is timed, and all buffers are on the device."""
    in_place_at_rank: bool = False
    """The result of reduce_scatter_block in place lies where the rank's block was, not at the beginning."""
    mpi_sessions: bool = False
    """Can begin with an MPI session (``-I``)."""
    process_group: bool = False
    """Joins its ranks in the default process group of torch.distributed, which ``train`` uses."""
    resizes: bool = False
    """Has communicators that shrink and grow."""
    option: OwnOption | None = None

    inspection: Inspection = Inspection()
    """What :meth:`here` found on this machine."""

    def lacks(self, benchmark: Benchmark, usual: Cell) -> str:
        """Why it cannot do a benchmark, beyond `steps`; `usual` is its cell without any option."""
        return ""

    def refuses(self, benchmark: Benchmark, cell: Cell) -> str:
        """Why it cannot do a benchmark with these options, beyond `dtypes` and `ops`."""
        return ""

    def fitted(self, benchmark: Benchmark, cell: Cell, usual: Cell) -> Cell:
        """The cell as the backend does it, where it has one form of an operation alone."""
        return cell

    def missing(self) -> str:
        """Why it cannot be used on this machine, as far as it shows without starting a process."""
        return ""

    def unbound(self, binding: str, device: str) -> str:
        """Why a binding cannot be used with buffers on a device."""
        return ""

    def inspect(self) -> Capabilities:
        """The same with reasons, library and facts; may start a child process that loads the library."""
        return self

    def checks(self) -> Sequence[Check]:
        """Further lines for ``doctor`` about a backend that was inspected, which may take a while."""
        return ()

    def knobs(self) -> LibraryKnobs | None:
        """What can be set in its library here; may start a child process that loads it. None: it has no library."""
        return None

    @property
    def available(self) -> bool:
        """Whether it can be used here."""
        return not self.inspection.reason

    def here(self) -> Capabilities:
        """The same with what this machine lacks. Never raises."""
        try:
            return self.inspect()
        except Exception as error:  # one broken backend must not hide what the others say
            reason = f"its inspection failed: {type(error).__name__}: {error}"
            return replace(self, inspection=Inspection(reason, "report this"))

    def why_not(self, benchmark: Benchmark, usual: Cell) -> str:
        """Why it cannot do a benchmark, with what to do; `usual` is its cell without any option."""
        resizing = not self.resizes and benchmark.family == "startup"
        if resizing and any(op in RESIZED for op, _ in operations(benchmark, usual)):
            return f"{self.title or self.name} has no communicator that shrinks or grows: use --backend nccl"
        return self.lacks(benchmark, usual) or self._explain_missing_step(benchmark, usual)

    def why_refused(self, benchmark: Benchmark, cell: Cell) -> str:
        """Why it cannot do a benchmark with the options of a cell, with what to do."""
        title, reduces = self.title or self.name, "op" in benchmark.options
        dtype = benchmark.sent_dtype(cell.dtype)
        if self.dtypes and dtype in DTYPES and dtype not in self.dtypes:
            return f"{title} has no type {dtype}: it takes {', '.join(self.dtypes)}"
        if reduces and cell.options.op not in self.ops:
            return f"{title} has no reduction {cell.options.op}: it takes {', '.join(self.ops)}"
        lacking = next((self.without[feature] for feature in benchmark.features(cell) if feature in self.without), "")
        return f"{lacking}: {self.instead}" if lacking else self.refuses(benchmark, cell)

    def _explain_missing_step(self, benchmark: Benchmark, usual: Cell) -> str:
        if not self.steps or benchmark.once or benchmark.runs:
            return ""
        op = next((op for op, _ in operations(benchmark, usual) if op not in self.steps), "")
        return f"{self.title or self.name} has no {op}: {self.instead}" if op else ""


@dataclass(frozen=True, slots=True)
class Backend:
    """The object that an entry point of the group ``omb_py.backends`` names."""

    capabilities: Capabilities
    connect: Callable[[LaunchSpec], Session]
    """Join the ranks of a launch, which `spec` describes. Raises EnvironmentProblem."""

    @property
    def name(self) -> str:
        """The word of ``--backend``."""
        return self.capabilities.name


def fewest_ranks(benchmark: Benchmark) -> int:
    """The smallest number of ranks, from 2 on, with which a benchmark runs."""
    return next((n for n in range(2, _MOST_RANKS) if benchmark.ranks.admits(n)), 2)


def operations(benchmark: Benchmark, usual: Cell) -> Iterator[tuple[str, bool]]:
    """(operation, whether a window of memory is open) for everything that the fewest ranks do in the usual cell."""
    ranks = fewest_ranks(benchmark)
    for rank in range(ranks):
        program = benchmark.program(World(rank, ranks), usual)
        yield from ((step.op, program.window is not None) for step in all_steps(program))
