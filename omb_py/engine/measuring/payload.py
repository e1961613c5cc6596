"""Known payloads for each step, so that every byte of every buffer can be checked on every rank.

A payload varies with iteration, slot of the window, sender, receiver and position.  Copies carry bytes; reductions
carry small integers that stay exact in their type, and whose reduction over any number of ranks is known in closed
form: with ``q`` a fixed function of the position and ``h_r`` a number of rank r, rank r holds ``(q + h_r) mod m``, so
the result depends on the position through q alone and a table of m entries holds it.  For products, averages and
and/or, one rank decides at each place and the others hold the neutral element.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.datatype_layouts import derived
from omb_py.engine.program.dtypes import DTYPES, FP8, factor
from omb_py.engine.program.groups import duplicate_of, group_of, place_in
from omb_py.engine.program.language import Blocks, Body, Region, Step, each_node, started, walk
from omb_py.engine.program.rma import ADDING, EXPOSED
from omb_py.engine.program.steps import PREFIXES, REDUCTIONS, base

Bytes: TypeAlias = NDArray[np.uint8]
Elements: TypeAlias = NDArray[Any]
"""Numbers of any type."""
WHOLE: Final = slice(None)


class Make(Protocol):
    """Makes a payload when it is needed, all or a slice of it: all of a window would take as much memory as buffers."""

    def __call__(self, *, within: slice = WHOLE) -> Bytes: ...


Part: TypeAlias = tuple[Region, Make]
Expected: TypeAlias = tuple[list[Part], list[Part]]
_NOTHING: Final[Mapping[int, Step]] = MappingProxyType({})


@lru_cache(maxsize=8)
def mask(dtype: str, nbytes: int) -> NDArray[np.bool_] | None:
    """A mask of the bytes that travel in `nbytes` bytes of messages of a type; None: all travel."""
    kind = derived(dtype)
    if kind is None or kind.travels == kind.extent:
        return None
    item, travels = DTYPES[kind.base].itemsize, np.zeros(kind.extent, bool)
    rows = travels[: kind.times * kind.span * item].reshape(kind.times, kind.span * item)
    for place, length in kind.pieces:
        rows[:, place * item : (place + length) * item] = True
    return np.tile(travels, nbytes // kind.extent)


@dataclass(frozen=True, slots=True)
class Laid:
    """The received bytes of a message of a derived type: the payload where bytes travel, its complement in the gaps."""

    make: Make
    where: NDArray[np.bool_]

    def __call__(self, *, within: slice = WHOLE) -> Bytes:
        content = self.make(within=within)
        return np.where(self.where[within], content, ~content)

    def before(self, *, within: slice = WHOLE) -> Bytes:
        """The bytes to put there before: wrong where bytes travel; in the gaps as they must stay."""
        return ~self.make(within=within)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The bytes of one of several messages, of which each comes once, in any order (``recv_next``)."""

    key: tuple[object, ...]
    """Receives of a body with an equal key share the messages."""
    makes: tuple[Make, ...]

    def __call__(self, *, within: slice = WHOLE) -> Bytes:
        return self.makes[0](within=within)


class Arrivals:
    """Which message of :class:`AnyOf` each receive of an iteration got: of those still left the most alike."""

    def __init__(self) -> None:
        self._left: dict[tuple[object, ...], list[Make]] = {}

    def expected(self, make: Make, actual: Bytes) -> Make:
        """What must be there, where `actual` is; of an :class:`AnyOf` one message is taken out."""
        if not isinstance(make, AnyOf):
            return make
        left = self._left.setdefault(make.key, list(make.makes))
        return left.pop(min(range(len(left)), key=lambda number: count_wrong(left[number], actual)))


CHUNK: Final = 1 << 20
"""Bytes that are made, written or compared at a time: they stay in a core's cache."""


def chunks(nbytes: int) -> Iterator[slice]:
    """Slices of `nbytes` bytes, in order."""
    return (slice(start, min(start + CHUNK, nbytes)) for start in range(0, nbytes, CHUNK))


def write(places: Bytes, make: Make) -> None:
    """Put a payload into each row of `places`."""
    for within in chunks(places.shape[-1]):
        places[..., within] = make(within=within)


def count_wrong(make: Make, actual: Bytes) -> int:
    """Number of bytes that differ from a payload."""
    return sum(_count_unequal(actual[within], make(within=within)) for within in chunks(actual.size))


