"""Requests, and the matching of sends and receives by (source, destination, tag) in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.simulator.data import Bytes

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
class Message:
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
        self._messages: dict[Key, deque[Message]] = {}
        self._posted: dict[Key, deque[Posted]] = {}
        self._for_anyone: dict[tuple[int, int], Posted] = {}

    def receive_for(self, key: Key) -> Posted | None:
        """Take the oldest receive that matches a send."""
        _, destination, tag = key
        return _take(self._posted, key) or self._for_anyone.pop((destination, tag), None)

    def message_for(self, key: Key) -> Message | None:
        """Take the oldest message that matches a receive."""
        return _take(self._messages, key)

    def earliest(self, sources: Iterable[int], destination: int, tag: int) -> int | None:
        """The source of the message to `destination` that was sent first; the lowest rank of several."""
        first: dict[int, int] = {}
        for source in sources:
            if queue := self._messages.get((source, destination, tag)):
                first[source] = queue[0].sent
        return min(first, key=lambda source: (first[source], source), default=None)

    def keep_message(self, key: Key, message: Message) -> None:
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
