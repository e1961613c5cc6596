"""Who has no token cannot keep others out."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waitress import wasyncore

from omb_py.dashboards.explorer import server
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from tests.dashboards.stores import write

UNFINISHED = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"


@pytest.fixture
def serving(tmp_path: Path, frame) -> Iterator[server.LimitedServer]:
    """A server with the token ``s3cret`` whose turns are not yet run."""
    write(tmp_path / "s", frame)
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    serving = server.make_server(make(Data(tmp_path / "s"), "s3cret").server, listening)
    yield serving
    serving.task_dispatcher.shutdown()
    wasyncore.close_all(serving._map)


def turn(serving: server.LimitedServer) -> None:
    """One turn of its loop."""
    wasyncore.loop(timeout=0.1, map=serving._map, count=1, use_poll=True)


@pytest.fixture
def port(serving: server.LimitedServer) -> Iterator[int]:
    """The port of the server while it serves."""
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            turn(serving)

    thread = threading.Thread(target=serve)
    thread.start()
    yield serving.effective_port
    ended.set()
    thread.join(timeout=60)
    assert not thread.is_alive()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def status(sock: socket.socket, path: str) -> int:
    """The status of an answer over a connection, which stays open."""
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = sock
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def is_closed(sock: socket.socket) -> bool:
    """Whether the server has closed it, or does so within a minute."""
    sock.settimeout(60)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.slow
def test_unfinished_connections_keep_nobody_out(port: int) -> None:
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(connect(port))
        assert status(known, "/?token=s3cret") == 302
        strangers = [stack.enter_context(connect(port)) for _ in range(200)]
        for sock in strangers:
            with contextlib.suppress(OSError):  # closed already, to make room
                sock.sendall(UNFINISHED)
        assert status(stack.enter_context(connect(port)), "/?token=s3cret") == 302
        assert status(known, "/?token=s3cret") == 302, "who has shown the token stays"
        assert all(map(is_closed, strangers)), "some to make room, the rest when their time is over"


def test_a_request_behind_a_crowd_is_read_after_few_turns(serving: server.LimitedServer) -> None:
    """Each turn looks at every connection: one for each that waits made the answer late on a loaded machine."""
    read: list[object] = []
    serving.add_task = read.append  # no thread answers: what counts is when the request has been read
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connect(serving.effective_port)).sendall(UNFINISHED)
        known = stack.enter_context(connect(serving.effective_port))
        known.sendall(b"GET /?token=s3cret HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for _ in range(200 // server.STRANGERS * 8):
            turn(serving)
        assert len(read) == 1


@pytest.mark.slow
def test_a_stranger_who_sends_slowly_or_was_refused_is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STRANGER_S", 0.5)
    with connect(port) as slow, connect(port) as refused:
        assert status(refused, "/") == 403
        slow.sendall(UNFINISHED)
        with pytest.raises(OSError):
            for _ in range(600):
                slow.sendall(b"a")
                time.sleep(0.1)
        assert is_closed(refused)
