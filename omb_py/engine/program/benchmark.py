"""The declaration of a benchmark besides its program: sizes, counts, rank rule, metric, needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Program

if TYPE_CHECKING:
    from omb_py.engine.measuring.cell_result import CellResult
    from omb_py.engine.session import Session

Family = Literal[
    "pt2pt",
    "collective",
    "non-blocking",
    "persistent",
    "neighborhood",
    "one-sided",
    "startup",
    "host",
    "guideline",
    "workload",
    "training",
    "function",
]

Timed = Literal["rank 0", "all", "first half", "first node", "other nodes"]
"""``first half``: the senders of pairs i, i + ranks/2; ``first node``: the ranks on the host of rank 0."""

MEANS = ("loop", "lap")
"""The whole loop over its iterations, with the readings of the clock between the samples; or the samples alone."""
LARGE_MESSAGE_BYTES = 8192
"""Above this many bytes OMB switches to its large-message iteration counts."""


@dataclass(frozen=True, slots=True)
class World:
    """The place of one rank: its number, how many there are, and the host of each."""

    rank: int
    size: int
    hosts: tuple[str, ...] = ()


def halves(ranks: int) -> tuple[str, ...]:
    """Assumed hosts, where nothing is known of them: two nodes with half the ranks each."""
    return tuple("first" if rank < ranks // 2 else "second" for rank in range(ranks))


@dataclass(frozen=True, slots=True)
class Cell:
    """One (benchmark, options, size) to be measured in a launch. JSON-serialisable by ``vars``-like means."""

    benchmark: str
    backend: str
    binding: str
    size: int
    """Message size in bytes as OMB prints it (per destination for alltoall, per rank for allgather)."""
    dtype: str = "char"
    """One of :data:`omb_py.engine.program.dtypes.DTYPES`."""
    device: str = "cpu"
    buffer: str = "numpy"
    object_kind: str = "bytes"
    """The kind of Python object for buffer ``object``: one of :data:`omb_py.engine.program.buffers.OBJECTS`."""
    out_of_band: bool = False
    """Large buffers inside an object are not pickled but sent beside it (mpi4py.util.pkl5)."""
    op: str = "sum"
    root: int = 0
    """Root of a collective; -1: another one in every iteration."""
    in_place: bool = False
    """MPI_IN_PLACE."""
    tests: int = 0
    """Calls of MPI_Test while a non-blocking collective runs; the computation is cut into as many pieces."""
    imbalance: float = 0.0
    """Blocks of a vector collective differ by up to this part of the size."""
    groups: str = ""
    """Groups of ranks that run at once (``grammar.rank_groups``); empty: all ranks are one."""
    traffic: str = ""
    """Bytes that each rank sends to each other (``grammar.traffic``); empty: all equal, or as `imbalance` says."""
    neighborhood: str = "cart:1:1"
    """``cart:DIMENSIONS:RADIUS`` or ``graph:0>1,1>0``."""
    workload: str = ""
    """``NAME:KEY=VALUE,…`` of a workload (docs/workloads)."""
    window: int = 64
    vary_window: bool = False
    """The cell belongs to a sweep over windows as well as sizes (``-V``)."""
    print_rate: int = 1
    """Whether OMB's text has the column Messages/s."""
    buffer_num: str = "single"
    """``multiple``: a buffer for each message of a window, or for each of some iterations in turn."""
    ddt: str = ""
    """Layout of a derived datatype (:mod:`omb_py.engine.program.datatype_layouts`); empty: contiguous, without one."""
    partitions: int = 8
    thread_counts: str = "1:2"
    """Threads that send on rank 0 : threads that receive on rank 1."""
    process_counts: str = "2:2"
    """Children that sleep beside rank 0 : beside rank 1."""
    window_kind: str = "allocate"
    """Kind of window of a one-sided benchmark (:data:`omb_py.engine.program.rma.WINDOWS`)."""
    sync: str = "flush"
    """Synchronisation that completes a one-sided operation (:data:`omb_py.engine.program.rma.SYNCS`)."""
    mean: str = "loop"
    """What the printed mean of a one-sided benchmark holds, one of :data:`MEANS`."""
    session: bool = False
    """MPI is started with a session, and the communicator comes from it (``-I``)."""
    process_sync: str = "barrier"
    timing: str = ""
    """Timing of calls that return before they are done (``engine.measuring.async_timing``); empty: calls block."""
    batch: int = 1
    """Calls that a sample times together."""
    settings: str = ""
    """Text of the backend's own option (:class:`omb_py.backends.capabilities.OwnOption`)."""
    staging: str = ""
    """``staged``: bytes on a device travel through host memory (:mod:`omb_py.engine.devices.placement`)."""
    placement: str = ""
    """``SOURCE DESTINATION`` of buffers, each of :data:`omb_py.engine.devices.placement.PLACES`; empty: on `device`."""
    filler: str = "cpu"
    """Computation beside a non-blocking collective, one of :data:`omb_py.engine.devices.placement.FILLERS`."""
    cache: str = "hot"
    """``rotate``: each iteration uses other memory (:mod:`omb_py.engine.measuring.cache_rotation`)."""
    iterations: int = 1000
    """OMB's count for this size, or the user's."""
    auto: bool = True
    """May stop early, between ``min(100, iterations)`` and ``iterations``."""
    warmup: int = 100
    precision: float = 0.01
    time_limit: float | None = None
    energy: bool = False
    """Energy, clocks and throttling of the loop are read, too (:mod:`omb_py.engine.observers.energy`)."""
    counters: bool = False
    """Counters of the network are read around the loop (:mod:`omb_py.engine.observers.network`)."""
    pvars: str = ""
    """Performance variables of the library, with commas, that are read around the loop."""
    validate: bool = False
    distinct: bool = False
    """Validation runs the same body with a buffer of its own for every slot of a window."""
    pairs: str = ""
    """Measured between every pair of ranks: a schedule (``engine.program.pair_schedule``); empty: by ranks 0 and 1."""
    sweep: int = 0
    """Number of this cell's request in the run: a size that fails ends its own sweep, not the other ones."""

    @property
    def observers(self) -> Mapping[str, str]:
        """What is read around the loop: name of the observer -> text of its option."""
        asked = {"energy": self.energy, "pvars": bool(self.pvars), "counters": self.counters}
        return {name: self.pvars if name == "pvars" else "" for name, is_asked in asked.items() if is_asked}


