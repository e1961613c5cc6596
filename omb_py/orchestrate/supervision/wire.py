"""The supervisor's end of the lines to ranks and agents: addresses, connections, and who may enter."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from omb_py.engine.rank import handshake
from omb_py.engine.rank.link import Message
from omb_py.launchers.launcher import host_and_slots

_FIRST_LINE_LIMIT = 4096
"""Bytes that a peer may send before it has proven that it knows the secret."""

_SIOCGIFADDR = 0x8915
"""Linux: ioctl that gives the IPv4 address of an interface (netdevice(7))."""


class Garbage(Exception):
    """The peer does not follow the protocol."""


def listen(local: bool) -> socket.socket:
    """A non-blocking listening socket: on 127.0.0.1 when all ranks are local, else on every interface."""
    server = socket.create_server(("127.0.0.1", 0), backlog=4096) if local else _everywhere()
    server.setblocking(False)
    return server


def _everywhere() -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # IPv6 is compiled in but switched off
            return socket.create_server(("", 0), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
    return socket.create_server(("", 0), backlog=4096)


def addresses(server: socket.socket, local: bool, hosts: Sequence[str] = ()) -> str:
    """Addresses at which ranks may reach the socket: ``host:port``, separated by commas, the most likely first."""
    port = server.getsockname()[1]
    if local:
        return f"127.0.0.1:{port}"
    names: dict[str, None] = {}  # as an ordered set
    for host in hosts:
        with contextlib.suppress(OSError, UnicodeError):  # UnicodeError: no name of a host can be like this
            names[_route_to(host_and_slots(host)[0])] = None
    names[socket.gethostname()] = None
    with contextlib.suppress(OSError):
        names[socket.gethostbyname(socket.gethostname())] = None
    names.update(dict.fromkeys(_list_interfaces()))  # for hosts that cannot look up this one's name
    names["127.0.0.1"] = None
    return ",".join(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)


def _route_to(host: str) -> str:
    family, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def _list_interfaces() -> list[str]:
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # an interface without such an address
                reply = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                addresses.append(socket.inet_ntoa(reply[20:24]))  # ifreq: 16 bytes name, 4 family and port
    return [address for address in addresses if not address.startswith("127.")]


class Connection:
    """The connection of a rank, or of a node's agent. It is non-blocking, and receives and sends whole lines."""

    def __init__(self, connection: socket.socket, lines: BinaryIO | None = None) -> None:
        """`lines` is the same connection where somebody has read from it, who may have read ahead."""
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.trusted = False
        self.closed = False
        self._in = bytearray(lines.peek() if isinstance(lines, io.BufferedReader) else b"")
        self._searched = 0
        self._out: list[memoryview] = []

    def fileno(self) -> int:
        """The descriptor for a selector."""
        return self.socket.fileno()

    @property
    def carrier(self) -> Connection:
        """The connection whose socket carries this one's bytes: itself."""
        return self

    def receive(self, most: int = 1 << 22) -> Iterator[bytes]:
        """Yield the lines that have arrived, without their ends. Sets `closed` at the end of the stream.

        Args:
            most: bytes to read in one call, so that one busy rank does not starve the others.

        Raises:
            Garbage: a peer sends too much before its proof.
        """
        yield from self._lines()
        while most > 0 and not self.closed:
            try:
                chunk = self.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            most -= len(chunk)
            self.closed = not chunk
            self._in += chunk
            yield from self._lines()

    def _lines(self) -> Iterator[bytes]:
        while (end := self._in.find(b"\n", self._searched)) >= 0:
            line = bytes(self._in[:end])
            del self._in[: end + 1]
            self._searched = 0
            if not self.trusted and end > _FIRST_LINE_LIMIT:
                raise Garbage("too long")
            yield line
        self._searched = len(self._in)
        if not self.trusted and len(self._in) > _FIRST_LINE_LIMIT:
            raise Garbage("too long")

    def send(self, line: bytes) -> None:
        """Queue bytes and send what the kernel takes without waiting. Call again, without bytes, to send the rest."""
        if line:
            self._out.append(memoryview(line))
        try:
            while self._out:
                sent = self.socket.send(self._out[0])
                self._out[0] = self._out[0][sent:]
                if not self._out[0]:
                    del self._out[0]
        except BlockingIOError:
            return
        except OSError:
            # The peer is gone, which the next read shows.
            self._out.clear()

    @property
    def waiting(self) -> bool:
        """Whether bytes are still to be sent."""
        return bool(self._out)

    def close(self) -> None:
        self.closed = True
        self.socket.close()


def encode(message: Message) -> bytes:
    """Encode a message as a line of JSON."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Decode a line of JSON. Raises Garbage when it is no message."""
    try:
        message: object = json.loads(line)
    except (ValueError, RecursionError):
        raise Garbage("not JSON") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Garbage("not a message")
    return message


class Output:
    """Record of what the launcher and the ranks printed: its beginning and its end, in bounded memory."""

    def __init__(self, head: int = 32_768, tail: int = 229_376) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._limits = head, tail
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Append output. What does not fit is dropped from the middle."""
        head, tail = self._limits
        room = head - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * tail:
            cut = len(self._tail) - tail
            del self._tail[:cut]
            self._left_out += cut

    def text(self) -> str:
        """The recorded text, with a line for what was dropped."""
        gap = f"\n… {self._left_out} bytes left out …\n" if self._left_out else ""
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")

    def last_lines(self) -> list[str]:
        """The last lines that hold a letter or digit, for a message: 12, each cut to 300 characters."""
        lines = [line.strip()[:300] for line in self.text().splitlines()]
        return [line for line in lines if any(c.isalnum() for c in line)][-12:]


PATIENCE_S = 30.0
"""Seconds that a connection has to prove itself. A rank does so before it imports anything that takes long, but on a
machine with a hundred ranks on each core it waits for its turn for 10 s and more."""
MOST = 64
"""Strangers beyond the ranks that have not come yet: with more of them the oldest connection has to leave."""


class Lobby:
    """Connections with their age. What holds for all of them is looked at in time that does not grow with them.

    Args:
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
        connection.send(encode({"type": "challenge", "nonce": nonce}))

    def admit(self, connection: Connection, hello: Message) -> None:
        """Let a rank out of the lobby and answer with our own proof. Raises Garbage for a stranger."""
        _, nonce = self._waiting[connection]
        if not handshake.is_caller(hello, self._secret, nonce):
            raise Garbage("not a rank of this launch")
        del self._waiting[connection]
        connection.trusted = True
        connection.send(encode(handshake.welcome(self._secret, nonce, hello)))

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
