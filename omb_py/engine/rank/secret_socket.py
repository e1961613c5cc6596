"""Sockets between ranks: both ends know the launch's secret (:mod:`omb_py.engine.rank.handshake`) and speak JSON."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Any, BinaryIO, Final, cast

from omb_py.engine.rank import handshake, plain_values
from omb_py.engine.simple_queue import Empty, SimpleQueue
from omb_py.grammar.json_values import JsonObject, JsonValue

STRANGER_S: Final = 5.0
"""Seconds that a caller has to prove itself."""
AT_ONCE: Final = 64
"""Callers that may be proving themselves at the same time; further ones wait in the kernel's queue."""


class SecretLine:
    """One connection whose ends have proven themselves. It carries values, one a line."""

    def __init__(self, connection: socket.socket, lines: BinaryIO) -> None:
        connection.settimeout(None)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._lines = connection, lines

    def send(self, value: object) -> None:
        """Send a value. Raises OSError when the other end is gone, TypeError for a value that cannot be sent."""
        self._socket.sendall(plain_values.encode(value) + b"\n")

    def receive(self) -> Any:
        """The next value. Raises EOFError when the other end is gone, OSError when the connection broke."""
        text = self._lines.readline()
        if not text.endswith(b"\n"):
            raise EOFError("the other end has closed the connection")
        return plain_values.decode(text)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that reads
        self._lines.close()
        self._socket.close()


class SecretGate:
    """A listening socket that lets in who knows the secret. Strangers never hold up the others.

    Args:
        host: address of the one interface to listen on; empty: all of them.
        port: 0 for any that is free.
        secret: of the launch.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(self, host: str, port: int, secret: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._server = socket.create_server((host, port), family=family, backlog=1024)
        self._secret = secret
        self._closed = False
        self._places = threading.Semaphore(AT_ONCE)
        self._admitted: SimpleQueue[tuple[dict[str, JsonValue], SecretLine]] = SimpleQueue()
        threading.Thread(target=self._listen, name="omb-gate", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    @property
    def host(self) -> str:
        return str(self._server.getsockname()[0])

    def admit(self, within: float) -> tuple[dict[str, JsonValue], SecretLine]:
        """The next caller's hello and its line. Raises TimeoutError after `within` seconds."""
        try:
            return self._admitted.get(timeout=max(0.0, within))
        except Empty:
            raise TimeoutError from None

    def close(self) -> None:
        """Listen no longer. Lines that :meth:`admit` gave stay; those that nobody asked for are closed."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._server.close()
        self._close_waiting()

    def _close_waiting(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                self._admitted.get_nowait()[1].close()

    def _listen(self) -> None:
        while True:
            self._places.acquire()
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._examine, args=(peer,), name="omb-caller", daemon=True).start()

    def _examine(self, peer: socket.socket) -> None:
        lines = cast(BinaryIO, peer.makefile("rb"))
        try:
            peer.settimeout(STRANGER_S)
            hello = handshake.answer(peer, lines, self._secret)
        except (OSError, handshake.Stranger):
            lines.close()
            peer.close()
        else:
            self._admitted.put((hello, SecretLine(peer, lines)))
            if self._closed:  # meanwhile
                self._close_waiting()
        finally:
            self._places.release()


def reach(address: tuple[str, int], secret: str, fields: JsonObject, patience: float) -> SecretLine:
    """Connect to a :class:`SecretGate`, which may not listen yet.

    Args:
        address: its host and port.
        secret: of the launch.
        fields: more for the listener's hello.
        patience: seconds to try.

    Raises:
        OSError: nobody listens there.
        handshake.Stranger: who listens there does not know the secret.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            connection = socket.create_connection(address, patience)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
            continue
        lines = cast(BinaryIO, connection.makefile("rb"))
        try:
            handshake.call(connection, lines, secret, fields)
        except BaseException:
            lines.close()
            connection.close()
            raise
        return SecretLine(connection, lines)