def _count_unequal(actual: Bytes, expected: Bytes) -> int:
    # words first: bytes that are all equal, the usual case, take a third of the time
    if actual.size % 8 == 0 and np.array_equal(actual.view(np.uint64), expected.view(np.uint64)):
        return 0
    return int(np.count_nonzero(actual != expected))


def mix(*key: int) -> int:
    """A 32-bit number that looks random, the same on every rank."""
    return zlib.crc32(np.array(key, "<i8").tobytes())


_RAMP_PERIOD: Final = 1 << 24


@cache
def _ramp(nbytes: int) -> Bytes:
    """Bytes that depend on the position with no short period: a shifted or swapped block does not match."""
    column, row = np.arange(256, dtype=np.uint32), np.arange(-(-nbytes // 256), dtype=np.uint32)
    within, beyond = (column * 167).astype(np.uint8), (row * 13 ^ (row >> 8) * 101).astype(np.uint8)
    return (beyond[:, None] ^ within[None, :]).reshape(-1)[:nbytes]


def pattern(nbytes: int, *key: int, within: slice = WHOLE) -> Bytes:
    """The bytes of a message identified by `key`, or a slice of them."""
    number = mix(*key)
    start, stop, _ = within.indices(nbytes)
    return (_ramp_slice(start, stop) ^ np.uint8(number & 0xFF)) + np.uint8(number >> 8 & 0xFF)


def _ramp_slice(start: int, stop: int) -> Bytes:
    if stop <= CHUNK:
        return _ramp(CHUNK)[start:stop]
    first, more = start % _RAMP_PERIOD, _ramp(_RAMP_PERIOD + CHUNK)
    if stop - start <= CHUNK:
        return more[first : first + stop - start]
    return _repeat(more[:_RAMP_PERIOD], start, stop)


def _repeat(period: Elements, start: int, stop: int) -> Elements:
    """The elements `start` to `stop` of those that repeat `period`."""
    first = start % len(period)
    if first + stop - start <= len(period):
        return period[first : first + stop - start]
    return np.resize(period, first + stop - start)[first:]


@lru_cache(maxsize=8)
def _position_values(m: int) -> Bytes:
    """A number under `m`, at most 97, for each position; they repeat after m² positions."""
    column = np.arange(m, dtype=np.uint32)
    across, down = 7 * column % m, 3 * column % m
    return ((down[:, None] + across[None, :]) % m).astype(np.uint8).reshape(-1)


def _spread(table: Elements, dtype: str, count: int, within: slice) -> Bytes:
    values = from_numbers(table, dtype)
    start, stop, _ = within.indices(count * values.itemsize)
    first, last = start // values.itemsize, -(-stop // values.itemsize)
    place = _position_values(len(table))
    elements = _repeat(values[place[: max(1, last)]], first, last).view(np.uint8)
    return elements[start - first * values.itemsize :][: stop - start]


@cache
def fp8_values(dtype: str) -> NDArray[np.float32]:
    """The value of each of the 256 bytes of an 8-bit float (OCP 8-bit floating point specification 1.0, section 5)."""
    fraction_bits, bias = (3, 7) if dtype == "float8e4m3" else (2, 15)
    code = np.arange(256)
    exponent, fraction = (code & 0x7F) >> fraction_bits, (code & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    values = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias))
    if dtype == "float8e4m3":
        values[code & 0x7F == 0x7F] = np.nan
    else:  # the largest exponent is infinity and NaN, as in larger types
        values[exponent == 31] = np.where(fraction[exponent == 31] > 0, np.nan, np.inf)
    return np.where(code < 128, values, -values).astype(np.float32)


def _finite_fp8(dtype: str) -> NDArray[np.float32]:
    """The finite values of an 8-bit float that are not negative, in order: of the bytes from 0 on."""
    return fp8_values(dtype)[: 0x7F if dtype == "float8e4m3" else 0x7C]


def from_numbers(numbers: Elements, dtype: str) -> Elements:
    """Numbers as elements of a type.

    bfloat16 is the upper half of a float32; integers up to 256 are exact in it. For fp8 the numbers must be values of
    the type, not negative.
    """
    if dtype in FP8:
        return np.searchsorted(_finite_fp8(dtype), numbers.astype(np.float32)).astype(np.uint8)
    if dtype == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(DTYPES[dtype].numpy)


def to_numbers(elements: Elements, dtype: str) -> Elements:
    """The reverse: bfloat16 and fp8 as float32, every other type as it is."""
    if dtype in FP8:
        numbers: NDArray[np.float32] = fp8_values(dtype)[elements]
        return numbers
    return (elements.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else elements


def modulus(dtype: str, ranks: int) -> int:
    """Number of values in a reduction's payload: as many as keep a sum over the ranks exact, 2 to 97."""
    parts = 2 if DTYPES[dtype].kind == "complex" else 1  # the imaginary part is twice the real one
    return max(2, min(_PLACES, DTYPES[dtype].exact // parts // max(1, ranks)))


SPARSE: Final = "sum of one"
_PLACES: Final = 97
_NEUTRAL: Final = {"prod": 1, "land": 1, "lor": 0, "band": -1, "bor": 0, "avg": 0, SPARSE: 0}
"""Reduction -> its neutral element. One rank decides the result, the others hold this: it is exact in every type."""


def _scheme(op: str, dtype: str, ranks: int) -> tuple[str, int]:
    """(operation by which a reduction's payload is made, number of places that differ).

    A sum over more ranks than a type of floats counts to has one summand at each place.
    """
    kind = DTYPES[dtype]
    if op in ("sum", "mulsum"):
        summands = ranks * (factor(1) if op == "mulsum" else 1)
        sparse = kind.kind != "integer" and kind.exact < summands
        return (SPARSE, _PLACES) if sparse else (op, modulus(dtype, summands))
    if kind.kind == "fp8":  # nothing adds up; not a power of two, of which ranks would hold the same
        return op, _PLACES if op in _NEUTRAL else kind.exact - 1
    return op, modulus(dtype, ranks)


def _decisive(place: NDArray[np.int64], op: str, dtype: str, ranks: int) -> NDArray[np.int64]:
    match op:
        case "avg" if DTYPES[dtype].kind == "integer":
            return ranks * (1 + place % max(1, min(_PLACES, DTYPES[dtype].exact // ranks)))
        case "avg" | "sum of one":  # powers of two, which a factor multiplies without rounding
            return 1 + place % 2
        case "prod":
            return 2 + place % 2
        case "land" | "lor":
            return place % 2
        case "band":
            return ~(1 + place % _PLACES)
    return 1 + place % _PLACES


def _complex(table: NDArray[np.int64], dtype: str) -> Elements:
    """Sums: real and imaginary parts that differ, so that halves in the wrong order do not match."""
    return table * (1 + 2j) if DTYPES[dtype].kind == "complex" else table


def reciprocal(ranks: int, dtype: str) -> float:
    """One divided by the number of ranks, rounded to a type of floats: what NCCL multiplies elements by for ``avg``.

    A power of two times this is also that power divided by the ranks, rounded; below the type's least normal number
    alone they differ.
    """
    exact = np.float32(1 / ranks)
    if dtype in FP8:
        values = _finite_fp8(dtype)
        distance = np.abs(values - exact)
        nearest = np.flatnonzero(distance == distance.min())
        return float(values[nearest[nearest % 2 == 0][0] if len(nearest) > 1 else nearest[0]])
    if dtype == "bfloat16":
        bits = int(exact.view(np.uint32))
        return float(np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32))
    return float(np.dtype(DTYPES[dtype].numpy).type(1 / ranks if dtype == "float64" else exact))


def _average(table: Elements, dtype: str, ranks: int) -> Elements:
    """Sums as averages: integers wrap and are cut off towards zero, as NCCL does (ncclDevSumPostDiv)."""
    if DTYPES[dtype].kind != "integer":
        return table * reciprocal(ranks, dtype)
    sums = from_numbers(table, dtype).astype(object)
    return np.array([abs(value) // ranks * (1 if value >= 0 else -1) for value in sums])


def contribution(count: int, dtype: str, op: str, ranks: int, rank: int, *key: int, within: slice = WHOLE) -> Bytes:
    """The bytes that `rank` puts into a reduction of `count` elements, or a slice of them."""
    op, m = _scheme(op, dtype, ranks)
    place = np.arange(m)
    if op in _NEUTRAL:
        decides = (place + mix(*key)) % ranks == rank
        table = np.where(decides, _complex(_decisive(place, op, dtype, ranks), dtype), _NEUTRAL[op])
    else:
        values = (place + mix(rank, *key)) % m
        table = _complex(values % 2 if op == "lxor" else values, dtype)
    return _spread(table, dtype, count, within)


def reduced(
    count: int, dtype: str, op: str, ranks: int, *key: int, first: int | None = None, within: slice = WHOLE
) -> Bytes:
    """The bytes that a reduction over all `ranks` must give, or over the `first` of them, one or more.

    `within` takes a slice of them.
    """
    return _spread(_make_reduced_table(dtype, op, ranks, key, first), dtype, count, within)


@lru_cache(maxsize=64)
def _make_reduced_table(dtype: str, op: str, ranks: int, key: tuple[int, ...], first: int | None) -> Elements:
    """What a reduction gives at each place of its payload's table."""
    factors = np.array([factor(r) for r in range(ranks)]) if op == "mulsum" else np.ones(ranks, np.int64)
    op, m = _scheme(op, dtype, ranks)
    place, some = np.arange(m), ranks if first is None else first
    if op in _NEUTRAL:
        decider = (place + mix(*key)) % ranks
        values = _decisive(place, op, dtype, ranks) * factors[decider]
        table = np.where(decider < some, _complex(values, dtype), _NEUTRAL[op])
        table = _average(table, dtype, ranks) if op == "avg" else table
    else:
        values = (place[:, None] + np.array([mix(r, *key) % m for r in range(some)])[None, :]) % m * factors[:some]
        combine = {"sum": np.add, "mulsum": np.add, "min": np.minimum, "max": np.maximum, "bxor": np.bitwise_xor}
        table = (values % 2).sum(axis=1) % 2 if op == "lxor" else _complex(combine[op].reduce(values, axis=1), dtype)
    # beyond the exact range (int8 on more than 63 ranks) integers wrap as the libraries' do
    return table


def _slot(region: Region, k: int) -> int:
    return k if region.stride else 0


def _blocks(nbytes: int, ranks: int, *keys: tuple[int, ...], within: slice = WHOLE) -> Bytes:
    block, (start, stop, _) = nbytes // ranks, within.indices(nbytes // ranks * ranks)
    ends = ((number, max(start - number * block, 0), min(stop - number * block, block)) for number in range(ranks))
    parts = [pattern(block, *keys[number], within=slice(first, last)) for number, first, last in ends if first < last]
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def _part_of_reduced(
    start: int, elements: int, count: int, dtype: str, op: str, ranks: int, *key: int, within: slice = WHOLE
) -> Bytes:
    item = DTYPES[dtype].itemsize
    first, last, _ = within.indices(elements * item)
    return reduced(count, dtype, op, ranks, *key, within=slice(start * item + first, start * item + last))


def _edges(peers: Sequence[int], data: Region | Blocks) -> Iterator[tuple[int, int, Region]]:
    """(peer, how many edges to it came before, its block) for each edge of a vector or neighborhood collective."""
    edges_to: Counter[int] = Counter()
    size = data.nbytes // max(1, len(peers))
    for j, peer in enumerate(peers):
        block = data.block(j) if isinstance(data, Blocks) else Region(data.buffer, data.offset + j * size, size)
        yield peer, edges_to[peer], block
        edges_to[peer] += 1


_ONE_SIDED: Final = 1 << 20
"""Part of the key of one-sided payloads, larger than any tag."""


def _window_parts(
    step: Step, k: int, world: World, iteration: int
) -> Iterator[tuple[Region, Make | None, Make | None]]:
    """(region, bytes before, bytes after) of an operation on a window: at its origin, or (``exposed``) at its target.

    In an accumulation the target holds what rank 0 of two would contribute to a reduction, the origin what rank 1
    would. A compare-and-swap finds what it compares with in every other iteration. The place in the target's window is
    a part of the key, so that two operations of one origin are told apart.
    """
    exposed = step.op == EXPOSED
    op: str = step["call"] if exposed else step.op
    origin, target = (step["peer"], world.rank) if exposed else (world.rank, step["peer"])
    place: Region = step["window"]
    key, nbytes = (iteration, _ONE_SIDED, origin, target, place.offset, _slot(place, k)), place.nbytes
    parts: dict[str, tuple[Make | None, Make | None]]
    if op == "compare_and_swap":
        old, new = (partial(pattern, nbytes, *key, swapped) for swapped in (0, 1))
        equal = iteration % 2 == 0
        unequal = partial(_unlike, nbytes, *key, 0)
        parts = {
            "window": (old, new if equal else old),
            "send": (new, None),
            "recv": (None, old),
            "compare": (old if equal else unequal, None),
        }
    elif op in ADDING:
        count, dtype, reduction = nbytes // DTYPES[step["dtype"]].itemsize, step["dtype"], step["op"]
        target_values, origin_values = (partial(contribution, count, dtype, reduction, 2, who, *key) for who in (0, 1))
        total = partial(reduced, count, dtype, reduction, 2, *key)
        parts = {"window": (target_values, total), "send": (origin_values, None), "recv": (None, target_values)}
    else:
        moved = partial(pattern, nbytes, *key)
        parts = {"window": (moved if op.endswith("get") else None, moved), "send": (moved, None), "recv": (None, moved)}
    for name, (before, after) in parts.items():
        if name in step.operands and (name == "window") == exposed:
            yield step[name].at(k), before, after


def _unlike(nbytes: int, *key: int, within: slice = WHOLE) -> Bytes:
    return pattern(nbytes, *key, within=within) ^ np.uint8(0x0F)


def _zeros(nbytes: int, within: slice = WHOLE) -> Bytes:
    return np.zeros(len(range(*within.indices(nbytes))), np.uint8)


def inputs(step: Step, k: int, world: World, iteration: int) -> Iterator[Part]:
    """The inputs of a step on this rank: (region, maker of the bytes to put there before the iteration)."""
    me, n, op = world.rank, world.size, base(step.op)
    if op == "zero":
        yield step["send"], partial(_zeros, step["send"].nbytes)
    elif "window" in step.operands:
        for place, before, _ in _window_parts(step, k, world, iteration):
            if before is not None:
                yield place, before
    elif op == "reduce_local":
        count = step["recv"].nbytes // DTYPES[step["dtype"]].itemsize
        for place, who in ((step["send"], 0), (step["recv"], 1)):
            yield place.at(k), partial(contribution, count, step["dtype"], step["op"], 2, who, iteration, me)
    elif op in ("send", "psend"):
        region: Region = step["send"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["tag"], me, step["peer"], _slot(region, k))
    elif op == "answer":
        yield step["send"].at(k), partial(pattern, step["send"].nbytes, iteration, step["tag"], me)
    elif op == "bcast" and step["root"] == me:
        yield step["buf"].at(k), partial(pattern, step["buf"].nbytes, iteration, me, _slot(step["buf"], k))
    elif op in REDUCTIONS or op in PREFIXES:
        region = step["send"]
        count = region.nbytes // DTYPES[step["dtype"]].itemsize
        yield region.at(k), partial(contribution, count, step["dtype"], step["op"], n, me, iteration, _slot(region, k))
    elif op in ("allgather", "gather", "allgatherv", "gatherv", "neighbor_allgather", "neighbor_allgatherv"):
        yield step["send"].at(k), partial(pattern, step["send"].nbytes, iteration, me, _slot(step["send"], k))
    elif op == "alltoall" or (op == "scatter" and step["root"] == me):
        region = step["send"]
        yield (
            region.at(k),
            partial(_blocks, region.nbytes, n, *((iteration, me, d, _slot(region, k)) for d in range(n))),
        )
    elif op in _PERSONAL or (op == "scatterv" and step["root"] == me):
        for peer, number, block in _edges(step.peers("targets", n), step["send"]):
            yield block, partial(pattern, block.nbytes, iteration, me, peer, number)


_PERSONAL = ("alltoallv", "alltoallw", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw")


def outputs(step: Step, k: int, world: World, iteration: int) -> Iterator[Part]:
    """The outputs of a step on this rank: (region, maker of the bytes that must be there after the iteration)."""
    me, n, op = world.rank, world.size, base(step.op)
    if "window" in step.operands:
        for place, _, after in _window_parts(step, k, world, iteration):
            if after is not None:
                yield place, after
    elif op == "reduce_local":
        count = step["recv"].nbytes // DTYPES[step["dtype"]].itemsize
        yield step["recv"].at(k), partial(reduced, count, step["dtype"], step["op"], 2, iteration, me)
    elif op == "recv_next":
        place, tag = step["recv"].at(k), step["tag"]
        makes = (partial(pattern, place.nbytes, iteration, tag, sender, me, 0) for sender in step["senders"])
        yield place, AnyOf((tag, step["senders"]), tuple(makes))
    elif "answered" in step.operands:
        yield step["recv"].at(k), partial(pattern, step["recv"].nbytes, iteration, step["tag"], step["peer"])
    elif op in ("recv", "precv"):
        region: Region = step["recv"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["tag"], step["peer"], me, _slot(region, k))
    elif op == "bcast":
        yield step["buf"].at(k), partial(pattern, step["buf"].nbytes, iteration, step["root"], _slot(step["buf"], k))
    elif op in REDUCTIONS and step.operands.get("root", me) == me:
        region, sent = step["recv"], step["send"]
        item = DTYPES[step["dtype"]].itemsize
        elements, start = region.nbytes // item, 0
        if op == "reduce_scatter_block":
            start = me * elements
        elif op == "reduce_scatter":
            start, elements = sum(step["counts"][:me]), step["counts"][me]
            region = replace(region, nbytes=elements * item)
        key = step["dtype"], step["op"], n, iteration, _slot(sent, k)
        yield region.at(k), partial(_part_of_reduced, start, elements, sent.nbytes // item, *key)
    elif op in PREFIXES and (before := me + (op == "scan")):
        region, sent = step["recv"], step["send"]
        count = sent.nbytes // DTYPES[step["dtype"]].itemsize
        key = step["dtype"], step["op"], n, iteration, _slot(sent, k)
        yield region.at(k), partial(reduced, count, *key, first=before)
    elif op == "scatter":
        region = step["recv"]
        yield region.at(k), partial(pattern, region.nbytes, iteration, step["root"], me, _slot(region, k))
    elif op == "scatterv":
        yield step["recv"], partial(pattern, step["recv"].nbytes, iteration, step["root"], me, 0)
    elif op == "allgather" or (op == "gather" and step["root"] == me):
        region = step["recv"]
        yield region.at(k), partial(_blocks, region.nbytes, n, *((iteration, s, _slot(region, k)) for s in range(n)))
    elif op == "alltoall":
        region = step["recv"]
        yield (
            region.at(k),
            partial(_blocks, region.nbytes, n, *((iteration, s, me, _slot(region, k)) for s in range(n))),
        )
    elif op in _PERSONAL:
        for peer, number, block in _edges(step.peers("sources", n), step["recv"]):
            yield block, partial(pattern, block.nbytes, iteration, peer, me, number)
    elif op in ("allgatherv", "neighbor_allgather", "neighbor_allgatherv") or (op == "gatherv" and step["root"] == me):
        for peer, _, block in _edges(step.peers("sources", n), step["recv"]):
            yield block, partial(pattern, block.nbytes, iteration, peer, 0)


def expectations(nodes: Body, world: World, iteration: int, persistent: Mapping[int, Step] = _NOTHING) -> Expected:
    """All inputs and all outputs of a body on this rank. A region that is written twice keeps its last content.

    Args:
        nodes: the body.
        world: the place of the rank.
        iteration: its number, part of every payload.
        persistent: the step that each persistent request starts (:func:`omb_py.engine.program.language.templates`).
    """
    before: dict[Region, Make] = {}
    after: dict[Region, Make] = {}
    for node, k in walk(nodes):
        if isinstance(node, Step):
            for step in started(node, persistent):
                group, place = group_of(step), place_in(step, world)
                # ranks count within their group: its number in the key tells what another group would send
                number = mix(iteration, *group) if group else iteration
                if thread := duplicate_of(step):  # likewise another thread's
                    number = mix(number, thread)
                before.update(inputs(step, k, place, number))
                after.update(_lay(step, part, place) for part in outputs(step, k, place, number))
    return list(before.items()), list(after.items())


def _lay(step: Step, part: Part, world: World) -> Part:
    """A part of a step's outputs with the gaps of its datatype. The root of a broadcast keeps its own bytes."""
    region, make = part
    kind = str(step.operands.get("dtype", ""))
    where = mask(kind, region.nbytes) if "@" in kind else None
    if where is None or ("buf" in step.operands and step["root"] == world.rank):
        return part
    return region, Laid(make, where)


def repeatable(nodes: Body, persistent: Mapping[int, Step] = _NOTHING) -> bool:
    """Whether a second iteration finds the same inputs as the first.

    It does not when a reduction or exchange is in place, nor when an operation adds to a window or to a buffer.
    """
    for node in each_node(nodes):
        if isinstance(node, Step):
            if node.operands.get("call", node.op) in ADDING or node.op in ("sendrecv_replace", "reduce_local"):
                return False
            for step in started(node, persistent):
                if "in_place" in step.operands and base(step.op) in (*REDUCTIONS, "alltoall", *_PERSONAL):
                    return False
    return True
