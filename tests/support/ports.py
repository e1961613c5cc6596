"""Ports for listeners that must be told one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def free_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port that a listener may take meanwhile, and that the system gives to nobody else: it is bound here already."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, 0))
        yield int(held.getsockname()[1])
