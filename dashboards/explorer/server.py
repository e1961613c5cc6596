"""The web server of the explorer: waitress, with limits on connections that have shown no token. Needs waitress."""

from __future__ import annotations

import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from _typeshed import OptExcInfo

    Writer = Callable[[bytes], object]

STRANGERS = 64
"""Open connections that have shown no token; one more closes the oldest of the peer that has most."""
STRANGER_S = 5.0
"""Seconds within which a connection shows the token, however slowly it sends."""
_AT_ONCE = 16
"""Connections that one turn of the loop takes: few beside STRANGERS, so that each is read before it is the oldest."""
_CONNECTIONS = 1000
_FILES = 100
"""Descriptors that the store and the rest of the process may need."""
_LARGEST_REQUEST = 8 << 20
_THREADS = 8


class BrowserConnection(HTTPChannel):  # type: ignore[misc]  # waitress has no types
    """A connection; a stranger until the application has answered one of its requests."""

    stranger = True

    def is_idle_stranger(self) -> bool:
        """Whether it has shown no token, and no request of it is being answered."""
        return self.stranger and not self.requests


class LimitedServer(TcpWSGIServer):  # type: ignore[misc]  # waitress has no types
    """waitress's server, which strangers can neither fill nor hold open."""

    channel_class = BrowserConnection
    _some_waited = False

    def handle_accept(self) -> None:
        """Take what waits: one a turn would let a request stand in line behind a crowd."""
        for _ in range(_AT_ONCE):
            self._some_waited = False
            super().handle_accept()
            if not self._some_waited:
                return
            self._make_room()

    def accept(self) -> tuple[socket.socket, Any] | None:
        """The next connection; None where none waits."""
        connection: tuple[socket.socket, Any] | None = super().accept()
        self._some_waited = connection is not None
        return connection

    def _make_room(self) -> None:
        """Close the oldest stranger of the peer that has most where there are too many."""
        strangers = [c for c in self.active_channels.values() if c.is_idle_stranger() and not c.will_close]
        if len(strangers) > STRANGERS:
            peer, _ = Counter(c.addr[0] for c in strangers).most_common(1)[0]
            next(c for c in strangers if c.addr[0] == peer).handle_close()  # they are in the order of their arrival

    def maintenance(self, now: float) -> None:
        """Close strangers whose time is over, and what waitress closes."""
        for channel in self.active_channels.values():
            if channel.is_idle_stranger() and channel.creation_time < now - STRANGER_S:
                channel.will_close = True
        super().maintenance(now)


def make_server(application: WSGIApplication, listening: socket.socket) -> LimitedServer:
    """A server on a bound socket; ``run()`` serves until Ctrl-C."""
    logging.getLogger("waitress").setLevel(logging.ERROR)  # what strangers do fills no screen
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = _CONNECTIONS + _FILES if files == resource.RLIM_INFINITY else files
    settings = Adjustments(
        sockets=[listening],
        threads=_THREADS,
        ident=None,
        connection_limit=max(STRANGERS + _THREADS, min(_CONNECTIONS, room - _FILES)),
        cleanup_interval=1,
        asyncore_use_poll=True,
        max_request_body_size=_LARGEST_REQUEST,
        log_socket_errors=False,
    )
    address = (listening.family, listening.type, listening.proto, listening.getsockname())
    return LimitedServer(_mark_friends(application), _sock=listening, adj=settings, sockinfo=address, bind_socket=False)


def _mark_friends(application: WSGIApplication) -> WSGIApplication:
    """The application; a connection to which it does not answer 403 is no stranger any more."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        def started(status: str, headers: list[tuple[str, str]], *error: OptExcInfo | None) -> Writer:
            if not status.startswith("403"):
                environ["waitress.client_disconnected"].__self__.stranger = False
            return start(status, headers, *error)

        return application(environ, started)

    return answer
