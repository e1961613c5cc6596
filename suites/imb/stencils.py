"""Exchange with all neighbors of a periodic grid: IMB-P2P's Stencil2D and Stencil3D.

An iteration posts a receive from and a send to each neighbor and waits for all. The time is the sum of all ranks'
times / messages, as in IMB, and the bytes are those of a message of each rank, as its Mbytes/sec count.
"""

from __future__ import annotations

from math import prod

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Metric, RankRule, World
from omb_py.engine.program.language import Buffer, Lap, Program, Region, Requests, RequestSlot, Stage, body
from omb_py.grammar.graphs import dims_create
from omb_py.suites.imb.messages import Make, messages, tags
from omb_py.suites.shared import COLLECTIVE_COUNTS, message_bytes


def neighbors(rank: int, lengths: tuple[int, ...]) -> list[int]:
    """The ranks before and after `rank` in each dimension of a periodic grid, the last dimension first."""
    nearby, stride = [], 1
    for length in reversed(lengths):
        place = rank // stride % length
        nearby += [rank + ((place + step) % length - place) * stride for step in (-1, 1)]
        stride *= length
    return nearby


def _stencil(dimensions: int) -> Make:
    def program(world: World, cell: Cell) -> Program:
        size, peers = message_bytes(cell), neighbors(world.rank, dims_create(world.size, dimensions))
        count = len(peers)
        ends = list(zip(peers, tags(peers), strict=True))
        posts = [
            *(
                steps.irecv(Region("recv", j * size, size), peer, cell.dtype, RequestSlot(j), tag)
                for j, (peer, tag) in enumerate(ends)
            ),
            *(
                steps.isend(Region("send", j * size, size), peer, cell.dtype, RequestSlot(count + j), tag)
                for j, (peer, tag) in enumerate(ends)
            ),
        ]
        loop = body(Lap(), *posts, steps.waitall(Requests(0, 2 * count)), Lap("time"))
        return Program((Buffer("send", count * size), Buffer("recv", count * size)), (Stage(loop),))

    return program


def _grid(dimensions: int) -> RankRule:
    def admits(ranks: int) -> bool:
        return ranks > 1 and min(lengths := dims_create(ranks, dimensions)) > 1 and prod(lengths) == ranks

    least = " × ".join(["2"] * dimensions)
    return RankRule(f"a grid of {dimensions} dimensions, {least} or larger", admits)


def _benchmark(dimensions: int) -> Benchmark:
    count = 2 * dimensions
    return messages(
        f"stencil{dimensions}d",
        f"a message to and from each of {count} neighbors in a grid of {dimensions} dimensions",
        _stencil(dimensions),
        Metric("us", f"sum over ranks of their mean lap / messages of all ranks, {count} each", parts=count),
        COLLECTIVE_COUNTS,
        _grid(dimensions),
        bytes_total=lambda size, ranks: size * ranks,
    )


BENCHMARKS = (_benchmark(2), _benchmark(3))
