"""Blocks of collectives that each rank describes for itself: vector and neighborhood collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.engine.program.steps import base

Place = tuple[int, int]
"""Offset and number of bytes in the `send` or `recv` of an operation."""


def outgoing(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, Place]]:
    """(receiver, place) of each block that a rank sends."""
    kind = base(step.op)
    if kind == "scatterv" and step["root"] != rank:
        return
    peers = _peers(step, "gatherv", "targets", ranks)
    yield from zip(peers, _places(step["send"], len(peers), "gather" in kind), strict=True)


def incoming(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, int, Place]]:
    """(sender, number among the sender's blocks, place) of each block that a rank receives."""
    kind = base(step.op)
    if kind == "gatherv" and step["root"] != rank:
        return
    peers = _peers(step, "scatterv", "sources", ranks)
    count_of: Counter[int] = Counter()
    for peer, place in zip(peers, _places(step["recv"], len(peers), kind == "scatterv"), strict=True):
        yield peer, count_of[peer], place
        count_of[peer] += 1


def _peers(step: Step, rooted: str, edges: str, ranks: int) -> Sequence[int]:
    """The peers of a rank: the root of the operation `rooted`, the neighbors in a graph, or all ranks."""
    if base(step.op) == rooted:
        return (step["root"],)
    return step.peers(edges, ranks)


def _places(data: Region | Blocks, count: int, same: bool) -> list[Place]:
    """The places of `count` blocks; with `same` each is the whole region."""
    if isinstance(data, Blocks):
        return list(zip(data.offsets, data.sizes, strict=True))
    each = data.nbytes if same else data.nbytes // max(1, count)
    return [(0 if same else j * each, each) for j in range(count)]
