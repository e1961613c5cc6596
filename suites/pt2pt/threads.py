"""Ping-pong between several threads on each side: OMB's latency_mt."""

from __future__ import annotations

from math import lcm

from omb_py.engine.program.benchmark import Cell, Metric, Needs, World
from omb_py.engine.program.language import Body, Buffer, Program, Region, Stage
from omb_py.engine.program.steps import recv, send
from omb_py.suites.pt2pt.two_ranks import timed
from omb_py.suites.shared import LATENCY_COUNTS, message_bytes, point_to_point, sides


def latency_mt(world: World, cell: Cell) -> Program:
    """Iteration i is played by sender thread ``i % S`` and receiver thread ``i % R``, all threads at once.

    With one sender, as in OMB, all messages have one tag, so any receiver thread takes the next message. With several,
    each pair of threads has its tag (OMB: the number of the iteration).
    """
    senders, receivers = sides(cell.options.thread_counts)
    first, peer, size = world.rank == 0, 1 - world.rank, message_bytes(cell)
    threads = senders if first else receivers
    variants: list[Body] = []
    for pair in range(lcm(senders, receivers)):
        tag = 1 if senders == 1 else 1 + 2 * pair
        own = (pair % threads if senders == 1 else pair) * size  # a buffer holds the data of one tag
        out = send(Region("send", own, size), peer, cell.dtype, tag if first else tag + 1)
        back = recv(Region("recv", own, size), peer, cell.dtype, tag + 1 if first else tag)
        variants.append(timed(first, *((out, back) if first else (back, out))))
    slots = threads if senders == 1 else len(variants)
    buffers = Buffer("send", slots * size), Buffer("recv", slots * size)
    return Program(buffers, (Stage(tuple(variants), threads=threads),))


ANY_THREAD = Metric("us", "mean over iterations of lap time / 2, on rank 0, whichever thread played it", parts=2)

BENCHMARKS = (
    point_to_point(
        "latency_mt",
        "one-way time of ping-pongs between threads",
        latency_mt,
        ANY_THREAD,
        LATENCY_COUNTS,
        frozenset({"type", "validation", "ddt", "thread_counts"}),
        needs=Needs(thread_level="multiple"),
    ),
)
