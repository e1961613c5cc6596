"""The line between a rank process and the process that supervises the launch.

One connection a rank, over TCP to the supervisor or over a local socket to the agent of the node, which speaks to the
supervisor for all ranks there; one JSON object a line.  Two threads serve it and sleep nearly always: one waits for the
supervisor's words, one sends a heartbeat with the rank's position.  A rank that loses its supervisor ends at once, also
while its main thread is blocked in a communication call: no orphans (docs/launching.md).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

from omb_py.engine.rank.lifetime import die_with_parent
from omb_py.engine.rank.reporting import LinkRefused, Reported, report, report_to_agent
from omb_py.engine.simple_queue import SimpleQueue
from omb_py.grammar.json_values import JsonObject
from omb_py.process_end import code_for_caller

CONTROL_VARIABLE = "OMB_PY_CONTROL"
TOKEN_VARIABLE = "OMB_PY_TOKEN"
AGENTS_VARIABLE = "OMB_PY_AGENTS"
"""1: each node has an agent, also the supervisor's own; 0: none has."""
LOST = 3
"""Exit status of a rank whose connection closed."""
DEFAULT_BEAT_S = 1.0
RETURN_S = 10.0
"""Seconds that a rank whose agent has ended has to reach the supervisor itself."""

Message: TypeAlias = dict[str, Any]
LaunchSpec: TypeAlias = Mapping[str, Any]
"""The description of a launch, which the supervisor sends to its ranks as JSON."""
Position: TypeAlias = Callable[[], JsonObject]
Agent: TypeAlias = Callable[[str, str], str]
"""The name of the socket at which the agent of this node listens, from address and secret of the supervisor; empty
where there is none."""


class Channel(Protocol):
    """A rank's connection to its supervisor: :class:`Link` over a socket, :class:`LocalLink` by a function call."""

    def spec(self) -> Message:
        """The description of the launch, which the supervisor sends to every rank that has reported."""

    def joined(self, rank: int, size: int) -> None:
        """Say which place the communication library gave to this process."""

    def send(self, type: str, **fields: object) -> None:
        """Send a message."""

    def settle(self) -> None:
        """Wait until the supervisor is done with all that was sent before."""

    def watch(self, position: Position, interval: float | None = None) -> None:
        """Send `position()` now and every `interval` seconds."""

    def done(self) -> int:
        """Say that all is finished, wait for all other ranks, and return the exit code."""


