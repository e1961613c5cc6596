"""One collective call of all ranks: who is there, when it may complete, what everybody receives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omb_py.backends.mock.data import Bytes, exchange
from omb_py.backends.mock.lower import Op
from omb_py.backends.mock.matching import Handle
from omb_py.engine.describe import describe
from omb_py.engine.session import StepFailed


@dataclass(slots=True)
class Guest:
    """A rank in a collective. Times in ns."""

    rank: int
    op: Op
    came: int
    duration: int
    iteration: int
    handle: Handle
    sent: Bytes | None
    """What it contributes, as it was when it called."""
    leaves: int = 0


class Meeting:
    """Collective number k of the communicator.

    A broadcast opens when the root comes, every other collective when the last rank comes. A rank leaves its own
    duration after the later of the opening and its own coming.
    """

    def __init__(self, op: Op, ranks: int) -> None:
        self._op, self._ranks = op, ranks
        self._signature = op.signature
        self._came = 0
        self._opened: int | None = None
        self._inside: list[Guest] = []
        self._data: Bytes | None = None

    @property
    def over(self) -> bool:
        """Whether all ranks have come."""
        return self._came == self._ranks

    def check(self, rank: int, op: Op) -> None:
        """Raises StepFailed when a rank calls something else than those before it."""
        if op.signature != self._signature:
            assert op.step is not None and self._op.step is not None
            text = f"rank {rank} calls {describe(op.step)} where others call {describe(self._op.step)}"
            raise StepFailed(op.number, 1, text)

    def join(self, rank: int, op: Op, now: int, duration: int, iteration: int, handle: Handle) -> list[Guest]:
        """A rank comes. Returns the ranks whose time to leave is now known."""
        self._came += 1
        # a rank that blocks cannot change its buffer; one that does not may, and must not change the result
        sent = op.send.copy() if op.send is not None and op.requests else op.send
        self._inside.append(Guest(rank, op, now, duration, iteration, handle, sent))
        if self._opened is None and (rank == op.root if op.root >= 0 else self.over):
            self._opened = now if op.root >= 0 else max(guest.came for guest in self._inside)
            self._gather(op)
        if self._opened is None:
            return []
        leaving, self._inside = self._inside, []
        for guest in leaving:
            guest.leaves = max(self._opened, guest.came) + guest.duration
        return leaving

    def received(self, guest: Guest) -> Bytes | None:
        """What a rank receives; None: nothing (a barrier, a broadcast's root, others than a gather's root)."""
        if self._data is None or guest.op.sink not in (-1, guest.rank):
            return None
        if guest.rank == guest.op.root and guest.op.send is guest.op.recv:
            return None
        row: Bytes = self._data[guest.rank if len(self._data) > 1 else 0]
        return row

    def _gather(self, op: Op) -> None:
        """Take what is sent, as it is now."""
        if op.send is None:
            return
        assert op.step is not None
        if op.root >= 0:
            blocks = self._ranks if op.step.op == "scatter" else 1
            self._data = op.send[: blocks * op.nbytes].reshape(blocks, op.nbytes).copy()
            return
        by_rank = sorted(self._inside, key=lambda guest: guest.rank)
        sent = np.stack([guest.sent for guest in by_rank if guest.sent is not None])
        self._data = exchange(op.step.op, sent, op.dtype, op.reduction)
