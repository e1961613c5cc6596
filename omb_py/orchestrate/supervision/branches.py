"""The supervisor's end of the agents: one connection a node, which carries the messages of all ranks there.

Each line on it begins with a number and a space.  From the agent it is the number of the rank that sent the line: the
first message of a rank is "hello", and "closed" says that its connection has closed.  To the agent it is the number of
the rank that gets the line.  An empty line closes that rank's connection; ``*`` stands for all ranks, also for those
that come later (:mod:`omb_py.orchestrate.supervision.node_agent`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from omb_py.engine.rank.link import Message
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.wire import Connection, Garbage

EVERYBODY = b"*"
"""Stands for the number in a line that is for all ranks of a node."""
_CONFIRM_BYTES = 1 << 20
"""Bytes of a rank's messages after which they are confirmed. Until then the rank keeps them."""
_UNCOUNTED = ("hello", "closed", "beat")
"""Types of messages that a rank does not send again when it has lost its agent."""
Identity: TypeAlias = tuple[str, int, int | None]
"""Host, process number and start time, which name a process for good."""


class BranchedRank:
    """A rank behind an agent, with the methods of a connection."""

    def __init__(self, carrier: Connection, number: int, host: str) -> None:
        self.carrier, self.host = carrier, host
        self.closed = self.moved = False
        """`moved`: it has lost its agent and has a connection of its own."""
        self.messages = 0
        """How many have come, without heartbeats."""
        self._number = b"%d " % number
        self._unconfirmed = 0

    @property
    def waiting(self) -> bool:
        """Whether bytes are still to be sent."""
        return self.carrier.waiting

    def send(self, line: bytes = b"") -> None:
        """Send lines to this rank."""
        if not self.carrier.closed:
            self.carrier.send(b"".join(self._number + part for part in line.splitlines(keepends=True)))

    def close(self) -> None:
        if not self.closed:
            self.send(b"\n")
            self.closed = True

    def count(self, kind: str, nbytes: int) -> None:
        if kind in _UNCOUNTED:
            return
        self.messages += 1
        self._unconfirmed += nbytes
        if self._unconfirmed > _CONFIRM_BYTES:
            self._unconfirmed = 0
            self.send(wire.encode({"type": "confirmed", "messages": self.messages}))


class Branches:
    """The agents of a launch and the ranks behind them.

    Args:
        patience: seconds in which a rank that has lost its agent must have come with a connection of its own.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._agents: dict[Connection, dict[int, BranchedRank]] = {}
        self._by_identity: dict[Identity, BranchedRank] = {}
        self._adrift: dict[BranchedRank, float] = {}  # with the time until which to wait, in that order

    def __contains__(self, connection: object) -> bool:
        return connection in self._agents

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._agents)

    @property
    def anybody_adrift(self) -> bool:
        """Whether ranks have lost their agent and are still waited for."""
        return bool(self._adrift)

    def add(self, connection: Connection) -> None:
        """Take a connection for that of an agent."""
        self._agents[connection] = {}

    def read(self, connection: Connection, line: bytes) -> tuple[BranchedRank, Message]:
        """The rank and the message of a line that came from an agent. Raises Garbage where it is none."""
        ranks = self._agents[connection]
        number, _, text = line.partition(b" ")
        if not number.isdigit():
            raise Garbage("not the line of an agent")
        message = wire.decode(text)
        kind = message["type"]
        if kind == "hello":
            rank = ranks[int(number)] = BranchedRank(connection, int(number), str(message.get("host", "?")))
            self._by_identity[identity(message)] = rank
        elif int(number) not in ranks:
            raise Garbage("a message of nobody")
        rank = ranks[int(number)]
        rank.closed |= kind == "closed"
        rank.count(kind, len(text))
        return rank, message

    def lose(self, connection: Connection, now: float) -> list[BranchedRank]:
        """Forget an agent whose connection has closed. The ranks that it has left alone, those that came back too."""
        ranks = [rank for rank in self._agents.pop(connection).values() if not rank.closed]
        self._adrift.update({rank: now + self._patience for rank in ranks if not rank.moved})
        return ranks

    def take_back(self, hello: Message) -> BranchedRank | None:
        """The rank that now reports by itself; None for one whose first report was lost with its agent."""
        rank = self._by_identity.pop(identity(hello), None)
        if rank is not None:
            rank.moved = True
            self._adrift.pop(rank, None)
        return rank

    def overdue(self, now: float) -> list[BranchedRank]:
        """Ranks that have lost their agent and not come back in time."""
        late = []
        for rank, until in self._adrift.items():
            if now < until:
                break
            late.append(rank)
        for rank in late:
            del self._adrift[rank]
        return late

    def finish(self, within: float) -> None:
        """Let the agents pass on what they have, and close their connections; at most `within` seconds.

        A connection that is closed while heartbeats arrive is reset, and what was sent last would be lost.
        """
        _finish(list(self._agents), time.monotonic() + within)
        for connection in self._agents:
            connection.close()


def identity(hello: Message) -> Identity:
    """The process that says hello."""
    return str(hello.get("host", "?")), int(hello.get("pid") or 0), hello.get("start")


def _finish(connections: Iterable[Connection], deadline: float) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.socket.settimeout(max(0.01, deadline - time.monotonic()))
            connection.send(b"")
            connection.socket.shutdown(socket.SHUT_WR)
    for connection in connections:
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and connection.socket.recv(1 << 16):
                pass
