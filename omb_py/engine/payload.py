"""What every buffer must hold: known payloads for each step, so that every byte can be checked on every rank.

A payload varies with iteration, slot of the window, sender, receiver and position.  Copies carry bytes; reductions
carry small integers that stay exact in their type, and whose reduction over any number of ranks is known in closed
form: with ``q`` a fixed function of the position and ``h_r`` a number of rank r, rank r holds ``(q + h_r) mod m``, so
the result depends on the position through q alone and a table of m entries holds it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.benchmark import World
from omb_py.engine.dtypes import DTYPES
from omb_py.engine.program import Body, Region, Step, walk

Bytes: TypeAlias = NDArray[np.uint8]
Make: TypeAlias = Callable[[], Bytes]
"""Makes a payload when it is needed: all of a window at once would take as much memory as the buffers."""
Part: TypeAlias = tuple[Region, Make]


def mix(*key: int) -> int:
    """A 32-bit number that looks random, the same on every rank."""
    return zlib.crc32(np.array(key, "<i8").tobytes())


_CHUNK = 1 << 20
"""Elements of a reduction made at a time: NumPy looks them up through indices of eight bytes."""


@lru_cache(maxsize=8)
def _ramp(nbytes: int) -> Bytes:
    """Bytes that depend on the position with no short period: a shifted or swapped block does not match."""
    column, row = np.arange(256, dtype=np.uint32), np.arange(-(-nbytes // 256), dtype=np.uint32)
    within, beyond = (column * 167).astype(np.uint8), (row * 13 ^ (row >> 8) * 101).astype(np.uint8)
    return (beyond[:, None] ^ within[None, :]).reshape(-1)[:nbytes]


def pattern(nbytes: int, *key: int) -> Bytes:
    """The bytes of a message identified by `key`."""
    number = mix(*key)
    return (_ramp(nbytes) ^ np.uint8(number & 0xFF)) + np.uint8(number >> 8 & 0xFF)


@lru_cache(maxsize=8)
def _place(count: int, m: int) -> Bytes:
    """A number under `m`, at most 97, for each position."""
    column, row = np.arange(m, dtype=np.uint32), np.arange(-(-count // m), dtype=np.uint32)
    across, down = (7 * column % m).astype(np.uint8), (3 * row % m).astype(np.uint8)
    return ((down[:, None] + across[None, :]) % np.uint8(m)).reshape(-1)[:count]


def _spread(table: NDArray[np.int64], dtype: str, count: int) -> Bytes:
    """An element of the table for each position, by its place."""
    place, values = _place(count, len(table)), table.astype(DTYPES[dtype].numpy)
    out = np.empty(count, values.dtype)
    for start in range(0, count, _CHUNK):
        out[start : start + _CHUNK] = values[place[start : start + _CHUNK]]
    return out.view(np.uint8)


def modulus(dtype: str, ranks: int) -> int:
    """How many values a reduction's payload takes: as many as keep a sum over the ranks exact, 2 to 97."""
    return max(2, min(97, DTYPES[dtype].exact // max(1, ranks)))


def contribution(count: int, dtype: str, op: str, ranks: int, rank: int, *key: int) -> Bytes:
    """What `rank` puts into a reduction of `count` elements."""
    m = modulus(dtype, ranks)
    place = np.arange(m)
    if op == "prod":  # one rank holds 2 or 3 at each position, the others 1: the product is exact in every type
        table = np.where((place + mix(*key)) % ranks == rank, 2 + place % 2, 1)
    else:
        table = (place + mix(rank, *key)) % m
    return _spread(table, dtype, count)


def reduced(count: int, dtype: str, op: str, ranks: int, *key: int) -> Bytes:
    """What a reduction over all ranks must give."""
    m = modulus(dtype, ranks)
    place = np.arange(m)
    if op == "prod":
        table = 2 + place % 2
    else:
        held = (place[:, None] + np.array([mix(r, *key) % m for r in range(ranks)])[None, :]) % m
        table = {"sum": held.sum(axis=1), "min": held.min(axis=1), "max": held.max(axis=1)}[op]
    # beyond the exact range (int8 on more than 63 ranks) integers wrap as the libraries' do
    return _spread(table, dtype, count)


def _slot(region: Region, k: int) -> int:
    return k if region.stride else 0


def _blocks(nbytes: int, ranks: int, *keys: tuple[int, ...]) -> Bytes:
    return np.concatenate([pattern(nbytes // ranks, *key) for key in keys])


def _block_of_reduced(rank: int, count: int, dtype: str, op: str, ranks: int, *key: int) -> Bytes:
    whole = reduced(count, dtype, op, ranks, *key)
    block = whole.nbytes // ranks
    return whole[rank * block : (rank + 1) * block]


def inputs(step: Step, k: int, world: World, iteration: int) -> Iterator[Part]:
    """What a step reads on this rank: (region, maker of the bytes to put there before the iteration)."""
    me, n, op = world.rank, world.size, step.op.removeprefix("i")
    if op == "send":
        region: Region = step["send"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["tag"], me, step["peer"], _slot(region, k))
    elif op == "bcast" and step["root"] == me:
        yield step["buf"].at(k), partial(pattern, step["buf"].nbytes, iteration, me, _slot(step["buf"], k))
    elif op in ("allreduce", "reduce", "reduce_scatter_block"):
        region = step["send"]
        count = region.nbytes // DTYPES[step["dtype"]].itemsize
        yield region.at(k), partial(contribution, count, step["dtype"], step["op"], n, me, iteration, _slot(region, k))
    elif op in ("allgather", "gather"):
        yield step["send"].at(k), partial(pattern, step["send"].nbytes, iteration, me, _slot(step["send"], k))
    elif op == "alltoall" or (op == "scatter" and step["root"] == me):
        region = step["send"]
        yield (
            region.at(k),
            partial(_blocks, region.nbytes, n, *((iteration, me, d, _slot(region, k)) for d in range(n))),
        )


def outputs(step: Step, k: int, world: World, iteration: int) -> Iterator[Part]:
    """What a step leaves on this rank: (region, maker of the bytes that must be there after the iteration)."""
    me, n, op = world.rank, world.size, step.op.removeprefix("i")
    if op == "recv":
        region: Region = step["recv"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["tag"], step["peer"], me, _slot(region, k))
    elif op == "bcast":
        yield step["buf"].at(k), partial(pattern, step["buf"].nbytes, iteration, step["root"], _slot(step["buf"], k))
    elif op == "allreduce" or (op == "reduce" and step["root"] == me):
        region = step["recv"]
        count = region.nbytes // DTYPES[step["dtype"]].itemsize
        yield region.at(k), partial(reduced, count, step["dtype"], step["op"], n, iteration, _slot(region, k))
    elif op == "reduce_scatter_block":
        region, sent = step["recv"], step["send"]
        count = sent.nbytes // DTYPES[step["dtype"]].itemsize
        yield (
            region.at(k),
            partial(_block_of_reduced, me, count, step["dtype"], step["op"], n, iteration, _slot(sent, k)),
        )
    elif op == "scatter":
        region = step["recv"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["root"], me, _slot(region, k))
    elif op == "allgather" or (op == "gather" and step["root"] == me):
        region = step["recv"]
        yield region.at(k), partial(_blocks, region.nbytes, n, *((iteration, s, _slot(region, k)) for s in range(n)))
    elif op == "alltoall":
        region = step["recv"]
        yield (
            region.at(k),
            partial(_blocks, region.nbytes, n, *((iteration, s, me, _slot(region, k)) for s in range(n))),
        )


def expectations(nodes: Body, world: World, iteration: int) -> tuple[list[Part], list[Part]]:
    """All inputs and all outputs of a body on this rank. A region that is written twice keeps its last content."""
    before: dict[Region, Make] = {}
    after: dict[Region, Make] = {}
    for node, k in walk(nodes):
        if isinstance(node, Step):
            before.update(inputs(node, k, world, iteration))
            after.update(outputs(node, k, world, iteration))
    return list(before.items()), list(after.items())
