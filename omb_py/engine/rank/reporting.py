"""How a rank reaches its supervisor and says who it is: at its node's agent, or at the supervisor itself."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias, cast

from omb_py.engine.rank import handshake
from omb_py.engine.rank.start_times import start_ticks
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.json_values import JsonObject
from omb_py.launchers import RANK_VARIABLE

_REFUSED_S: Final = 1.0
"""A supervisor listens before it starts ranks: where every address refuses for so long, it has ended."""
_CONNECT_S: Final = 5.0
"""Seconds for one attempt to connect."""
_PAUSES_S: Final = (0.02, 0.5)
"""The first and the longest pause between attempts."""
Place: TypeAlias = tuple[str, int]


class LinkRefused(EnvironmentProblem):
    """No supervisor answered at the address."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A connection on which this process has said who it is, and whose other end knows the secret."""

    connection: socket.socket
    lines: BinaryIO
    """The same connection, to read from."""
    ahead_ns: int
    """How far the wall clock at the other end is ahead of ours."""


def split_address(address: str) -> list[Place]:
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


def report(address: str, token: str, timeout: float, more: JsonObject | None = None) -> Reported:
    """Connect and report to the supervisor. An address that cannot be reached is tried again.

    Args:
        address: ``host:port``, or several separated by commas, tried in order.
        token: the secret of the launch.
        timeout: seconds to try; where every address refuses, one suffices.
        more: said beside what every process says of itself.

    Raises:
        LinkRefused: nobody answered who knows the secret.
        ValueError: not an address.
    """
    places = split_address(address)
    began = time.monotonic()
    deadline = began + timeout
    pause, longest_pause = _PAUSES_S
    while True:
        refused = True
        for place in places:
            remaining = max(0.1, deadline - time.monotonic())
            try:
                connection = socket.create_connection(_plain(place), min(remaining, _CONNECT_S))
                return introduce(connection, token, remaining / len(places), more)
            except (OSError, handshake.Stranger) as error:
                reason = error
                final = isinstance(error, (ConnectionRefusedError, handshake.Stranger))
                # on a crowded machine we may have been too slow for a listener that waits only so long for strangers
                refused &= final and not isinstance(error, handshake.HungUp)
        if time.monotonic() + pause > (min(deadline, began + _REFUSED_S) if refused else deadline):
            raise LinkRefused(
                f"no supervisor answers at {address}: {reason}. What to do: see whether it has ended, and whether "
                f"{socket.gethostname()} can reach it by TCP"
            )
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)


def report_to_agent(name: str, token: str, timeout: float) -> Reported | None:
    """Report at the agent of this node. None where it cannot be had.

    Args:
        name: of its socket, from :func:`agent_socket`.
        token: the secret of the launch.
        timeout: seconds that the agent has to answer.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(name)
    except OSError:
        connection.close()
        return None
    try:
        return introduce(connection, agent_secret(token), timeout)
    except (OSError, handshake.Stranger):
        return None


def agent_socket(token: str) -> str:
    """The name of the socket at which the agent of this node listens (unix(7): abstract, so there is no file).

    Nobody can guess it before it is there. Who reads it in /proc/net/unix then has no proof of the secret.
    """
    return f"\0omb-py-{handshake.proof(token, 'listener', 'agent', socket.gethostname())[:32]}"


def agent_secret(token: str) -> str:
    """The secret for the agent's socket: a proof for one socket says nothing at another."""
    return f"agent {token}"


def introduce(connection: socket.socket, secret: str, timeout: float, more: JsonObject | None = None) -> Reported:
    """Say over a connection who this process is. Raises OSError and Stranger, and closes the connection then."""
    rank, size = _read_numbers(os.environ)
    me = {"env_rank": rank, "env_size": size, "pid": os.getpid(), "host": socket.gethostname(), "start": start_ticks()}
    lines = cast(BinaryIO, connection.makefile("rb"))
    try:
        if connection.family != socket.AF_UNIX:
            _tune(connection)
        connection.settimeout(timeout)
        ahead_ns = handshake.call(connection, lines, secret, {**me, **(more or {})})
        connection.settimeout(None)
    except BaseException:
        lines.close()
        connection.close()
        raise
    return Reported(connection, lines, ahead_ns)


def _plain(place: Place) -> Place:
    """An address for which Python loads no tables of Unicode, where its letters need none."""
    host, port = place
    return (host.encode(), port) if host.isascii() else place  # type: ignore[return-value]


def _read_numbers(environ: Mapping[str, str]) -> tuple[int | None, int | None]:
    """(rank, size) before the library starts, from the variables that the parent named, or that some launcher sets."""
    named = [environ.get(name, "") for name in environ.get(RANK_VARIABLE, "").split()]
    if len(named) == 2 and all(value.isdigit() for value in named):
        return int(named[0]), int(named[1])
    from omb_py.engine.rank.launcher_variables import environment_rank  # it knows all launchers

    return environment_rank(environ)


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
