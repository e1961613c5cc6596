"""Connections that have not yet proven that they are ranks of this launch."""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.engine.rank import handshake
from omb_py.engine.rank.link import Message
from omb_py.orchestrate.supervision import wire
from omb_py.orchestrate.supervision.wire import Connection, Garbage

PATIENCE_S = 30.0
"""Seconds that a connection has to prove itself. A rank does so before it imports anything that takes long, but on a
machine with a hundred ranks on each core it waits for its turn for 10 s and more."""
MOST = 64
"""Strangers beyond the ranks that have not come yet: with more of them the oldest connection has to leave."""


class Lobby:
    """Connections with their age. What holds for all of them is looked at in time that does not grow with them.

    Args:
        secret: of the launch.
        patience: seconds that each connection has.
    """

    def __init__(self, secret: str, patience: float = PATIENCE_S) -> None:
        self._secret, self._patience = secret, patience
        self._waiting: dict[Connection, tuple[float, str]] = {}  # by age, the oldest first

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._waiting

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, connection: Connection, now: float) -> None:
        nonce = handshake.new_nonce()
        self._waiting[connection] = now, nonce
        connection.send(wire.encode({"type": "challenge", "nonce": nonce}))

    def admit(self, connection: Connection, hello: Message) -> None:
        """Let a rank out of the lobby and answer with our own proof. Raises Garbage for a stranger."""
        _, nonce = self._waiting[connection]
        if not handshake.is_caller(hello, self._secret, nonce):
            raise Garbage("not a rank of this launch")
        del self._waiting[connection]
        connection.trusted = True
        connection.send(wire.encode(handshake.welcome(self._secret, nonce, hello)))

    def leave(self, connection: Connection) -> None:
        """Forget a connection; no error for one that is not here."""
        self._waiting.pop(connection, None)

    def overdue(self, now: float, room: int) -> list[Connection]:
        """The connections that have waited too long at time `now`, and the oldest of those beyond `room`."""
        leaving: list[Connection] = []
        excess = len(self._waiting) - room
        for connection, (since, _) in self._waiting.items():
            if now - since <= self._patience and len(leaving) >= excess:
                break
            leaving.append(connection)
        return leaving
