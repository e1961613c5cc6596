"""Data of collectives whose blocks each rank describes for itself: the vector and the neighborhood ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.engine.program.steps import base

Place = tuple[int, int]
"""Offset in what `send` or `recv` of an operation shows, and bytes."""


def outgoing(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, Place]]:
    """(receiver, where its block lies) for each block that a rank sends."""
    kind = base(step.op)
    if kind == "scatterv" and step["root"] != rank:
        return
    peers = _peers(step, "gatherv", "targets", ranks)
    yield from zip(peers, _places(step["send"], len(peers), "gather" in kind), strict=True)


def incoming(step: Step, rank: int, ranks: int) -> Iterator[tuple[int, int, Place]]:
    """(sender, how many blocks of it came before, where this one goes) for each block that a rank receives."""
    kind = base(step.op)
    if kind == "gatherv" and step["root"] != rank:
        return
    peers = _peers(step, "scatterv", "sources", ranks)
    seen: Counter[int] = Counter()
    for peer, place in zip(peers, _places(step["recv"], len(peers), kind == "scatterv"), strict=True):
        yield peer, seen[peer], place
        seen[peer] += 1


def _peers(step: Step, rooted: str, edges: str, ranks: int) -> Sequence[int]:
    """The other ends: the root of the operation `rooted`, the neighbors of a graph, or all ranks."""
    if base(step.op) == rooted:
        return (step["root"],)
    return step.peers(edges, ranks)


def _places(data: Region | Blocks, count: int, same: bool) -> list[Place]:
    """Where `count` blocks lie; with `same` all are the whole region."""
    if isinstance(data, Blocks):
        return list(zip(data.offsets, data.sizes, strict=True))
    each = data.nbytes if same else data.nbytes // max(1, count)
    return [(0 if same else j * each, each) for j in range(count)]