class Link(Channel):
    """The rank's end of the connection. Thread-safe; made by :meth:`connect`.

    Args:
        reported: the connection, on which this process has said who it is.
        parent: the process that started this one, taken before it reported: its end is noticed from then on.
        again: over an agent, how to report to the supervisor itself when the agent has ended.
    """

    def __init__(self, reported: Reported, parent: int, again: Callable[[JsonObject], Reported] | None = None) -> None:
        self._use(reported)
        self._ahead_ns = reported.ahead_ns
        self._host_there = "" if again else self._find_own_host()
        self._again = again
        self._kept: deque[bytes] = deque()
        """What was sent over the agent and the supervisor has not confirmed: the agent may end with it."""
        self._confirmed = 0
        """How many messages the supervisor has confirmed."""
        self._heard: list[str] = []
        """Types of the messages that came, so that none comes twice."""
        self._settling = 0
        """Number of the last question of :meth:`settle`."""
        self._sending = threading.Lock()
        self.when_lost: Callable[[], None] = lambda: None
        """Called before this process ends because the supervisor is lost."""
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._ended = threading.Event()
        self._host = socket.gethostname()
        self._beat_s = DEFAULT_BEAT_S
        self._parent = parent
        threading.Thread(target=self._read, name="omb-link", daemon=True).start()

    @classmethod
    def connect(cls, address: str, token: str, timeout: float = 30.0, agent: Agent | None = None) -> Link:
        """Connect and report, before anything that takes long is imported.

        Args:
            address: ``host:port`` of the supervisor, or several separated by commas, tried in order.
            token: the secret that the supervisor gave to this launch.
            timeout: seconds to try; where every address refuses, one suffices.
            agent: finds, or starts, the agent of this node; the rank reports there where it can.

        Raises:
            LinkRefused: nobody answered who knows the secret.
            ValueError: not an address.
        """
        if not token:
            raise LinkRefused(
                f"{CONTROL_VARIABLE} is set without {TOKEN_VARIABLE}, this launch's secret: "
                "the launcher must pass both on"
            )
        parent = os.getppid()
        name = agent(address, token) if agent else ""
        reported = report_to_agent(name, token, timeout) if name else None
        if reported:
            return cls(reported, parent, lambda more: report(address, token, RETURN_S, more))
        return cls(report(address, token, timeout), parent)

    @classmethod
    def from_environment(cls, timeout: float = 30.0, agent: Agent | None = None) -> Link | None:
        """The connection that ``OMB_PY_CONTROL`` and ``OMB_PY_TOKEN`` name; None without them."""
        address = os.environ.get(CONTROL_VARIABLE)
        if not address:
            return None
        return cls.connect(address, os.environ.get(TOKEN_VARIABLE, ""), timeout, agent)

    def spec(self) -> Message:
        spec = self._inbox.get()
        if spec.get("launched_at"):
            spec["launched_at"] -= self._ahead_ns  # a time of the parent's clock, told by ours
        self._beat_s = float(spec.get("beat_s", DEFAULT_BEAT_S))
        if spec.get("follow_launcher") and not die_with_parent(self._parent):
            self._end_lost()
        return spec

    @property
    def host(self) -> str:
        """The address by which this process reaches the supervisor, so that others reach it there, too."""
        return self._host_there

    def meet(self, place: JsonObject | None) -> JsonObject:
        """Agree where ranks meet before they can communicate: rank 0 gives the place, all get it."""
        if place is not None:
            self.send("meet", place=place)
            return place
        while True:
            message = self._inbox.get()
            if message.get("type") == "meet":
                return dict(message["place"])

    def joined(self, rank: int, size: int) -> None:
        self.send("joined", rank=rank, size=size, host=self._host, pid=os.getpid())

    def send(self, type: str, **fields: object) -> None:
        """Send one message. Ends the process when the supervisor is lost."""
        line = _line(type, fields)
        with self._sending:
            if self._again and type != "beat":
                self._kept.append(line)
            try:
                self._socket.sendall(line)
            except OSError:
                if not self._again:
                    self._end_lost()

    def settle(self) -> None:
        """Wait until the supervisor is done with all that was sent before.

        Where each core has a rank, what it computes meanwhile would be in the samples of the next cell.
        """
        self._settling += 1
        self.send("settle", number=self._settling)
        while (message := self._inbox.get()).get("type") != "settled" or message["number"] != self._settling:
            pass  # an answer that came twice, as an agent ended

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
        self._ended.set()
        self._socket.close()

    def _beat(self, position: Position, interval: float) -> None:
        _leave_measuring_core()
        while not self._ended.is_set():
            try:
                where = dict(position())
            except Exception as error:  # a heartbeat must go on whatever the position does
                where = {"doing": f"unknown ({type(error).__name__}: {error})"}
            self.send("beat", **where)
            self._ended.wait(interval)

    def _read(self) -> None:
        self._take_messages()
        if self._again and not self._ended.is_set():
            self._report_again(self._again)
            self._take_messages()
        self._end_lost()

    def _take_messages(self) -> None:
        try:
            with self._lines:
                for line in self._lines:
                    message = json.loads(line)
                    self._take(message["type"], message)
        except (OSError, ValueError):
            pass

    def _take(self, kind: str, message: Message) -> None:
        if kind == "agent":
            self._ahead_ns, self._host_there = int(message["ahead_ns"]), str(message["host"])
        elif kind == "confirmed":
            with self._sending:
                self._drop_confirmed(int(message["messages"]))
        elif kind == "gone":  # the agent has lost the supervisor
            self._end_lost()
        else:
            if kind == "exit":
                if message.get("code"):
                    _end_process(int(message["code"]))
                self._ended.set()
            if kind != "settled":
                self._heard.append(kind)
            self._inbox.put(message)

    def _report_again(self, again: Callable[[JsonObject], Reported]) -> None:
        """Go on without the agent, which has ended: report to the supervisor and send what it has not had."""
        with self._sending:
            self._again = None
            self._socket.close()
            try:
                self._use(again({"heard": self._heard}))
                self._host_there = self._find_own_host()
                self._drop_confirmed(int(json.loads(self._lines.readline())["messages"]))
                self._socket.sendall(b"".join(self._kept))
                if self._settling:  # the answer may be lost with the agent
                    self._socket.sendall(_line("settle", {"number": self._settling}))
            except (LinkRefused, OSError, ValueError):
                self._end_lost()
            self._kept.clear()

    def _drop_confirmed(self, messages: int) -> None:
        while self._kept and self._confirmed < messages:
            self._kept.popleft()
            self._confirmed += 1

    def _use(self, reported: Reported) -> None:
        self._socket, self._lines = reported.connection, reported.lines

    def _find_own_host(self) -> str:
        return str(self._socket.getsockname()[0])

    def _end_lost(self) -> None:
        if not self._ended.is_set():
            self.when_lost()
            _end_process()


class LocalLink(Channel):
    """The same methods without a process in between: every message goes to `handler`.

    `handler` answers "hello" with the spec and may answer "done" with ``{"code": N}``.
    """

    def __init__(self, handler: Callable[[Message], Message | None]) -> None:
        self._handler = handler

    def spec(self) -> Message:
        me = {"pid": os.getpid(), "host": socket.gethostname(), "env_rank": None, "env_size": None}
        return dict(self._handler({"type": "hello", **me}) or {})

    def joined(self, rank: int, size: int) -> None:
        self.send("joined", rank=rank, size=size, host=socket.gethostname(), pid=os.getpid())

    def send(self, type: str, **fields: object) -> None:
        self._handler({"type": type, **fields})

    def settle(self) -> None:
        """Nothing to wait for: the handler is done when :meth:`send` returns."""

    def watch(self, position: Position, interval: float | None = None) -> None:
        """Send one heartbeat: a simulation has its own clock, so no thread looks after it."""
        self.send("beat", **position())

    def done(self) -> int:
        answer = self._handler({"type": "done"})
        return int((answer or {}).get("code", 0))

    def close(self) -> None:
        """Nothing to close."""


def _line(type: str, fields: Mapping[str, object]) -> bytes:
    return json.dumps({"type": type, **fields}, separators=(",", ":")).encode() + b"\n"


def _leave_measuring_core() -> None:
    """Let this thread run on any core but the one to which its rank is bound, where there are others."""
    with contextlib.suppress(OSError, AttributeError):  # a job may have no other core; only Linux knows the call
        bound_to = os.sched_getaffinity(0)
        others = set(range(os.cpu_count() or 1)) - bound_to
        if others:
            os.sched_setaffinity(0, others)


def _end_process(code: int = LOST) -> NoReturn:
    # Only this ends a process whose main thread is blocked in a native call.
    os._exit(code_for_caller(code))
