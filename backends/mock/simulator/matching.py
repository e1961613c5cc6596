"""How calls of ranks meet: sends and receives, collectives and the blocks of irregular ones."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.simulator.data import Bytes, exchange
from omb_py.backends.mock.simulator.lower import IRREGULAR, Op
from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.engine.program.step_text import describe
from omb_py.engine.program.steps import base
from omb_py.engine.session import StepFailed

Key: TypeAlias = tuple[int, int, int]
"""(source, destination, tag)"""

_T = TypeVar("_T")


class Handle:
    """A request of a rank. `done` is the time at which it completes, once that is known."""

    __slots__ = ("done", "owner", "waited")

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.done: int | None = None
        self.waited = False


@dataclass(slots=True)
class UnmatchedSend:
    """A send that no receive has matched yet."""

    handle: Handle
    nbytes: int
    payload: Bytes | None
    sent: int
    """Time of the call, ns."""
    transit: int
    wire: int
    arrival: int | None
    """Time at which an eager message arrives, ns; None: the message waits for its receive (rendezvous)."""


@dataclass(slots=True)
class Posted:
    """A receive that no send has matched yet."""

    handle: Handle
    room: Bytes | None
    nbytes: int
    posted: int
    iteration: int
    number: int
    where: NDArray[np.bool_] | None = None
    """The bytes that a derived type fills; None: all."""
    anyone: bool = False
    """It takes whichever message comes first."""


class Matcher:
    """Unmatched sends and receives."""

    def __init__(self) -> None:
        self._messages: dict[Key, deque[UnmatchedSend]] = {}
        self._posted: dict[Key, deque[Posted]] = {}
        self._for_anyone: dict[tuple[int, int], Posted] = {}

    def receive_for(self, key: Key) -> Posted | None:
        """Take the oldest receive that matches a send."""
        _, destination, tag = key
        return _take(self._posted, key) or self._for_anyone.pop((destination, tag), None)

    def message_for(self, key: Key) -> UnmatchedSend | None:
        """Take the oldest message that matches a receive."""
        return _take(self._messages, key)

    def earliest(self, sources: Iterable[int], destination: int, tag: int) -> int | None:
        """The source of the message to `destination` that was sent first; the lowest rank of several."""
        first: dict[int, int] = {}
        for source in sources:
            if queue := self._messages.get((source, destination, tag)):
                first[source] = queue[0].sent
        return min(first, key=lambda source: (first[source], source), default=None)

    def keep_message(self, key: Key, message: UnmatchedSend) -> None:
        """Keep a message until its receive is posted."""
        self._messages.setdefault(key, deque()).append(message)

    def keep_receive(self, key: Key, posted: Posted) -> None:
        """Keep a receive until its message is sent."""
        self._posted.setdefault(key, deque()).append(posted)

    def keep_for_anyone(self, destination: int, tag: int, posted: Posted) -> None:
        """Keep a receive, in which its rank waits, until any rank sends it a message with this tag."""
        self._for_anyone[destination, tag] = posted


def _take(queues: dict[Key, deque[_T]], key: Key) -> _T | None:
    queue = queues.get(key)
    return queue.popleft() if queue else None


Place = tuple[int, int]
"""Offset and number of bytes in the `send` or `recv` of an operation."""


def outgoing(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, Place]]:
    """(receiver, place) of each block that a rank sends."""
    kind = base(step.op)
    if kind == "scatterv" and step["root"] != rank:
        return
    peers = _peers(step, "gatherv", "targets", ranks)
    yield from zip(peers, _block_places(step["send"], len(peers), "gather" in kind), strict=True)


def incoming(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, int, Place]]:
    """(sender, number among the sender's blocks, place) of each block that a rank receives."""
    kind = base(step.op)
    if kind == "gatherv" and step["root"] != rank:
        return
    peers = _peers(step, "scatterv", "sources", ranks)
    count_of: Counter[int] = Counter()
    for peer, place in zip(peers, _block_places(step["recv"], len(peers), kind == "scatterv"), strict=True):
        yield peer, count_of[peer], place
        count_of[peer] += 1


def _peers(step: Step, rooted: str, edges: str, ranks: int) -> Sequence[int]:
    """The peers of a rank: the root of the operation `rooted`, the neighbors in a graph, or all ranks."""
    if base(step.op) == rooted:
        return (step["root"],)
    return step.peers(edges, ranks)


def _block_places(data: Region | Blocks, count: int, same: bool) -> list[Place]:
    """The places of `count` blocks; with `same` each is the whole region."""
    if isinstance(data, Blocks):
        return list(zip(data.offsets, data.sizes, strict=True))
    each = data.nbytes if same else data.nbytes // max(1, count)
    return [(0 if same else j * each, each) for j in range(count)]


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
