"""Derived datatypes: which elements of a message travel (``-D``), in a form that goes with every step.

A *layout* is ``cont``, ``vect:STRIDE:BLOCK`` or ``indx:DISPLACEMENT+LENGTH,…``, in elements; it is repeated as often as
it fits into a message. ``once:…`` is ``indx:…`` without repetition. A step names the derived type of its messages
``TYPE@LAYOUT@BYTES``: one such element is a whole message of so many bytes, gaps and all, so that counts and
displacements stay those of a plain program.

Pure: the command line reads programs without loading NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from omb_py.engine.program.benchmark import Benchmark, Cell, Volume, World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Blocks, Program, Region, Step, each_step

Pieces = tuple[tuple[int, int], ...]
"""(displacement, length) of each piece that travels."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived datatype of a message: pieces of elements, repeated, with gaps."""

    base: str
    """Name of the type of its elements."""
    pieces: Pieces
    """Pieces of one repetition, in elements."""
    span: int
    """Elements from one repetition to the next."""
    times: int
    extent: int
    """Bytes of a message, gaps included."""

    @property
    def travels(self) -> int:
        return self.times * sum(length for _, length in self.pieces) * DTYPES[self.base].itemsize


def pieces_of(layout: str) -> tuple[Pieces, int]:
    """(pieces that travel, span) of one repetition of a layout, in elements."""
    kind, _, parameters = layout.partition(":")
    if kind == "cont":
        return ((0, 1),), 1
    if kind == "vect":
        stride, block = (int(word) for word in parameters.split(":"))
        return ((0, block),), stride
    words = (word.split("+") for word in parameters.split(","))
    pieces = tuple((int(place), int(length)) for place, length in words)
    return pieces, max(place + length for place, length in pieces)


def times_of(layout: str, elements: int) -> int:
    """How often a layout stands in a message of so many elements."""
    span = pieces_of(layout)[1]
    return min(1, elements // span) if layout.startswith("once:") else elements // span


def fewest_elements(layout: str) -> int:
    """Elements below which a size is left out. A vector of OMB's is sent without any block where none fits."""
    return 1 if layout.startswith("vect:") else pieces_of(layout)[1]


@lru_cache(maxsize=256)
def derived(name: str) -> Derived | None:
    """The derived type that a step names; None for a plain one."""
    base, at, suffix = name.partition("@")
    if not at:
        return None
    layout, _, extent = suffix.rpartition("@")
    pieces, span = pieces_of(layout)
    return Derived(base, pieces, span, times_of(layout, int(extent) // DTYPES[base].itemsize), int(extent))


def itemsize(name: str) -> int:
    """Bytes from one element of a type, plain or derived, to the next."""
    kind = derived(name)
    return kind.extent if kind else DTYPES[name].itemsize


def message_bytes(cell: Cell) -> int:
    """Bytes of the whole elements in a message of the cell's size: OMB's count is size // itemsize."""
    return cell.size - cell.size % DTYPES[cell.dtype].itemsize


def transmitted(cell: Cell) -> int:
    """Bytes of a message of the cell that travel."""
    if not cell.options.ddt:
        return message_bytes(cell)
    item = DTYPES[cell.dtype].itemsize
    pieces, _ = pieces_of(cell.options.ddt)
    return times_of(cell.options.ddt, cell.size // item) * sum(length for _, length in pieces) * item


def volume_of(benchmark: Benchmark, cell: Cell, ranks: int) -> Volume:
    """Types and bytes that a cell's calls move."""
    if benchmark.volume:
        return benchmark.volume(cell, ranks)
    message = transmitted(cell)
    return Volume(benchmark.sent_dtype(cell.dtype), message, benchmark.bytes_total(message, ranks))


def laid_out(benchmark: Benchmark) -> Benchmark:
    """The benchmark whose programs send messages with the layout `Cell.ddt`, if it takes ``-D``."""
    if "ddt" not in benchmark.options:
        return benchmark
    original: Callable[[World, Cell], Program] = benchmark.program

    def program(world: World, cell: Cell) -> Program:
        built = original(world, cell)
        extent = message_bytes(cell)
        if not cell.options.ddt or not extent:
            return built
        name = f"{cell.dtype}@{cell.options.ddt}@{extent}"

        def laid(step: Step) -> Step:
            if step.operands.get("dtype") != cell.dtype or _replies(step):
                return step
            return Step(step.op, {**step.operands, "dtype": name})

        return each_step(built, laid)

    return replace(benchmark, program=program)


def _replies(step: Step) -> bool:
    """The byte that ends a window has no layout."""
    data = step.operands.get("send") or step.operands.get("recv")
    return isinstance(data, (Region, Blocks)) and data.buffer == "ack"
