"""Strangers who hold connections to the explorer open: does who has the token still get an answer?

``python -m tests.lab.hostile.held_connections [CONNECTIONS [SECONDS]]`` serves a store by ``omb-py dashboard``, keeps so
many unfinished requests open, each opened again as soon as the server closes it and sent another byte every second, and
asks with the token meanwhile. It prints how long the answers took; one over a second breaks the promise.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlsplit

from omb_py.cli import main as omb_py

MOST_S = 1.0
PAUSE_S = 0.5
UNFINISHED = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"


def asked(address: str) -> float:
    """Seconds until the answer to a request with the token, over a new connection."""
    parts = urlsplit(address)
    begun = time.monotonic()
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", f"{parts.path}?{parts.query}")
        assert connection.getresponse().status == 302
    return time.monotonic() - begun


class Strangers:
    """Connections that are never finished."""

    def __init__(self, place: tuple[str, int], count: int) -> None:
        self.place, self.opened = place, 0
        self._open: list[socket.socket | None] = [None] * count

    def hold(self) -> None:
        """Send a byte over each, and open again what was closed."""
        for number, held in enumerate(self._open):
            try:
                if held is None:
                    raise OSError
                held.sendall(b"a")
            except OSError:
                if held is not None:
                    held.close()
                self._open[number] = self._another()

    def _another(self) -> socket.socket | None:
        with contextlib.suppress(OSError):
            sock = socket.create_connection(self.place, timeout=5)
            self.opened += 1
            with contextlib.suppress(OSError):
                sock.sendall(UNFINISHED)
            return sock
        return None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def main(count: int = 200, seconds: int = 60) -> int:
    """Print how long answers took; 1 where one took over a second."""
    with tempfile.TemporaryDirectory() as store:
        assert omb_py(f"latency --backend mock -m 8:64 -i 5 --store {store} --quiet".split()) == 0
        words = [sys.executable, "-m", "omb_py", "dashboard", store, "--port", str(_free_port())]
        serving = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert serving.stdout is not None
            address = next(found[0] for line in serving.stdout if (found := re.search(r"http://\S+token=\S+", line)))
            parts = urlsplit(address)
            strangers = Strangers((str(parts.hostname), int(parts.port or 0)), count)
            took, until, holds_at = [asked(address)], time.monotonic() + seconds, 0.0
            while time.monotonic() < until:
                if time.monotonic() >= holds_at:
                    strangers.hold()
                    holds_at = time.monotonic() + 1
                took.append(asked(address))
                time.sleep(PAUSE_S)
        finally:
            serving.terminate()
            serving.wait()
    late = sum(each > MOST_S for each in took)
    print(
        f"{count} held connections, {strangers.opened} opened in {seconds} s: {len(took)} answers, "
        f"median {statistics.median(took):.3f} s, longest {max(took):.3f} s, {late} over {MOST_S:g} s"
    )
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
