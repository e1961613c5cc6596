"""One collective call of all ranks: who is there, when it may complete, what everybody receives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omb_py.backends.mock.data import Bytes, exchange
from omb_py.backends.mock.edges import incoming, outgoing
from omb_py.backends.mock.lower import IRREGULAR, Op
from omb_py.backends.mock.matching import Handle
from omb_py.engine.program.language import Step
from omb_py.engine.program.step_text import describe
from omb_py.engine.program.steps import base
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
        self._sent: dict[tuple[int, int], list[Bytes]] = {}
        """(sender, receiver) -> blocks, of irregular collectives."""

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

    def received(self, guest: Guest) -> Iterator[tuple[Bytes, Bytes]]:
        """What a rank receives: (where it goes, what). Nothing: a barrier, a broadcast's root, others than a gather's.

        Raises:
            StepFailed: a block is larger than the room for it, or comes from nobody.
        """
        op = guest.op
        assert op.step is not None
        if op.recv is None or op.sink not in (-1, guest.rank):
            return
        if base(op.step.op) in IRREGULAR:
            yield from self._blocks(guest, op.step, op.recv)
        elif self._data is not None and not (guest.rank == op.root and op.send is op.recv):
            row: Bytes = self._data[guest.rank if len(self._data) > 1 else 0]
            yield op.recv, row[: op.recv.size]

    def _blocks(self, guest: Guest, step: Step, recv: Bytes) -> Iterator[tuple[Bytes, Bytes]]:
        """The blocks of an irregular collective."""
        for peer, number, (start, room) in incoming(step, guest.rank, self._ranks):
            blocks = self._sent.get((peer, guest.rank), [])
            if number >= len(blocks):
                text = f"rank {guest.rank} expects a block from {peer}, which sends none"
                raise StepFailed(guest.op.number, 1, text)
            block = blocks[number]
            if block.size > room:
                text = f"rank {guest.rank}: block of {block.size} B from {peer} truncated to {room} B"
                raise StepFailed(guest.op.number, 15, text)
            yield recv[start : start + block.size], block

    def _gather(self, op: Op) -> None:
        """Take what is sent, as it is now."""
        if op.send is None:
            return
        assert op.step is not None
        if base(op.step.op) in IRREGULAR:
            for guest in self._inside:
                if guest.sent is not None and guest.op.step is not None:
                    for to, (start, nbytes) in outgoing(guest.op.step, guest.rank, self._ranks):
                        block = guest.sent[start : start + nbytes].copy()
                        self._sent.setdefault((guest.rank, to), []).append(block)
            return
        if op.root >= 0:
            blocks = self._ranks if base(op.step.op) == "scatter" else 1
            self._data = op.send[: blocks * op.nbytes].reshape(blocks, op.nbytes).copy()
            return
        by_rank = sorted(self._inside, key=lambda guest: guest.rank)
        sent = np.stack([guest.sent for guest in by_rank if guest.sent is not None])
        self._data = exchange(op.step, sent, op.dtype, op.reduction)
