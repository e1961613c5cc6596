"""Point-to-point benchmarks of two ranks: OMB's latency, bw and bibw, and building blocks of others."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import (
    Buffer,
    Lap,
    Node,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Stage,
    body,
)
from omb_py.engine.program.steps import irecv, isend, recv, send, waitall
from omb_py.suites.shared import BANDWIDTH_COUNTS, LATENCY_COUNTS, ONE_WAY, message_bytes, point_to_point, window_bytes

WINDOW_TAG, REPLY_TAG, REPLY_BYTES = 100, 101, 1
BACK_TAG = 10
"""The tag of the messages from rank 1 to rank 0 where both send."""
OPTIONS = frozenset({"type", "validation", "buffer_num", "ddt"})
MOST_IN_TURN, MOST_IN_TURN_BYTES = 64, 1 << 26
"""Limits of the buffers that take turns in `latency` with ``-b multiple``: their number, their bytes together."""


def timed(reads: bool, *nodes: Node) -> tuple[Node, ...]:
    """The nodes, timed if this rank reads the clock.

    As in OMB only senders do: reading the clock would delay the peer.
    """
    return (Lap(), *nodes, Lap("time")) if reads else nodes


def in_turn(cell: Cell) -> int:
    """Number of buffers that take turns in a ping-pong, one an iteration."""
    most = MOST_IN_TURN_BYTES // max(1, message_bytes(cell))
    return max(1, min(MOST_IN_TURN, most)) if cell.options.buffer_num == "multiple" else 1


def ping_pong(cell: Cell, peer: int, first: bool, slot: int = 0) -> tuple[Node, Node]:
    """Send and receive in buffer number `slot`; the rank that is not `first` receives first."""
    size = message_bytes(cell)
    ping = send(Region("send", slot * size, size), peer, cell.dtype)
    pong = recv(Region("recv", slot * size, size), peer, cell.dtype)
    return (ping, pong) if first else (pong, ping)


def latency(world: World, cell: Cell) -> Program:
    """Blocking ping-pong between ranks 0 and 1."""
    first, slots = world.rank == 0, in_turn(cell)
    bodies = tuple(timed(first, *ping_pong(cell, 1 - world.rank, first, slot)) for slot in range(slots))
    size = slots * message_bytes(cell)
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(bodies),))


def has_own_memory(cell: Cell) -> bool:
    """Whether every message of a window has memory of its own."""
    return cell.distinct or cell.options.buffer_num == "multiple"


def slot_of(name: str, cell: Cell) -> Region:
    """The place of a message of a window; its stride is for a Repeat over the window."""
    size = message_bytes(cell)
    return Region(name, 0, size, size if has_own_memory(cell) else 0)


def window_buffer(name: str, cell: Cell, used: bool = True) -> Buffer:
    """Memory of a window's messages; OMB has both buffers on every rank, used or not."""
    return Buffer(name, message_bytes(cell) * (cell.options.window if used and has_own_memory(cell) else 1))


def window_posts(cell: Cell, peer: int, outgoing: int | None, incoming: int | None) -> list[Repeat]:
    """Posts of a window: receives before sends. `outgoing` and `incoming` are their tags; None: no such messages."""
    posts, requests = [], 0
    if incoming is not None:
        into = slot_of("recv", cell)
        posts.append(Repeat(cell.options.window, (irecv(into, peer, cell.dtype, RequestSlot(requests, 1), incoming),)))
        requests += cell.options.window
    if outgoing is not None:
        out = slot_of("send", cell)
        posts.append(Repeat(cell.options.window, (isend(out, peer, cell.dtype, RequestSlot(requests, 1), outgoing),)))
    return posts


def reply(sender: bool, peer: int, slot: int = 0) -> Node:
    """The end of a window in one direction: the receiver sends one byte, kept in place `slot` of the buffer ``ack``."""
    ack = Region("ack", slot, REPLY_BYTES)
    return recv(ack, peer, "char", REPLY_TAG) if sender else send(ack, peer, "char", REPLY_TAG)


def one_way(cell: Cell, peer: int, sender: bool) -> tuple[tuple[Buffer, ...], tuple[Node, ...]]:
    """Buffers and nodes of the sender or the receiver of a window in one direction."""
    posts = window_posts(cell, peer, WINDOW_TAG if sender else None, None if sender else WINDOW_TAG)
    buffers = window_buffer("send", cell, sender), window_buffer("recv", cell, not sender)
    return (*buffers, Buffer("ack", REPLY_BYTES)), (
        *posts,
        waitall(Requests(0, cell.options.window)),
        reply(sender, peer),
    )


def bw(world: World, cell: Cell) -> Program:
    """Rank 0 posts a window of sends and waits for a one-byte reply; rank 1 posts the receives."""
    sender = world.rank == 0
    buffers, nodes = one_way(cell, 1 - world.rank, sender)
    return Program(buffers, (Stage(body(*timed(sender, *nodes))),))


def bibw(world: World, cell: Cell) -> Program:
    """Both ranks post a window of receives and a window of sends and wait for both; no reply."""
    outgoing, incoming = (WINDOW_TAG, BACK_TAG) if world.rank == 0 else (BACK_TAG, WINDOW_TAG)
    posts = window_posts(cell, 1 - world.rank, outgoing, incoming)
    w = cell.options.window
    # the sends complete first, as in OMB
    waits = (waitall(Requests(w, w)), waitall(Requests(0, w)))
    nodes = timed(world.rank == 0, *posts, *waits)
    return Program((window_buffer("send", cell), window_buffer("recv", cell)), (Stage(body(*nodes)),))


BENCHMARKS = (
    point_to_point("latency", "one-way time of a blocking ping-pong", latency, ONE_WAY, LATENCY_COUNTS, OPTIONS),
    point_to_point(
        "bw",
        "uni-directional bandwidth of a window of messages",
        bw,
        window_bytes(1),
        BANDWIDTH_COUNTS,
        OPTIONS | {"window"},
    ),
    point_to_point(
        "bibw",
        "bi-directional bandwidth of a window of messages",
        bibw,
        window_bytes(2),
        BANDWIDTH_COUNTS,
        OPTIONS | {"window"},
    ),
)
