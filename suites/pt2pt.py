"""Point-to-point benchmarks: OMB's latency, bw and bibw."""

from __future__ import annotations

from omb_py.engine.benchmark import Benchmark, Cell, World
from omb_py.engine.program import Buffer, Lap, Node, Program, Region, Repeat, Request, Requests, Stage, body
from omb_py.engine.steps import irecv, isend, recv, send, waitall
from omb_py.suites.rules import (
    BANDWIDTH_COUNTS,
    EXACTLY_TWO,
    LATENCY_COUNTS,
    ONE_WAY,
    PT2PT_SIZES,
    message_bytes,
    window_bytes,
)

_WINDOW_TAG, _REPLY_TAG, _REPLY_BYTES = 100, 101, 1
_OPTIONS = frozenset({"type", "validation"})


def _timed(world: World, *nodes: Node) -> tuple[Stage, ...]:
    """The clock is read on rank 0 only, as in OMB: a reading on its peer would keep that from being there first."""
    return (Stage(body(Lap(), *nodes, Lap("time")) if world.rank == 0 else body(*nodes)),)


def latency(world: World, cell: Cell) -> Program:
    """Blocking ping-pong between ranks 0 and 1."""
    size, peer = message_bytes(cell), 1 - world.rank
    out, back = Region("send", 0, size), Region("recv", 0, size)
    ping, pong = send(out, peer, cell.dtype), recv(back, peer, cell.dtype)
    order = (ping, pong) if world.rank == 0 else (pong, ping)
    return Program(
        (Buffer("send", size), Buffer("recv", size)),
        _timed(world, *order),
    )


def _window(world: World, cell: Cell, outgoing: bool, incoming: bool) -> tuple[tuple[Buffer, ...], list[Repeat]]:
    """Posts of a window: receives before sends. In validation every slot has memory of its own."""
    size, peer = message_bytes(cell), 1 - world.rank
    stride, slots = (size, cell.window) if cell.distinct else (0, 1)
    posts, requests = [], 0
    if incoming:
        into = Region("recv", 0, size, stride)
        posts.append(Repeat(cell.window, (irecv(into, peer, cell.dtype, Request(requests, 1), _WINDOW_TAG),)))
        requests += cell.window
    if outgoing:
        out = Region("send", 0, size, stride)
        posts.append(Repeat(cell.window, (isend(out, peer, cell.dtype, Request(requests, 1), _WINDOW_TAG),)))
    buffers = Buffer("send", size * (slots if outgoing else 1)), Buffer("recv", size * (slots if incoming else 1))
    return buffers, posts


def bw(world: World, cell: Cell) -> Program:
    """Rank 0 posts a window of sends and waits for a one-byte reply; rank 1 posts the receives."""
    sender = world.rank == 0
    buffers, posts = _window(world, cell, outgoing=sender, incoming=not sender)
    ack = Region("ack", 0, _REPLY_BYTES)
    reply = recv(ack, 1, "char", _REPLY_TAG) if sender else send(ack, 0, "char", _REPLY_TAG)
    return Program(
        (*buffers, Buffer("ack", _REPLY_BYTES)),
        _timed(world, *posts, waitall(Requests(0, cell.window)), reply),
    )


def bibw(world: World, cell: Cell) -> Program:
    """Both ranks post a window of receives and a window of sends and wait for both; no reply."""
    buffers, posts = _window(world, cell, outgoing=True, incoming=True)
    w = cell.window
    # the sends complete first, as in OMB
    waits = (waitall(Requests(w, w)), waitall(Requests(0, w)))
    return Program(buffers, _timed(world, *posts, *waits))


BENCHMARKS = (
    Benchmark(
        "latency", "pt2pt", "one-way time of a blocking ping-pong", latency, ONE_WAY, PT2PT_SIZES,
        LATENCY_COUNTS, EXACTLY_TWO, "rank 0", "char", _OPTIONS, bytes_total=lambda size, ranks: size,
    ),
    Benchmark(
        "bw", "pt2pt", "uni-directional bandwidth of a window of messages", bw, window_bytes(1), PT2PT_SIZES,
        BANDWIDTH_COUNTS, EXACTLY_TWO, "rank 0", "char", _OPTIONS | {"window"},
        bytes_total=lambda size, ranks: size,
    ),
    Benchmark(
        "bibw", "pt2pt", "bi-directional bandwidth of a window of messages", bibw, window_bytes(2), PT2PT_SIZES,
        BANDWIDTH_COUNTS, EXACTLY_TWO, "rank 0", "char", _OPTIONS | {"window"},
        bytes_total=lambda size, ranks: size,
    ),
)  # fmt: skip
