"""The line between a rank process and the process that supervises the launch.

One TCP connection a rank, one JSON object a line.  Two threads serve it and sleep nearly always: one waits for the
supervisor's words, one sends a heartbeat with the rank's position.  A rank whose connection closes ends at once, also
while its main thread is blocked in a communication call: no orphans (docs/launching.md).
"""

from __future__ import annotations

import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, NoReturn, Protocol, TypeAlias, cast

from omb_py.engine.rank import handshake
from omb_py.engine.rank.launcher_variables import environment_rank
from omb_py.engine.rank.lifetime import die_with_parent
from omb_py.errors import EnvironmentProblem

CONTROL_VARIABLE = "OMB_PY_CONTROL"
TOKEN_VARIABLE = "OMB_PY_TOKEN"
LOST = 3
"""Exit status of a rank whose connection closed."""
DEFAULT_BEAT_S = 1.0
_REFUSED_S = 1.0
"""A supervisor listens before it starts ranks: where every address refuses for so long, it has ended."""

Message: TypeAlias = dict[str, Any]
Position: TypeAlias = Callable[[], Mapping[str, Any]]


class Channel(Protocol):
    """A rank's connection to its supervisor: :class:`Link` over a socket, :class:`LocalLink` by a function call."""

    def spec(self) -> Message:
        """The description of the launch, which the supervisor sends to every rank that has reported."""

    def joined(self, rank: int, size: int) -> None:
        """Say which place the communication library gave to this process."""

    def send(self, type: str, **fields: Any) -> None:
        """Send a message."""

    def watch(self, position: Position, interval: float | None = None) -> None:
        """Send `position()` now and every `interval` seconds."""

    def done(self) -> int:
        """Say that all is finished, wait for all other ranks, and return the exit code."""


class LinkRefused(EnvironmentProblem):
    """No supervisor answered at the address."""


def start_ticks(pid: int | str = "self") -> int | None:
    """When a process began (clock ticks since boot), which with its number names it for good; None once it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def split_address(address: str) -> list[tuple[str, int]]:
    """``host:port``, or several separated by commas, as pairs. Raises ValueError.

    >>> split_address("10.0.0.1:7,[::1]:8")
    [('10.0.0.1', 7), ('::1', 8)]
    """
    places = []
    for part in address.split(","):
        host, colon, port = part.strip().rpartition(":")
        if not colon or not port.isdigit():
            raise ValueError(f"not host:port: {part!r}")
        places.append((host.strip("[]"), int(port)))
    return places


class Link:
    """The rank's end of the connection. Thread-safe; made by :meth:`connect`.

    Args:
        connection: connected, and known to the supervisor.
        lines: the same connection, to read from.
        ahead_ns: how far the supervisor's wall clock is ahead of ours.
        parent: the process that started this one, taken before it reported: its end is noticed from then on.
    """

    def __init__(self, connection: socket.socket, lines: BinaryIO, ahead_ns: int, parent: int) -> None:
        self._socket = connection
        self._lines = lines
        self._ahead_ns = ahead_ns
        self._sending = threading.Lock()
        self._inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._host = socket.gethostname()
        self._beat_s = DEFAULT_BEAT_S
        self._parent = parent
        threading.Thread(target=self._read, name="omb-link", daemon=True).start()

    @classmethod
    def connect(cls, address: str, token: str, timeout: float = 30.0) -> Link:
        """Connect and report to the supervisor, before anything that takes long is imported.

        An address that cannot be reached is tried again until `timeout` has passed.

        Args:
            address: ``host:port``, or several separated by commas, tried in turn.
            token: the secret that the supervisor gave to this launch.
            timeout: seconds; where every address refuses, one suffices.

        Raises:
            LinkRefused: nobody answered who knows the secret.
            ValueError: not an address.
        """
        places = split_address(address)
        if not token:
            raise LinkRefused(
                f"{CONTROL_VARIABLE} is set without {TOKEN_VARIABLE}, this launch's secret: "
                "the launcher must pass both on"
            )
        parent = os.getppid()
        began = time.monotonic()
        deadline = began + timeout
        pause = 0.02
        while True:
            refused = True
            for place in places:
                remaining = max(0.1, deadline - time.monotonic())
                try:
                    return cls(*_reported(place, token, min(remaining, 5.0), remaining / len(places)), parent)
                except (OSError, handshake.Stranger) as error:
                    reason = error
                    refused &= isinstance(error, (ConnectionRefusedError, handshake.Stranger))
            if time.monotonic() + pause > (min(deadline, began + _REFUSED_S) if refused else deadline):
                raise LinkRefused(
                    f"no supervisor answers at {address}: {reason}. What to do: see whether it has ended, and whether "
                    f"{socket.gethostname()} can reach it by TCP"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    @classmethod
    def from_environment(cls, timeout: float = 30.0) -> Link | None:
        """The connection that ``OMB_PY_CONTROL`` and ``OMB_PY_TOKEN`` name; None without them."""
        address = os.environ.get(CONTROL_VARIABLE)
        if not address:
            return None
        return cls.connect(address, os.environ.get(TOKEN_VARIABLE, ""), timeout)

    def spec(self) -> Message:
        """The description of the launch, which the supervisor sends to every rank that has reported."""
        spec = self._inbox.get()
        if spec.get("launched_at"):
            spec["launched_at"] -= self._ahead_ns  # a time of the parent's clock, told by ours
        self._beat_s = float(spec.get("beat_s", DEFAULT_BEAT_S))
        if spec.get("follow_launcher") and not die_with_parent(self._parent):
            self._lost()
        return spec

    @property
    def host(self) -> str:
        """The address by which this process reaches the supervisor, so that others reach it there, too."""
        return str(self._socket.getsockname()[0])

    def meet(self, place: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Agree where ranks meet before they can communicate: rank 0 gives the place, all get it."""
        if place is not None:
            self.send("meet", place=place)
            return place
        while True:
            message = self._inbox.get()
            if message.get("type") == "meet":
                return dict(message["place"])

    def joined(self, rank: int, size: int) -> None:
        """Say which place the communication library gave to this process."""
        self.send("joined", rank=rank, size=size, host=self._host, pid=os.getpid())

    def send(self, type: str, **fields: Any) -> None:
        """Send one message. Ends the process when the connection is closed."""
        line = json.dumps({"type": type, **fields}, separators=(",", ":")).encode() + b"\n"
        try:
            with self._sending:
                self._socket.sendall(line)
        except OSError:
            self._lost()

    def watch(self, position: Position, interval: float | None = None) -> None:
        """Start the heartbeat: `position()` now and every `interval` seconds (default: the spec's ``beat_s``).

        `position` is called from a thread; it gives phase, cell, label, iteration, step, doing.
        """
        every = self._beat_s if interval is None else interval
        threading.Thread(target=self._beat, args=(position, every), name="omb-beat", daemon=True).start()

    def done(self) -> int:
        """Say that all is finished, wait until every rank has said so, and return the exit code (0)."""
        self.send("done")
        while True:
            message = self._inbox.get()
            if message.get("type") == "exit":
                return int(message.get("code", 0))

    def close(self) -> None:
        """Close the connection without ending the process."""
        self._ended.set()
        self._socket.close()

    def _beat(self, position: Position, interval: float) -> None:
        while not self._ended.is_set():
            try:
                where = dict(position())
            except Exception as error:  # a heartbeat must go on whatever the position does
                where = {"doing": f"unknown ({type(error).__name__}: {error})"}
            self.send("beat", **where)
            self._ended.wait(interval)

    def _read(self) -> None:
        try:
            with self._lines:
                for line in self._lines:
                    message = json.loads(line)
                    if message.get("type") == "exit":
                        if message.get("code"):
                            _end_process(int(message["code"]))
                        self._ended.set()
                    self._inbox.put(message)
        except (OSError, ValueError):
            pass
        self._lost()

    def _lost(self) -> None:
        if not self._ended.is_set():
            _end_process()


