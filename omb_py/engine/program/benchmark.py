"""The declaration of a benchmark besides its program: sizes, counts, rank rule, metric, needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from omb_py.engine.program.dtypes import DTYPES, reduction_dtype
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


class Options(dict[str, Any]):
    """Values of a cell's options by their names in the option table, which alone knows names and defaults.

    ``options.window`` is short for ``options["window"]``. They are complete where the option table made the cell; ranks
    get them as JSON.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the cell has no option {name!r}") from None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How often a cell is measured."""

    iterations: int = 1000
    """OMB's count for this size, or the user's."""
    auto: bool = True
    """May stop early, between ``min(100, iterations)`` and ``iterations``."""
    warmup: int = 100
    precision: float = 0.01
    """Relative half-width of the 95 % interval of the median at which `auto` stops."""
    time_limit: float | None = None
    """Seconds that the loop may take."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One (benchmark, options, size) to be measured in a launch; :func:`cell_from` reads its JSON form."""

    benchmark: str
    backend: str
    binding: str
    size: int
    """Message size in bytes as OMB prints it (per destination for alltoall, per rank for allgather)."""
    dtype: str = "char"
    """One of :data:`omb_py.engine.program.dtypes.DTYPES`."""
    device: str = "cpu"
    buffer: str = "numpy"
    placement: str = ""
    """``SOURCE DESTINATION`` of buffers, each of :data:`omb_py.engine.devices.placement.PLACES`; empty: on `device`."""
    settings: str = ""
    """Text of the backend's own option (:class:`omb_py.backends.capabilities.OwnOption`)."""
    options: Options = field(default_factory=Options, hash=False)
    sampling: Sampling = Sampling()
    observers: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What is read around the loop: name of the observer -> text of its option."""
    validate: bool = False
    distinct: bool = False
    """Validation runs the same body with a buffer of its own for every slot of a window."""
    pairs: str = ""
    """Measured between every pair of ranks: a schedule (``engine.program.pair_schedule``); empty: by ranks 0 and 1."""
    sweep: int = 0
    """Number of this cell's request in the run: a size that fails ends its own sweep, not the other ones."""

    def with_options(self, **options: object) -> Cell:
        """The same cell with other values of some options."""
        return replace(self, options=Options(self.options, **options))


@dataclass(frozen=True, slots=True)
class Counts:
    """Iterations and warm-ups for small and large messages."""

    small: int
    small_warmup: int
    large: int
    large_warmup: int
    fewest: int = 100
    """Iterations before which a loop does not stop early."""

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
    """A lap between the samples that the printed mean holds too, as OMB's mean over a whole loop (option ``mean``)."""
    communication: str = ""
    """The lap that is the communication alone, where the sample holds more: algbw and busbw divide by it."""
    bytes_of: Callable[[Cell, int], int] | None = None
    """Bytes that one sample moves, for ``MB/s``."""
    bytes_over: Callable[[Cell, Sequence[str]], int] | None = None
    """The same from the hosts of the ranks, where it depends on them."""
    derive: Callable[[Mapping[str, list[float]]], dict[str, float]] | None = None
    """Further columns of the text, from each lap's means over the timed ranks in µs."""
    derive_of_cell: Callable[[Cell, int, Mapping[str, float]], dict[str, float]] | None = None
    """The same from the options, the number of ranks, and each lap's mean in µs."""
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


@dataclass(frozen=True, slots=True)
class Volume:
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
    needs: Needs = Needs()
    once: bool = False
    """There is one sample a launch: the time that the session noted under the benchmark's name when it began."""
    unit_of: Callable[[Cell], int] | None = None
    """Elements that a message must have at least; None: one."""
    zero_size: bool = False
    """A range of sizes from 0 begins with a message of no bytes; elsewhere at 1, as in OMB."""
    one_element: bool = False
    """Without a size: it moves one element of the type, whose size is printed."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Options that have another default here, as C OMB has it."""
    refuses: Callable[[Cell], str] | None = None
    """Gives the reason why a combination of options is refused, with the remedy; empty when it is accepted."""
    fits: Callable[[Cell, int], None] | None = None
    """Raises UsageError where a cell's options do not fit the number of ranks."""
    features: Callable[[Cell], tuple[str, ...]] = lambda cell: ()
    """What a cell needs of a backend, of those that some lack (``Capabilities.without``)."""
    volume: Callable[[Cell, int], Volume] | None = None
    """(cell, ranks) -> types and bytes that rows store; None: those of size and type."""
    runs: Callable[[Session, Cell, Callable[[str], None]], CellResult] | None = None
    """Measures a cell by itself, without a program of steps (:mod:`omb_py.suites.training`)."""

    @property
    def rooted(self) -> bool:
        """Whether one rank is special."""
        return "root" in self.options

    def sizes_for(self, dtype: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Message sizes in bytes: `sizes`, or the one that this benchmark has."""
        return sizes if self.sizes else (DTYPES[dtype].itemsize if self.one_element else 0,)

    def sent_dtype(self, dtype: str) -> str:
        """The element type that its calls name where `dtype` is asked for.

        Collective reductions take MPI_SIGNED_CHAR for MPI_CHAR, on which MPI defines no arithmetic. OMB's one-sided
        ones send MPI_CHAR as it is, which MPICH and Open MPI reduce.
        """
        return reduction_dtype(dtype) if "op" in self.options and self.family != "one-sided" else dtype

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
    return Cell(**{**data, "options": Options(data["options"]), "sampling": Sampling(**data["sampling"])})