@dataclass(frozen=True, slots=True)
class Counts:
    """Iterations and warm-ups for small and large messages."""

    small: int
    small_warmup: int
    large: int
    large_warmup: int

    def of(self, size: int) -> tuple[int, int]:
        """(iterations, warm-ups) for a message of `size` bytes."""
        if size > LARGE_MESSAGE_BYTES:
            return self.large, self.large_warmup
        return self.small, self.small_warmup


@dataclass(frozen=True, slots=True)
class Sizes:
    """Default range of message sizes in bytes, doubling; ``None`` for a benchmark without a size."""

    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class RankRule:
    """The rank counts that a benchmark admits."""

    text: str
    admits: Callable[[int], bool]
    over_nodes: Callable[[tuple[str, ...]], bool] | None = None
    """Whether it admits these hosts of its ranks; None: any."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The rule by which samples become the printed number.

    A *sample* is a lap divided by `parts`.  ``us``: the value is the mean of the timed ranks' mean samples.
    ``MB/s``: the value is ``bytes_of(cell, ranks) / 1e6`` per mean sample in seconds.
    """

    unit: Literal["us", "MB/s"]
    formula: str
    """For a reader: the formula of the printed number from the laps."""
    parts: int = 1
    parts_by: Callable[[Cell], int] | None = None
    """`parts`, where it depends on the options."""
    lap: str = "time"
    """The lap that is the sample, or the name of the sum of the laps `adds`."""
    adds: tuple[str, ...] = ()
    """Laps of the last stage that add up to the sample."""
    beside: str = ""
    """A lap between the samples that the printed mean holds too, as OMB's mean over a whole loop (``Cell.mean``)."""
    communication: str = ""
    """The lap that is the communication alone, where the sample holds more: algbw and busbw divide by it."""
    bytes_of: Callable[[Cell, int], int] | None = None
    """Bytes that one sample moves, for ``MB/s``."""
    bytes_over: Callable[[Cell, Sequence[str]], int] | None = None
    """The same from the hosts of the ranks, where it depends on them."""
    derive: Callable[[Mapping[str, list[float]]], dict[str, float]] | None = None
    """Further columns of the text, from each lap's means over the timed ranks in µs."""
    medians: str = ""
    """Prefix of laps whose median over the iterations is stored beside their mean, as ``LAP.median``."""
    apart: tuple[str, ...] = ()
    """Laps that are samples of their own: each becomes a row, marked with its name as `side`."""

    def parts_of(self, cell: Cell) -> int:
        """The number by which a lap of a cell is divided."""
        return self.parts_by(cell) if self.parts_by else self.parts


