"""The result of a cell, as a rank sends it to the parent process: typed at both ends, JSON between them."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.engine.program.benchmark import Benchmark, Cell, cell_from

if TYPE_CHECKING:
    from typing import TypedDict

    import numpy as np
    from numpy.typing import NDArray

    from omb_py.engine.program.pair_schedule import Pair

    class LapSeries(TypedDict):
        """The samples of a lap in µs, one for each iteration."""

        max: Samples
        """The maximum over the timed ranks."""
        avg: Samples
        """The average over the timed ranks."""

else:  # to compile the names of types takes a rank a millisecond
    LapSeries = dict

Samples: TypeAlias = "array[float] | NDArray[np.floating[Any]]"
Message: TypeAlias = Mapping[str, Any]
"""An object of JSON; the readers here know its fields."""
SIDE = "side"
"""The mark of a row that is one of several laps of its cell."""


@dataclass(slots=True)
class CellResult:
    """A finished cell, complete on the process that holds rank 0.

    :meth:`to_message` and :meth:`from_message` are inverse to each other::

        channel.send("cell", **result.to_message())
        row = make_row(launch, CellResult.from_message(message))
    """

    cell: Cell
    iterations: int
    stop_reason: str
    """``fixed``, ``count``, ``precision``, ``time``, or ``unsettled``: as ``count``, and no interval can be told."""
    program_hash: str
    """The version of the benchmark."""
    series: dict[str, LapSeries] = field(default_factory=dict)
    """Series of each lap."""
    laps: dict[str, list[float]] = field(default_factory=dict)
    """Mean of each timed rank in µs, by lap."""
    slowest_rank_share: list[float] | None = field(default_factory=list)
    """For each timed rank the share of iterations in which it was the slowest."""
    slowest_rank_changes: float = 0.0
    """Calls at which another rank was the slowest than in the call before."""
    validated: bool | None = None
    """Whether every byte was right; None where nothing was checked."""
    wrong_bytes: int | None = None
    bytes_moved: int | None = None
    extra: dict[str, float] = field(default_factory=dict)
    """Further metrics of the row: what observers read, and what the runner noted."""
    marks: dict[str, str] = field(default_factory=dict)
    """Remarks of the runner for the row's `parameters`: through the host, on a shared device, …"""
    index: int = -1
    """Index of the cell in its launch."""
    skew_us: float | None = None
    """Median time between the first and the last rank to leave the cell's synchronisation."""
    number: int = 0
    """Number of the pass of a soak; 0 without one."""

    def to_message(self) -> Message:
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "cell": asdict(self.cell),
            "series": {
                lap: {"max": encode(of_lap["max"]), "avg": encode(of_lap["avg"])} for lap, of_lap in self.series.items()
            },
        }

    @classmethod
    def from_message(cls, message: Message) -> CellResult:
        """The result that :meth:`to_message` has described; other fields of the message are ignored."""
        values = {each.name: message[each.name] for each in fields(cls) if each.name in message}
        series = {
            lap: LapSeries(max=decode(of_lap["max"]), avg=decode(of_lap["avg"]))
            for lap, of_lap in message["series"].items()
        }
        return cls(**{**values, "cell": cell_from(message["cell"]), "series": series})

    def split_by_lap(self, benchmark: Benchmark) -> Iterator[CellResult]:
        if not benchmark.metric.apart:
            yield self
        for lap in benchmark.metric.apart:
            yield replace(
                self,
                series={lap: self.series[lap]},
                laps={lap: self.laps[lap]},
                slowest_rank_share=self.slowest_rank_share if lap == benchmark.metric.lap else None,
                marks={**self.marks, SIDE: lap, "guideline": benchmark.summary},
            )


@dataclass(frozen=True, slots=True)
class PairRound:
    """The pairs of ranks that were measured at once; complete on the process that holds rank 0."""

    cell: Cell
    number: int
    """Number of the round."""
    last: bool
    """Whether the cell is complete with this round."""
    pairs: Sequence[Pair]
    """(who sends first, who answers), in order."""
    samples: NDArray[np.floating[Any]]
    """Microseconds, shape (pairs, iterations), as the first rank of each pair timed them."""
    program_hash: str
    bytes_moved: int | None
    index: int = -1
    """Index of the cell in its launch."""
    skew_us: float | None = None

    def to_message(self) -> Message:
        """The round as JSON; ``round_samples`` has the iterations of one pair after the other."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self) if each.name != "samples"},
            "cell": asdict(self.cell),
            "round_samples": encode(self.samples.ravel()),
        }

    @classmethod
    def from_message(cls, message: Message) -> PairRound:
        """The round that :meth:`to_message` has described; other fields of the message are ignored."""
        import numpy as np  # ranks of the native binding load none

        pairs: list[Pair] = [(first, second) for first, second in message["pairs"]]
        samples = np.frombuffer(decode(message["round_samples"])).reshape(len(pairs), -1)
        values = {of.name: message[of.name] for of in fields(cls) if of.name in message}
        return cls(**{**values, "cell": cell_from(message["cell"]), "pairs": pairs, "samples": samples})


def encode(values: Samples) -> dict[str, str]:
    """Encode an array as base64 of little-endian float64."""
    content = array("d", values if isinstance(values, array) else values.tolist())
    if sys.byteorder == "big":
        content.byteswap()
    return {"f8": base64.b64encode(content.tobytes()).decode()}


def decode(value: Mapping[str, str]) -> array[float]:
    """Decode an array from base64 of little-endian float64."""
    content = array("d", base64.b64decode(value["f8"]))
    if sys.byteorder == "big":
        content.byteswap()
    return content
