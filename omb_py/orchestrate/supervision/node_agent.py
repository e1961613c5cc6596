"""The agent of a node: it carries the messages of all ranks there over one connection to the supervisor.

A launch on N nodes so has N connections at the supervisor, not one for each rank.  The first rank of a node starts it
(:mod:`omb_py.orchestrate.supervision.agent_start`) as a process of its own: it shares no lock with a rank.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import sys
import time

from omb_py.engine.rank.link import CONTROL_VARIABLE, TOKEN_VARIABLE, Message
from omb_py.engine.rank.reporting import agent_secret, report
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.branches import EVERYBODY
from omb_py.orchestrate.supervision.processes import allow_files
from omb_py.orchestrate.supervision.wire import MOST, Connection, Garbage, Lobby

_AT_ONCE = 1024
"""Ranks of this node that may report at the same time."""
_CONNECT_S = 30.0
_TICK_S = 1.0
_LAST_WORDS_S = 2.0
"""Seconds in which the ranks take what was sent to them last."""


class Agent:
    """Carries lines between the ranks of a node and the supervisor.

    Args:
        parent: the connection to the supervisor, which knows that this is an agent.
        about: what ranks must know of that connection: ``ahead_ns`` and ``host``.
    """

    def __init__(self, parent: Connection, secret: str, about: Message) -> None:
        self._parent = parent
        self._lobby = Lobby(agent_secret(secret))
        self._for_each = wire.encode({"type": "agent", **about})
        """Lines for each rank that reports."""
        self._counter = itertools.count()
        self._numbers: dict[Connection, bytes] = {}
        self._ranks: dict[bytes, Connection] = {}
        self.full: set[Connection] = set()
        """Connections with bytes that the kernel has not taken yet."""

    def enter(self, connection: Connection, now: float) -> None:
        self._lobby.enter(connection, now)

    def up(self, connection: Connection, line: bytes) -> None:
        """Carry a line of a rank to the supervisor. Raises Garbage for a stranger."""
        if connection in self._lobby:
            self._lobby.admit(connection, wire.decode(line))
            number = b"%d" % next(self._counter)
            self._numbers[connection] = number
            self._ranks[number] = connection
            self._send(connection, self._for_each)
        self._send(self._parent, self._numbers[connection] + b" " + line + b"\n")

    def down(self, line: bytes) -> list[Connection]:
        """Carry a line of the supervisor to the ranks that it is for. The connections to close."""
        number, _, text = line.partition(b" ")
        if number == EVERYBODY:
            self._for_each += text + b"\n"
            for connection in self._numbers:
                self._send(connection, text + b"\n")
            return []
        rank = self._ranks.get(number)
        if rank is None:
            return []
        if not text:
            return [rank]
        self._send(rank, text + b"\n")
        return []

    def leave(self, connection: Connection) -> None:
        """Somebody's connection has closed: tell the supervisor where it was a rank's."""
        self._lobby.leave(connection)
        self.full.discard(connection)
        number = self._numbers.pop(connection, None)
        if number is not None:
            del self._ranks[number]
            self._send(self._parent, number + b" " + wire.encode({"type": "closed"}))

    def overdue(self, now: float) -> list[Connection]:
        """Connections that have not proven themselves in time."""
        return self._lobby.overdue(now, _AT_ONCE + MOST)

    def last_words(self) -> list[Connection]:
        """Tell the ranks that the supervisor is gone. Their connections."""
        ranks = list(self._ranks.values())
        for connection in ranks:
            connection.send(wire.encode({"type": "gone"}))
        return ranks

    def _send(self, connection: Connection, line: bytes) -> None:
        connection.send(line)
        if connection.waiting:
            self.full.add(connection)


class AgentLoop:
    """Moves bytes between an agent and its sockets, until the supervisor closes its connection."""

    def __init__(self, server: socket.socket, parent: Connection, agent: Agent) -> None:
        server.setblocking(False)
        self._server, self._parent, self._agent = server, parent, agent
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)
        self._selector.register(parent, selectors.EVENT_READ)

    def run(self) -> None:
        self._from_parent()  # what came with the answer to the report
        while not self._parent.closed:
            for key, _ in self._selector.select(_TICK_S):
                if key.fileobj is self._server:
                    self._accept()
                elif key.fileobj is self._parent:
                    self._from_parent()
                elif isinstance(key.fileobj, Connection):
                    self._from_rank(key.fileobj)
            for connection in self._agent.overdue(time.monotonic()):
                self._drop(connection)
            self._watch_full()
        self._end(time.monotonic() + _LAST_WORDS_S)

    def _end(self, deadline: float) -> None:
        for connection in self._agent.last_words():
            connection.socket.settimeout(max(0.01, deadline - time.monotonic()))
            connection.send(b"")
        for key in tuple(self._selector.get_map().values()):
            if isinstance(key.fileobj, Connection):
                key.fileobj.close()
        self._selector.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = Connection(self._server.accept()[0])
                self._selector.register(connection, selectors.EVENT_READ)
                self._agent.enter(connection, time.monotonic())

    def _from_parent(self) -> None:
        if self._parent.waiting:
            self._parent.send(b"")
        for line in self._parent.receive():
            for connection in self._agent.down(line):
                self._drop(connection)

    def _from_rank(self, connection: Connection) -> None:
        if connection.waiting:
            connection.send(b"")
        try:
            for line in connection.receive():
                self._agent.up(connection, line)
        except Garbage:
            connection.closed = True
        if connection.closed:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._agent.leave(connection)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        connection.close()

    def _watch_full(self) -> None:
        """Be woken where bytes are still to be sent, and only there."""
        for connection in tuple(self._agent.full):
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.waiting else 0)
            self._selector.modify(connection, events)
            if not connection.waiting:
                self._agent.full.discard(connection)


def main() -> int:
    """Carry messages over the socket whose descriptor is on the command line. Returns the exit code."""
    token = os.environ[TOKEN_VARIABLE]
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # not on the one core of the rank that started it
    with socket.socket(fileno=int(sys.argv[1])) as server:
        try:
            allow_files(_AT_ONCE)
            reported = report(os.environ[CONTROL_VARIABLE], token, _CONNECT_S, {"agent": True})
        except EnvironmentProblem as problem:
            return problem.exit_code  # the ranks find out for themselves, and say so
        about = {"ahead_ns": reported.ahead_ns, "host": str(reported.connection.getsockname()[0])}
        parent = Connection(reported.connection, reported.lines)
        parent.trusted = True
        AgentLoop(server, parent, Agent(parent, token, about)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
