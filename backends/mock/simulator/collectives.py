"""A collective call of all ranks: who has called it, when it completes, and what each rank receives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from omb_py.backends.mock.simulator.data import Bytes, exchange
from omb_py.backends.mock.simulator.edges import incoming, outgoing
from omb_py.backends.mock.simulator.lower import IRREGULAR, Op
from omb_py.backends.mock.simulator.matching import Handle
from omb_py.engine.program.language import Step
from omb_py.engine.program.step_text import describe
from omb_py.engine.program.steps import base
from omb_py.engine.session import StepFailed


@dataclass(slots=True)
class Participant:
    """A rank in a collective. Times in ns."""

    rank: int
    op: Op
    arrived: int
    duration: int
    iteration: int
    handle: Handle
    sent: Bytes | None
    """The rank's contribution; a copy from the time of the call if the call does not block."""
    leaves: int = 0


class CollectiveCall:
    """One collective call of a communicator.

    It opens when the root arrives if it has one that sends (a broadcast or scatter), else when the last rank arrives.
    A rank leaves its own duration after the opening or its own arrival, whichever is later.
    """

    def __init__(self, op: Op, ranks: int) -> None:
        self._op, self._ranks = op, ranks
        self._signature = op.signature
        self._arrived = 0
        self._opened: int | None = None
        self._inside: list[Participant] = []
        self._data: Bytes | None = None
        self._sent: dict[tuple[int, int], list[Bytes]] = {}
        """(sender, receiver) -> blocks of an irregular collective."""

    @property
    def over(self) -> bool:
        """Whether all ranks have arrived."""
        return self._arrived == self._ranks

    def check(self, rank: int, op: Op) -> None:
        """Raises StepFailed if a rank calls another collective than the ranks before it."""
        if op.signature != self._signature:
            assert op.step is not None and self._op.step is not None
            text = f"rank {rank} calls {describe(op.step)} where others call {describe(self._op.step)}"
            raise StepFailed(op.number, 1, text)

    def join(
        self, rank: int, op: Op, now: int, duration: int, iteration: int, handle: Handle, begin: Callable[[int], int]
    ) -> list[Participant]:
        """Let a rank arrive and return the participants whose time to leave is now known.

        `begin` is called once, with the time at which the collective opens, and says when it begins.
        """
        self._arrived += 1
        # a rank that blocks cannot change its buffer; one that does not may, and must not change the result
        sent = op.send.copy() if op.send is not None and op.requests else op.send
        self._inside.append(Participant(rank, op, now, duration, iteration, handle, sent))
        if self._opened is None and (rank == op.root if op.root >= 0 else self.over):
            self._opened = begin(now if op.root >= 0 else max(participant.arrived for participant in self._inside))
            self._gather(op)
        if self._opened is None:
            return []
        leaving, self._inside = self._inside, []
        for participant in leaving:
            participant.leaves = max(self._opened, participant.arrived) + participant.duration
        return leaving

    def received(self, participant: Participant) -> Iterator[tuple[Bytes, Bytes]]:
        """(destination, data) of each part that a rank receives; none in a barrier, or for a rank that only sends.

        Raises:
            StepFailed: a block is larger than its destination, or no rank sends it.
        """
        op = participant.op
        assert op.step is not None
        if op.recv is None or op.sink not in (-1, participant.rank):
            return
        if base(op.step.op) in IRREGULAR:
            yield from self._blocks(participant, op.step, op.recv)
        elif self._data is not None and not (participant.rank == op.root and op.send is op.recv):
            row: Bytes = self._data[participant.rank if len(self._data) > 1 else 0]
            yield op.recv, row[: op.recv.size]

    def _blocks(self, participant: Participant, step: Step, recv: Bytes) -> Iterator[tuple[Bytes, Bytes]]:
        for peer, number, (start, room) in incoming(step, participant.rank, self._ranks):
            blocks = self._sent.get((peer, participant.rank), [])
            if number >= len(blocks):
                text = f"rank {participant.rank} expects a block from {peer}, which sends none"
                raise StepFailed(participant.op.number, 1, text)
            block = blocks[number]
            if block.size > room:
                text = f"rank {participant.rank}: block of {block.size} B from {peer} truncated to {room} B"
                raise StepFailed(participant.op.number, 15, text)
            yield recv[start : start + block.size], block

    def _gather(self, op: Op) -> None:
        """Take the data that is sent, as it is now."""
        if op.send is None:
            return
        assert op.step is not None
        if base(op.step.op) in IRREGULAR:
            for participant in self._inside:
                if participant.sent is not None and participant.op.step is not None:
                    for to, (start, nbytes) in outgoing(participant.op.step, participant.rank, self._ranks):
                        block = participant.sent[start : start + nbytes].copy()
                        self._sent.setdefault((participant.rank, to), []).append(block)
            return
        if op.root >= 0:
            blocks = self._ranks if base(op.step.op) == "scatter" else 1
            self._data = op.send[: blocks * op.nbytes].reshape(blocks, op.nbytes).copy()
            return
        by_rank = sorted(self._inside, key=lambda participant: participant.rank)
        sent = np.stack([participant.sent for participant in by_rank if participant.sent is not None])
        self._data = exchange(op.step, sent, op.dtype, op.reduction)
