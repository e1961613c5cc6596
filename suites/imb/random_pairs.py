"""Messages between ranks drawn at random: IMB-P2P's Unirandom, Birandom and Corandom.

IMB draws a pair of ranks (Unirandom, Birandom) or a ring of all ranks (Corandom) for each message, the same on every
rank. Here a fixed seed draws :data:`ROUNDS` rounds that take turns; an iteration is a round of as many pairs as ranks,
or one ring. Figures as in IMB: the time is the sum of all ranks' times / messages.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import lru_cache

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Metric, World
from omb_py.engine.program.language import Body, Buffer, Lap, Node, Program, Region, RequestSlot, Stage
from omb_py.suites.imb.messages import Make, messages
from omb_py.suites.shared import COLLECTIVE_COUNTS, message_bytes

ROUNDS = 16
"""Different rounds."""
_SEED = 2021

Ends = tuple[int, bool]
"""(other rank of the message, whether this rank is the first of the pair)."""


@lru_cache(maxsize=8)
def pairs(ranks: int) -> tuple[tuple[tuple[Ends, ...], ...], ...]:
    """For each rank and round the pairs that it is in, in the order in which all ranks meet them."""
    draw = random.Random(_SEED)
    rounds: list[list[list[Ends]]] = [[[] for _ in range(ROUNDS)] for _ in range(ranks)]
    for number in range(ROUNDS):
        for _ in range(ranks):
            first, second = draw.sample(range(ranks), 2)
            rounds[first][number].append((second, True))
            rounds[second][number].append((first, False))
    return tuple(tuple(map(tuple, each)) for each in rounds)


@lru_cache(maxsize=8)
def rings(ranks: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each rank and round its (predecessor, successor) in a ring of all ranks."""
    draw = random.Random(_SEED)
    rounds: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for _ in range(ROUNDS):
        ring = draw.sample(range(ranks), ranks)
        for place, rank in enumerate(ring):
            rounds[rank].append((ring[place - 1], ring[(place + 1) % ranks]))
    return tuple(map(tuple, rounds))


def _program(cell: Cell, peers: int, bodies: Iterable[Iterable[Node]]) -> Program:
    nbytes = peers * message_bytes(cell)
    variants: tuple[Body, ...] = tuple((Lap(), *nodes, Lap("time")) for nodes in bodies)
    return Program((Buffer("send", nbytes), Buffer("recv", nbytes)), (Stage(variants),))


def _message_offsets(peers: Iterable[int]) -> dict[int, int]:
    """The place in the buffers of the messages to and from each other rank: apart, so that each can be checked."""
    return {peer: place for place, peer in enumerate(sorted(set(peers)))}


def _send(cell: Cell, place: int, target: int) -> Node:
    size = message_bytes(cell)
    return steps.send(Region("send", place * size, size), target, cell.dtype)


def _receive(cell: Cell, place: int, source: int) -> Node:
    size = message_bytes(cell)
    return steps.recv(Region("recv", place * size, size), source, cell.dtype)


def _exchange_both(cell: Cell, places: Mapping[int, int], source: int, target: int) -> tuple[Node, ...]:
    """A message to `target` and one from `source`, as IMB does both: the receive is posted first."""
    size = message_bytes(cell)
    back = steps.irecv(Region("recv", places[source] * size, size), source, cell.dtype, RequestSlot(0))
    return back, _send(cell, places[target], target), steps.wait(RequestSlot(0))


def unirandom(world: World, cell: Cell) -> Program:
    """In each pair the first rank sends."""
    rounds = pairs(world.size)[world.rank]
    places = _message_offsets(peer for each in rounds for peer, _ in each)
    bodies = ([(_send if first else _receive)(cell, places[peer], peer) for peer, first in each] for each in rounds)
    return _program(cell, len(places), bodies)


def birandom(world: World, cell: Cell) -> Program:
    """In each pair both ranks send at once."""
    rounds = pairs(world.size)[world.rank]
    places = _message_offsets(peer for each in rounds for peer, _ in each)
    bodies = ([node for peer, _ in each for node in _exchange_both(cell, places, peer, peer)] for each in rounds)
    return _program(cell, len(places), bodies)


def corandom(world: World, cell: Cell) -> Program:
    """All ranks stand in a random ring, and each sends to the next one."""
    rounds = rings(world.size)[world.rank]
    places = _message_offsets(peer for ends in rounds for peer in ends)
    return _program(cell, len(places), (_exchange_both(cell, places, *ends) for ends in rounds))


_ONE = Metric("us", "sum over ranks of their mean lap / messages of an iteration, one for each rank")
_TWO = Metric("us", "sum over ranks of their mean lap / messages of an iteration, two for each rank", parts=2)


def _benchmark(name: str, summary: str, program: Make, metric: Metric) -> Benchmark:
    return messages(name, summary, program, metric, COLLECTIVE_COUNTS, bytes_total=lambda size, ranks: size * ranks)


BENCHMARKS = (
    _benchmark("unirandom", "a message between two random ranks", unirandom, _ONE),
    _benchmark("birandom", "messages both ways between two random ranks", birandom, _TWO),
    _benchmark("corandom", "a message to the next rank in a random ring", corandom, _ONE),
)