class LocalLink:
    """The same methods without a process in between: every message goes to `handler`.

    `handler` answers "hello" with the spec and may answer "done" with ``{"code": N}``.
    """

    def __init__(self, handler: Callable[[Message], Mapping[str, Any] | None]) -> None:
        self._handler = handler
        self._position: Position | None = None

    def spec(self) -> Message:
        """The description of the launch, as the handler gives it."""
        me = {"pid": os.getpid(), "host": socket.gethostname(), "env_rank": None, "env_size": None}
        return dict(self._handler({"type": "hello", **me}) or {})

    def joined(self, rank: int, size: int) -> None:
        """Say how many ranks there are."""
        self.send("joined", rank=rank, size=size, host=socket.gethostname(), pid=os.getpid())

    def send(self, type: str, **fields: Any) -> None:
        """Give a message to the handler."""
        self._handler({"type": type, **fields})

    def watch(self, position: Position, interval: float | None = None) -> None:
        """Send one heartbeat: a simulation has its own clock, so no thread looks after it."""
        self.send("beat", **position())

    def done(self) -> int:
        """Say that all is finished and return the handler's code, or 0."""
        answer = self._handler({"type": "done"})
        return int((answer or {}).get("code", 0))

    def close(self) -> None:
        """Nothing to close."""


def _reported(
    place: tuple[str, int], token: str, connect_s: float, answer_s: float
) -> tuple[socket.socket, BinaryIO, int]:
    """A connection to the supervisor on which this process has said who it is; how far the clock there is ahead, in ns.

    Raises OSError and Stranger.
    """
    rank, size = environment_rank(os.environ)
    me = {"env_rank": rank, "env_size": size, "pid": os.getpid(), "host": socket.gethostname(), "start": start_ticks()}
    connection = socket.create_connection(place, connect_s)
    lines = cast(BinaryIO, connection.makefile("rb"))
    try:
        _tune(connection)
        connection.settimeout(answer_s)
        ahead_ns = handshake.call(connection, lines, token, me)
        connection.settimeout(None)
    except BaseException:
        lines.close()
        connection.close()
        raise
    return connection, lines, ahead_ns


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if connection.getpeername()[0] in ("127.0.0.1", "::1"):
        return
    # A supervisor whose node lost power closes nothing: let the kernel find out.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 6), ("TCP_USER_TIMEOUT", 60_000)):
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, seconds)


def _end_process(code: int = LOST) -> NoReturn:
    # Only this ends a process whose main thread is blocked in a native call.
    os._exit(code)