@dataclass(frozen=True, slots=True)
class Needs:
    """Properties that are fixed when a process starts. Cells are grouped into launches by equal needs."""

    thread_level: Literal["single", "funneled", "serialized", "multiple"] = "funneled"
    fork: bool = False
    """Ranks fork while they communicate: libraries that pin memory must know before they start."""
    session: bool = False
    """MPI begins with a session instead of MPI_Init."""
    device: str = "cpu"
    """The local rank chooses the device before the library starts."""
    share_device: bool = False
    """Several ranks may use one device."""
    placement: str = ""
    """Place of the buffers at each end, in a launch on devices (``Cell.placement``)."""


class Volume(NamedTuple):
    """What a cell moves, where its size and type do not say it."""

    dtype: str
    """The types of its calls, joined by ``+``."""
    bytes_per_rank: int
    """Most bytes that a rank puts into its calls."""
    bytes_total: int
    """Bytes that all ranks put into their calls."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A declaration: everything about a benchmark that is not the engine's."""

    name: str
    family: Family
    summary: str
    program: Callable[[World, Cell], Program]
    metric: Metric
    sizes: Sizes | None
    counts: Counts
    ranks: RankRule
    timed: Timed
    """The ranks whose samples count."""
    dtype: str
    options: frozenset[str]
    """Options that mean something here: ``type op window validation full`` …"""
    bytes_total: Callable[[int, int], int]
    """(size, ranks) -> bytes of the whole operation, the nccl-tests *size* column; of IMB's what Mbytes/sec counts."""
    bandwidth: str | None = None
    """Name of the algbw/busbw formula (:mod:`omb_py.results.statistics.bandwidth`)."""
    rooted: bool = False
    """One rank is special: `Cell.root` means something."""
    needs: Needs = Needs()
    once: bool = False
    """There is one sample a launch: the time that the session noted under the benchmark's name when it began."""
    unit_of: Callable[[Cell], int] | None = None
    """Elements that a message must have at least; None: one."""
    zero_size: bool = False
    """A message of zero bytes means something."""
    one_element: bool = False
    """Without a size: it moves one element of the type, whose size is printed."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Fields of a cell that have another default here, as C OMB has it."""
    refuses: Callable[[Cell], str] | None = None
    """Gives the reason why a combination of options is refused, with the remedy; empty when it is accepted."""
    fits: Callable[[Cell, int], None] | None = None
    """Raises UsageError where a cell's options do not fit the number of ranks."""
    from_anyone: Callable[[Cell], bool] = lambda cell: False
    """Whether a rank receives from whoever comes first, and answers that rank."""
    volume: Callable[[str, int], Volume] | None = None
    """(`Cell.workload`, ranks) -> types and bytes that rows store; None: those of size and type."""
    fewest: int = 100
    """Iterations before which a loop does not stop early."""
    runs: Callable[[Session, Cell, Callable[[str], None]], CellResult] | None = None
    """Measures a cell by itself, without a program of steps (:mod:`omb_py.suites.training`)."""

    def cell(self, backend: str, binding: str, size: int, **more: Any) -> Cell:
        """A cell of this benchmark, with its own defaults."""
        return Cell(self.name, backend, binding, size, **{"dtype": self.dtype, **dict(self.defaults), **more})

    def sizes_for(self, dtype: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Message sizes in bytes: `sizes`, or the one that this benchmark has."""
        return sizes if self.sizes else (DTYPES[dtype].itemsize if self.one_element else 0,)

    def timed_ranks(self, ranks: int, hosts: Sequence[str] = ()) -> tuple[int, ...]:
        """The ranks whose samples count, in order; `hosts` of all ranks where it depends on them."""
        hosts = hosts or halves(ranks)
        chosen: dict[Timed, Callable[[int], bool]] = {
            "rank 0": lambda r: r == 0,
            "all": lambda r: True,
            "first half": lambda r: r < ranks // 2,
            "first node": lambda r: hosts[r] == hosts[0],
            "other nodes": lambda r: hosts[r] != hosts[0],
        }
        return tuple(filter(chosen[self.timed], range(ranks)))

    @property
    def timed_words(self) -> str:
        """The ranks whose samples count, in words."""
        words = {"all": "every rank", "first half": "the first half of the ranks", "rank 0": "rank 0"}
        return words.get(self.timed, f"the ranks of the {self.timed}")

    @property
    def minimum_size(self) -> int:
        """Smallest size of the default sweep, in bytes."""
        return self.sizes.minimum if self.sizes else 0


def cell_from(data: Mapping[str, Any]) -> Cell:
    """A cell from its JSON form. Raises TypeError on unknown fields."""
    return Cell(**data)
