"""A rank that agrees with others over the plane of NCCL's ranks; rank 0 prints what all got and where they listen."""

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
    every = first.gather(got)
    if first.rank == 0:  # the lines of two ranks may come as one
        print(json.dumps(every), flush=True)
    for one in (first, second):
        one.barrier()
        one.close()


if __name__ == "__main__":
    main()
