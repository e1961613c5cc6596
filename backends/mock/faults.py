"""Faults that can be injected, and how a lost rank is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omb_py.errors import LaunchFailed


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a fault strikes: a rank, and optionally a message size in bytes and an iteration."""

    rank: int
    size: int | None = None
    iteration: int | None = None

    def strikes(self, size: int, iteration: int) -> bool:
        """Whether it strikes in this iteration of a cell of `size` bytes."""
        return self.size in (None, size) and self.iteration in (None, iteration)


class RankLost(LaunchFailed):
    """A rank of the simulation hangs or has died. `iteration` is None in set-up and teardown."""

    verb = "is lost"
    tail = ""

    def __init__(self, rank: int, host: str, step: int, doing: str, iteration: int | None, cell: str) -> None:
        when = f"iteration {iteration} of {cell}" if iteration is not None else f"set-up or teardown of {cell}"
        super().__init__(f"rank {rank} ({host}) {self.verb} in step {step} ({doing}), {when}{self.tail}")
        self.rank, self.host, self.step = rank, host, step
        self.doing, self.iteration, self.cell = doing, iteration, cell


class RankHangs(RankLost):
    """A rank waits for something that never happens, by an injected fault or by its program."""

    verb = "hangs"
    tail = "; nothing can move"


class RankDied(RankLost):
    """A rank died by an injected fault."""

    verb = "died"


class Flipper:
    """Delivers wrong bytes: it inverts the first byte of a rank's first delivery in each iteration that is struck."""

    def __init__(self, faults: Iterable[Fault], size: int) -> None:
        self._size = size
        self._faults: dict[int, list[Fault]] = {}
        for fault in faults:
            if fault.size in (None, size):
                self._faults.setdefault(fault.rank, []).append(fault)
        self._done: dict[int, int] = {}

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks to which wrong bytes may be delivered."""
        return tuple(self._faults)

    def restart(self) -> None:
        """Begin a new loop, in which iteration numbers may repeat."""
        self._done.clear()

    def deliver(self, rank: int, data: NDArray[np.uint8], iteration: int) -> None:
        """Invert the first byte of `data`, just delivered to `rank`, if a fault strikes."""
        faults = self._faults.get(rank)
        if faults is None or not data.size or self._done.get(rank) == iteration:
            return
        if any(fault.strikes(self._size, iteration) for fault in faults):
            self._done[rank] = iteration
            data[0] ^= 0xFF
