"""Exchanges of IMB-MPI1 and IMB-P2P: between two ranks, with the neighbors in a ring, and in pairs of ranks.

Patterns and figures: Intel MPI Benchmarks User Guide 2021.8, "IMB-MPI1 Benchmarks" and "IMB-P2P Benchmarks". As there
no barrier separates iterations. Bytes of an operation are those that its Mbytes/sec count.
"""

from __future__ import annotations

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Metric, World
from omb_py.engine.program.dtypes import reduction_dtype
from omb_py.engine.program.language import Buffer, Lap, Node, Program, Region, Requests, RequestSlot, Stage, body
from omb_py.suites.imb.messages import OPTIONS, Make, messages, tags
from omb_py.suites.pt2pt.multi_pair import ALL_PAIRS, pair_of
from omb_py.suites.pt2pt.two_ranks import REPLY_BYTES, WINDOW_TAG, one_way, reply, timed, window_buffer, window_posts
from omb_py.suites.shared import (
    BANDWIDTH_COUNTS,
    COLLECTIVE_COUNTS,
    EVEN,
    EXACTLY_TWO,
    ONE_WAY,
    PER_CALL,
    REDUCTION_SIZES,
    TWO_OR_MORE,
    barrier_after,
    message_bytes,
    point_to_point,
)


def _time_nodes(size: int, *nodes: Node, count: int = 1) -> Program:
    """A program that times all nodes, with room for `count` messages to send and as many to receive."""
    loop = body(Lap(), *nodes, Lap("time"))
    return Program((Buffer("send", count * size), Buffer("recv", count * size)), (Stage(loop),))


def pingping(world: World, cell: Cell, any_source: bool = False) -> Program:
    """Both ranks send at once: each message meets the other on its way."""
    size, peer = message_bytes(cell), 1 - world.rank
    receive = steps.recv_any if any_source else steps.recv
    out = steps.isend(Region("send", 0, size), peer, cell.dtype, RequestSlot(0))
    return _time_nodes(size, out, receive(Region("recv", 0, size), peer, cell.dtype), steps.wait(RequestSlot(0)))


def pingping_any_source(world: World, cell: Cell) -> Program:
    """The same, received from any rank."""
    return pingping(world, cell, any_source=True)


def pingpong_any_source(world: World, cell: Cell) -> Program:
    """Blocking ping-pong, received from any rank."""
    size, peer, first = message_bytes(cell), 1 - world.rank, world.rank == 0
    ping = steps.send(Region("send", 0, size), peer, cell.dtype)
    pong = steps.recv_any(Region("recv", 0, size), peer, cell.dtype)
    nodes = (ping, pong) if first else (pong, ping)
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(body(*timed(first, *nodes))),))


def exchange(world: World, cell: Cell) -> Program:
    """A message to and from each of both neighbors in a ring; with two ranks both are the same one."""
    size, right, left = message_bytes(cell), (world.rank + 1) % world.size, (world.rank - 1) % world.size
    first, second = tags((right, left))
    return _time_nodes(
        size,
        steps.isend(Region("send", 0, size), right, cell.dtype, RequestSlot(0), first),
        steps.isend(Region("send", size, size), left, cell.dtype, RequestSlot(1), second),
        steps.recv(Region("recv", 0, size), left, cell.dtype, first),
        steps.recv(Region("recv", size, size), right, cell.dtype, second),
        steps.waitall(Requests(0, 2)),
        count=2,
    )


def sendrecv_call(world: World, cell: Cell) -> Program:
    """MPI_Sendrecv around a ring."""
    size, right, left = message_bytes(cell), (world.rank + 1) % world.size, (world.rank - 1) % world.size
    out, into = Region("send", 0, size), Region("recv", 0, size)
    return _time_nodes(size, steps.sendrecv(out, right, into, left, cell.dtype))


