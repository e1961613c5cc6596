"""Ping-pong beside forked processes that sleep: OMB's latency_mp, a test of fork safety."""

from __future__ import annotations

from dataclasses import replace

from omb_py.engine.program.benchmark import Cell, Needs, World
from omb_py.engine.program.language import Host, Program
from omb_py.engine.rank.lifetime import Children
from omb_py.suites.pt2pt.two_ranks import OPTIONS, latency
from omb_py.suites.shared import LATENCY_COUNTS, ONE_WAY, point_to_point, sides


def latency_mp(world: World, cell: Cell) -> Program:
    """The ping-pong of `latency` while forked children sleep, from before a size's first iteration until its last."""
    children = Children(sides(cell.options.process_counts)[world.rank])
    setup = Host(f"fork {children.count} processes that sleep", children.start)
    teardown = Host("end the forked processes", children.end)
    plain = latency(world, cell)
    return replace(plain, stages=(replace(plain.stages[0], setup=(setup,), teardown=(teardown,)),))


BENCHMARKS = (
    point_to_point(
        "latency_mp",
        "one-way time of a ping-pong beside forked processes",
        latency_mp,
        ONE_WAY,
        LATENCY_COUNTS,
        OPTIONS | {"process_counts"},
        needs=Needs(fork=True),
    ),
)
