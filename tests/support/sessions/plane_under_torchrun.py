"""A rank that agrees with the others over the plane of NCCL's ranks, and prints what it got and where it listens."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from pathlib import Path

import numpy as np

from omb_py.backends.nccl.plane import plane

LISTENS = "0A"
"""State of a listening socket in /proc/net/tcp."""


def listening() -> list[str]:
    """Addresses at which this process accepts connections."""
    own = set()
    for file in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed by another thread meanwhile
            own.add(os.readlink(file))
    text = "".join(Path(f"/proc/self/net/{name}").read_text() for name in ("tcp", "tcp6"))
    sockets = (line.split() for line in text.splitlines())
    return [words[1] for words in sockets if words[3] == LISTENS and f"socket:[{words[9]}]" in own]


def main() -> None:
    """Agree twice, over a plane each, and print."""
    first, second = plane(), plane()
    got = {
        "kind": type(first).__name__,
        "gathered": first.gather([first.rank, "here"]),
        "shared": second.share(f"rank {second.rank}"),
        "total": first.total(np.array([1.0, first.rank])).tolist(),
        "listening": listening(),
    }
    with socket.create_server(("127.0.0.1", 0)):
        got["with one of its own"] = len(listening())
    print(json.dumps(got), flush=True)
    for one in (first, second):
        one.barrier()
        one.close()


if __name__ == "__main__":
    main()
