"""Simulated time of the calls of ranks, when the time of each is known: ``mock``'s simulation with a machine's times.

A collective ends its time after the last member has come. A message is under way when both its ends have come; a rank
has one port out and one port in, through which the messages of a call go one after the other, both ways at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from omb_py.backends.mock.config import Config
from omb_py.backends.mock.faults import Flipper, RankHangs
from omb_py.backends.mock.simulator.lower import Code, Op
from omb_py.backends.mock.simulator.matching import Posted, UnmatchedSend
from omb_py.backends.mock.simulator.simulate import Events, Loop
from omb_py.backends.mock.simulator.timing import Noise, Timing
from omb_py.engine.program import steps
from omb_py.engine.program.language import Requests

TICKS: Final = 2.0**60
"""Ticks of the simulated clock in a µs. The simulation counts whole ones; a power of two keeps times exact."""
_RENDEZVOUS: Final = Config(eager=-1)


@dataclass(frozen=True, slots=True)
class TimedCollective:
    """A call that its members make together."""

    row: str
    """Name under which its time is counted."""
    us: float
    members: tuple[int, ...] = ()
    """Empty: all ranks."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a message."""

    peer: int
    tag: int
    us: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """Messages that are begun together and waited for together."""

    row: str
    sends: tuple[End, ...] = ()
    receives: tuple[End, ...] = ()


class _OnePort(Events):
    """The simulation in which a message takes its time at each of its ends, one after the other at each."""

    def __init__(self, ranks: int) -> None:
        timing = Timing(_RENDEZVOUS, ranks, 1.0, Noise(_RENDEZVOUS, (0,), ranks))
        super().__init__(_RENDEZVOUS, timing, Flipper((), 0), ("",) * ranks, "", 0, None)
        self._inbound = [0] * ranks

    def _pair(self, source: int, destination: int, message: UnmatchedSend, posted: Posted) -> None:
        since = max(message.sent, posted.posted)
        ends = (source, self._links, message.handle), (destination, self._inbound, posted.handle)
        for rank, port, handle in ends:
            port[rank] = max(port[rank], since) + message.transit
            self._complete(handle, port[rank])


def spent_us(calls: Sequence[Sequence[TimedCollective | Exchange]]) -> list[dict[str, float]]:
    """The time in µs that each rank spends in the calls of each row, with the waiting for others.

    Raises:
        ValueError: calls of ranks do not meet.
    """
    names = [list(dict.fromkeys(call.row for call in own)) for own in calls]
    bodies = [[_ops(own, {row: slot for slot, row in enumerate(rows)})] for own, rows in zip(calls, names, strict=True)]
    loop = Loop(bodies, 0, 1, [len(rows) for rows in names], is_body=True)
    try:
        _, laps = _OnePort(len(calls)).run(loop, [0] * len(calls))
    except RankHangs as lost:
        raise ValueError(f"calls of ranks do not meet: rank {lost.rank} waits in call {lost.step}") from None
    return [{row: laps[rank][slot] / TICKS for slot, row in enumerate(rows)} for rank, rows in enumerate(names)]


def _ops(calls: Iterable[TimedCollective | Exchange], slots: dict[str, int]) -> list[Op]:
    """The operations of a rank: each call, then a reading of the clock into the slot of its row."""
    ops: list[Op] = []
    for number, call in enumerate(calls):
        if isinstance(call, TimedCollective):
            barrier = steps.barrier()
            ops.append(Op(Code.COLLECTIVE, number, barrier, cost=call.us * TICKS, group=call.members))
        else:
            ends = [(Code.SEND, end) for end in call.sends] + [(Code.RECV, end) for end in call.receives]
            wait = steps.waitall(Requests(0, len(ends)))
            for slot, (code, end) in enumerate(ends):
                cost = end.us * TICKS
                ops.append(Op(code, number, wait, requests=(slot,), peer=end.peer, tag=end.tag, cost=cost))
            ops.append(Op(Code.WAIT, number, wait, requests=tuple(range(len(ends)))))
        ops.append(Op(Code.LAP, slot=slots[call.row]))
    return ops