def sendrecv_replace(world: World, cell: Cell) -> Program:
    """MPI_Sendrecv_replace around a ring."""
    size, right, left = message_bytes(cell), (world.rank + 1) % world.size, (world.rank - 1) % world.size
    call = steps.sendrecv_replace(Region("buf", 0, size), right, left, cell.dtype)
    return Program((Buffer("buf", size),), (Stage(body(Lap(), call, Lap("time"))),))


def uniband(world: World, cell: Cell) -> Program:
    """Every pair of ranks i and i + ranks/2 moves a window in one direction, without a barrier between windows."""
    sender, peer = pair_of(world)
    buffers, nodes = one_way(cell, peer, sender)
    return Program(buffers, (Stage(body(*timed(sender, *nodes))),))


def biband(world: World, cell: Cell) -> Program:
    """Every pair moves a window in both directions; the second half of the ranks ends it with a byte."""
    first, peer = pair_of(world)
    posts = window_posts(cell, peer, WINDOW_TAG, WINDOW_TAG)
    nodes = timed(first, *posts, steps.waitall(Requests(0, 2 * cell.options.window)), reply(first, peer))
    buffers = window_buffer("send", cell), window_buffer("recv", cell), Buffer("ack", REPLY_BYTES)
    return Program(buffers, (Stage(body(*nodes)),))


def reduce_local(world: World, cell: Cell) -> Program:
    """MPI_Reduce_local of two buffers on every rank, without communication."""
    size = message_bytes(cell)
    kind = reduction_dtype(cell.dtype)
    call = steps.reduce_local(Region("send", 0, size), Region("recv", 0, size), kind, cell.options.op)
    loop = body(Lap(), call, Lap("time"), *barrier_after(cell.options.process_sync))
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(loop),))


_BOTH_WAYS = Metric(
    "MB/s",
    "2 × size × window × pairs × iterations / mean of the first half's laps in all",
    bytes_of=lambda cell, ranks: 2 * message_bytes(cell) * cell.options.window * (ranks // 2),
)


def _bandwidth(name: str, summary: str, program: Make, metric: Metric) -> Benchmark:
    return point_to_point(
        name,
        summary,
        program,
        metric,
        BANDWIDTH_COUNTS,
        OPTIONS | {"window"},
        EVEN,
        "first half",
        lambda size, ranks: size * (ranks // 2),
    )


BENCHMARKS = (
    messages("pingping", "time of a message that meets another on its way", pingping, ranks=EXACTLY_TWO),
    messages(
        "pingping_any_source", "the same as pingping, received from any rank", pingping_any_source, ranks=EXACTLY_TWO
    ),
    messages(
        "pingpong_any_source",
        "one-way time of a ping-pong that is received from any rank",
        pingpong_any_source,
        ONE_WAY,
        ranks=EXACTLY_TWO,
        timed="rank 0",
    ),
    messages(
        "exchange",
        "a message to and from each of both neighbors in a ring",
        exchange,
        bytes_total=lambda size, ranks: 4 * size,
    ),
    messages("sendrecv_call", "MPI_Sendrecv around a ring", sendrecv_call, bytes_total=lambda size, ranks: 2 * size),
    messages(
        "sendrecv_replace",
        "MPI_Sendrecv_replace around a ring",
        sendrecv_replace,
        bytes_total=lambda size, ranks: size * ranks,
    ),
    _bandwidth("uniband", "bandwidth of all pairs at once, without a barrier between windows", uniband, ALL_PAIRS),
    _bandwidth("biband", "bandwidth of all pairs at once in both directions", biband, _BOTH_WAYS),
    Benchmark(
        "reduce_local",
        "collective",
        "reduction of two buffers of a rank, without communication",
        reduce_local,
        PER_CALL,
        REDUCTION_SIZES,
        COLLECTIVE_COUNTS,
        TWO_OR_MORE,
        "all",
        "int32",
        frozenset({"type", "op", "validation", "full", "process_sync"}),
        bytes_total=lambda size, ranks: size,
    ),
)
