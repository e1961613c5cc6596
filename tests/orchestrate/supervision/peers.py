"""A supervisor in a thread, ranks made of bare sockets, and a clock that a test moves."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from omb_py.engine.rank import handshake
from omb_py.orchestrate.supervision.supervisor import Supervisor
from tests.support.patience import PATIENCE_S

GARBAGE = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff\xfe\x00\n",
    b"[" * 3000 + b"\n",
    b"x" * 10_000,
    b'{"type":"hello","token":"wrong"}\n',
    b'{"type":"hello","nonce":"1","proof":""}\n',
    b'{"type":"hello","nonce":"1","proof":"\\ud800"}\n',
    b'{"type":"hello","nonce":["1"],"proof":null}\n',
    b'{"type":"hello","nonce":"1","proof":"' + b"0" * 64 + b'"}\n',
    b'{"type":"welcome"}\n' * 3,
    b'{"type":"cell","index":0}\n',
    b"17\n",
    b"",
]
"""What strangers may send."""


@contextlib.contextmanager
def supervising(supervisor: Supervisor) -> Iterator[list[Any]]:
    """Run a supervisor in a thread; the list gets its outcome or its exception."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(supervisor.run())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield result
    finally:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


class Peer:
    """A rank made of a bare socket, connected to the supervisor or to the agent whose socket has this name."""

    def __init__(self, supervisor: Supervisor, agent: str = "") -> None:
        host, _, port = supervisor.address.rpartition(":")
        if agent:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE_S)
            self.socket.connect(agent)
        else:
            self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.lines = self.socket.makefile("rb")

    def send(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hello(self, token: str, rank: int, host: str = "elsewhere", **more: Any) -> dict[str, Any]:
        """Report as a rank; the spec, or nothing from a supervisor that hangs up."""
        facts = {"pid": 0, "host": host, "env_rank": rank, "env_size": 2, **more}
        handshake.call(self.socket, self.lines, token, facts)
        return self.read()

    def read(self) -> dict[str, Any]:
        return json.loads(self.lines.readline() or b"{}")

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


class Clock:
    """Time as the supervisor reads it, before and after the wait in each turn of its loop; one takes `step` seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: float = 0.25) -> None:
        self.now, self.step, self.readings = 0.0, 0.0, 0
        monkeypatch.setattr("omb_py.orchestrate.supervision.supervisor._TICK_S", tick)
        monkeypatch.setattr("omb_py.orchestrate.supervision.supervisor.time", self)

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        self.readings += 1
        self.now += self.step
        return self.now

    def wait(self, turns: int) -> None:
        """Wait until the loop has turned so often."""
        until = self.readings + 2 * turns
        while self.readings < until:
            time.sleep(0.001)
