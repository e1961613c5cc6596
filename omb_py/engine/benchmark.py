"""What a benchmark declares besides its program: sizes, counts, rank rule, metric, needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from omb_py.engine.program import Program

Family = Literal["pt2pt", "collective", "non-blocking", "persistent", "neighborhood", "one-sided", "startup"]

LARGE_MESSAGE_BYTES = 8192
"""Above this many bytes OMB switches to its large-message iteration counts."""


@dataclass(frozen=True, slots=True)
class World:
    """The place of one rank: its number, how many there are, and the host of each."""

    rank: int
    size: int
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One (benchmark, options, size) to be measured in a launch. JSON-serialisable by ``vars``-like means."""

    benchmark: str
    backend: str
    binding: str
    size: int
    """Message size in bytes as OMB prints it (per destination for alltoall, per rank for allgather)."""
    dtype: str = "char"
    """One of :data:`omb_py.engine.dtypes.DTYPES`."""
    device: str = "cpu"
    buffer: str = "numpy"
    object_kind: str = "bytes"
    """Of buffer ``object``: one of :data:`omb_py.engine.buffers.OBJECTS`."""
    out_of_band: bool = False
    """Large buffers inside an object are not pickled but sent beside it (mpi4py.util.pkl5)."""
    op: str = "sum"
    root: int = 0
    """Of a collective with a root; -1: another one in every iteration."""
    in_place: bool = False
    """MPI_IN_PLACE."""
    tests: int = 0
    """Calls of MPI_Test while a non-blocking collective runs; the computing is cut into so many pieces."""
    imbalance: float = 0.0
    """Blocks of a vector collective differ by up to this part of the size."""
    neighborhood: str = "cart:1:1"
    """``cart:DIMENSIONS:RADIUS`` or ``graph:0>1,1>0``."""
    window: int = 64
    process_sync: str = "barrier"
    cache: str = "hot"
    """``rotate``: each iteration uses other memory (:mod:`omb_py.engine.rotate`)."""
    iterations: int = 1000
    """OMB's count for this size, or the user's."""
    auto: bool = True
    """May stop early, between ``min(100, iterations)`` and ``iterations``."""
    warmup: int = 100
    precision: float = 0.01
    time_limit: float | None = None
    validate: bool = False
    distinct: bool = False
    """Validation runs the same body with a buffer of its own for every slot of a window."""


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
    """Which rank counts a benchmark admits."""

    text: str
    admits: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Metric:
    """How samples become the printed number.

    A *sample* is a lap divided by `parts`.  ``us``: the value is the mean of the timed ranks' mean samples.
    ``MB/s``: the value is ``bytes_of(cell, ranks) / 1e6`` per mean sample in seconds.
    """

    unit: Literal["us", "MB/s"]
    formula: str
    """For a reader: how the printed number is made from the laps."""
    parts: int = 1
    lap: str = "time"
    """The lap that is the sample, or what the sum of the laps `adds` is called."""
    adds: tuple[str, ...] = ()
    """Laps of the last stage that add up to the sample."""
    bytes_of: Callable[[Cell, int], int] | None = None
    """Bytes that one sample moves, for ``MB/s``."""
    derive: Callable[[Mapping[str, list[float]]], dict[str, float]] | None = None
    """Further columns of the text, from each lap's means over the timed ranks in µs."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What is fixed when a process starts. Cells are grouped into launches by equal needs."""

    thread_level: Literal["single", "funneled", "serialized", "multiple"] = "funneled"


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
    timed: Literal["rank 0", "all", "first half"]
    """Whose samples count. ``first half``: the senders of pairs i, i + ranks/2."""
    dtype: str
    options: frozenset[str]
    """Options that mean something here: ``type op window validation full`` …"""
    bytes_total: Callable[[int, int], int]
    """(size, ranks) -> bytes of the whole operation, the nccl-tests *size* column."""
    bandwidth: str | None = None
    """Name of the algbw/busbw formula (:mod:`omb_py.results.bandwidth`)."""
    rooted: bool = False
    """One rank is special: `Cell.root` means something."""
    needs: Needs = Needs()
    zero_size: bool = False
    """A message of zero bytes means something."""

    def timed_ranks(self, ranks: int) -> range:
        """The ranks whose samples count."""
        return range({"rank 0": 1, "all": ranks, "first half": ranks // 2}[self.timed])

    @property
    def minimum_size(self) -> int:
        """Smallest size of the default sweep, in bytes."""
        return self.sizes.minimum if self.sizes else 0


def cell_from(data: Mapping[str, Any]) -> Cell:
    """A cell from its JSON form. Raises TypeError on unknown fields."""
    return Cell(**data)
