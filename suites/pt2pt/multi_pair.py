"""Pairs of ranks i and i + ranks/2, all at once: OMB's multi_lat and mbw_mr."""

from __future__ import annotations

from omb_py.engine.program.benchmark import Cell, Counts, Metric, World
from omb_py.engine.program.language import Buffer, Program, Stage, body
from omb_py.engine.program.steps import barrier
from omb_py.suites.pt2pt.two_ranks import OPTIONS, in_turn, one_way, ping_pong, timed
from omb_py.suites.shared import EVEN, LATENCY_COUNTS, message_bytes, point_to_point


def pair_of(world: World) -> tuple[bool, int]:
    """Whether this rank sends, and the other rank of its pair."""
    pairs = world.size // 2
    return world.rank < pairs, (world.rank + pairs) % world.size


def multi_lat(world: World, cell: Cell) -> Program:
    """Every pair plays ping-pong; a barrier comes before each iteration."""
    first, peer = pair_of(world)
    slots = in_turn(cell)
    bodies = tuple((barrier(), *timed(first, *ping_pong(cell, peer, first, slot))) for slot in range(slots))
    size = slots * message_bytes(cell)
    return Program((Buffer("send", size), Buffer("recv", size)), (Stage(bodies),))


def mbw_mr(world: World, cell: Cell) -> Program:
    """Every pair exchanges a window in one direction; two barriers come before each iteration, as in OMB."""
    sender, peer = pair_of(world)
    buffers, nodes = one_way(cell, peer, sender)
    return Program(buffers, (Stage(body(barrier(), barrier(), *timed(sender, *nodes))),))


EACH_PAIR = Metric(
    "us", "mean over pairs of the mean over iterations of lap time / 2, on the first of the pair", parts=2
)
ALL_PAIRS = Metric(
    "MB/s",
    "size × window × pairs × iterations / mean of the senders' laps in all; messages/s: that / size",
    bytes_of=lambda cell, ranks: message_bytes(cell) * cell.options.window * (ranks // 2),
)
RATE_COUNTS = Counts(100, 10, 100, 10)
"""As in OMB 7.5, which here alone does not lower the iterations of large messages."""

BENCHMARKS = (
    point_to_point(
        "multi_lat",
        "one-way time of ping-pongs of all pairs at once",
        multi_lat,
        EACH_PAIR,
        LATENCY_COUNTS,
        OPTIONS,
        ranks=EVEN,
        timed="first half",
        bytes_total=lambda size, ranks: size * (ranks // 2),
    ),
    point_to_point(
        "mbw_mr",
        "bandwidth and message rate of all pairs at once",
        mbw_mr,
        ALL_PAIRS,
        RATE_COUNTS,
        OPTIONS | {"window", "vary_window", "print_rate"},
        ranks=EVEN,
        timed="first half",
        bytes_total=lambda size, ranks: size * (ranks // 2),
    ),
)
