"""Persistent point-to-point: requests are initialised once a size and started in each iteration."""

from __future__ import annotations

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import Buffer, Node, Program, Region, Repeat, Requests, RequestSlot, Stage, body
from omb_py.suites.pt2pt.two_ranks import OPTIONS, REPLY_BYTES, WINDOW_TAG, reply, slot_of, timed, window_buffer
from omb_py.suites.shared import BANDWIDTH_COUNTS, LATENCY_COUNTS, ONE_WAY, message_bytes, point_to_point, window_bytes


def latency(world: World, cell: Cell) -> Program:
    """Ping-pong of a persistent send and a persistent receive."""
    size, peer, first = message_bytes(cell), 1 - world.rank, world.rank == 0
    out, back = RequestSlot(0), RequestSlot(1)
    setup = (
        steps.persistent(steps.send(Region("send", 0, size), peer, cell.dtype), out),
        steps.persistent(steps.recv(Region("recv", 0, size), peer, cell.dtype), back),
    )
    order = (out, back) if first else (back, out)
    nodes: list[Node] = [step(request) for request in order for step in (steps.start, steps.wait)]
    stage = Stage(body(*timed(first, *nodes)), setup=setup, teardown=(steps.free(out), steps.free(back)))
    return Program((Buffer("send", size), Buffer("recv", size)), (stage,))


_BACK_TAG = 101
"""The tag of the messages from rank 1 to rank 0 where both send; it is another one than in `bibw`, as in OMB."""


def _initialise_window(direction: str, cell: Cell, peer: int, request: int, tag: int = WINDOW_TAG) -> Repeat:
    """The initialisation of a window of messages; `direction` (``send`` or ``recv``) is also the buffer's name."""
    step = steps.send if direction == "send" else steps.recv
    call = step(slot_of(direction, cell), peer, cell.dtype, tag)
    return Repeat(cell.options.window, (steps.persistent(call, RequestSlot(request, 1)),))


def bw(world: World, cell: Cell) -> Program:
    """Rank 0 starts a window of persistent sends and waits for a one-byte reply; rank 1 starts the receives."""
    sender, peer = world.rank == 0, 1 - world.rank
    window = Requests(0, cell.options.window)
    nodes = (steps.startall(window), steps.waitall(window), reply(sender, peer))
    stage = Stage(
        body(*timed(sender, *nodes)),
        setup=(_initialise_window("send" if sender else "recv", cell, peer, 0),),
        teardown=(Repeat(cell.options.window, (steps.free(RequestSlot(0, 1)),)),),
    )
    buffers = window_buffer("send", cell, sender), window_buffer("recv", cell, not sender)
    return Program((*buffers, Buffer("ack", REPLY_BYTES)), (stage,))


def bibw(world: World, cell: Cell) -> Program:
    """Both ranks start a window of receives and one of sends and wait for both; no reply."""
    peer, w = 1 - world.rank, cell.options.window
    incoming, outgoing = Requests(0, w), Requests(w, w)
    out_tag, in_tag = (WINDOW_TAG, _BACK_TAG) if world.rank == 0 else (_BACK_TAG, WINDOW_TAG)
    nodes = (steps.startall(incoming), steps.startall(outgoing), steps.waitall(outgoing), steps.waitall(incoming))
    stage = Stage(
        body(*timed(world.rank == 0, *nodes)),
        setup=(_initialise_window("recv", cell, peer, 0, in_tag), _initialise_window("send", cell, peer, w, out_tag)),
        teardown=(Repeat(2 * w, (steps.free(RequestSlot(0, 1)),)),),
    )
    return Program((window_buffer("send", cell), window_buffer("recv", cell)), (stage,))


_OPTIONS = OPTIONS - {"buffer_num"}

BENCHMARKS = (
    point_to_point(
        "latency_persistent",
        "one-way time of a ping-pong of persistent messages",
        latency,
        ONE_WAY,
        LATENCY_COUNTS,
        _OPTIONS,
    ),
    point_to_point(
        "bw_persistent",
        "uni-directional bandwidth of a window of persistent messages",
        bw,
        window_bytes(1),
        BANDWIDTH_COUNTS,
        OPTIONS | {"window"},
    ),
    point_to_point(
        "bibw_persistent",
        "bi-directional bandwidth of a window of persistent messages",
        bibw,
        window_bytes(2),
        BANDWIDTH_COUNTS,
        OPTIONS | {"window"},
    ),
)
