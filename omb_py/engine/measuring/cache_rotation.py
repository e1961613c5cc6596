"""``--cache rotate``: every iteration uses other memory, so that nothing is found in a cache.

A transformation of any program: each buffer becomes `copies` of itself, and every region moves on with the iteration.
The copies span twice the last-level cache.  Where so many copies would be needed that a loop could not hold them, they
are fewer and lie further apart.  Where memory is short they span half of that, and so on, and the row says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import (
    Blocks,
    Buffer,
    Operand,
    Program,
    Region,
    Step,
    each_body,
    each_node,
    steps_changed,
)
from omb_py.engine.program.steps import MATRICES
from omb_py.errors import UsageError

CACHES: Final = ("hot", "rotate")
LINE: Final = 64
MOST_COPIES: Final = {"native": 1 << 20, "mpi4py": 1 << 12}
"""The mpi4py binding holds a Python object for each copy of a region."""
UNKNOWN_CACHE_BYTES: Final = 64 << 20
MOST_BYTES: Final = 1 << 30
"""The copies span no more than this, however large the caches of a machine are."""
CACHE_BYTES: Final = "OMB_PY_CACHE_BYTES"
"""Environment variable that overrides the size of the last-level cache, for machines that report a wrong one."""
MOST_HALVED: Final = 10
"""Where memory is short the copies span at least a 1024th of what they should."""
ROTATION: Final = "rotation"
"""The mark of a row whose copies span less than twice the last-level cache: ``512 of 2048 MiB``."""
_SYSFS: Final = "/sys/devices/system/cpu/cpu0/cache"


def last_level_cache(folder: str | os.PathLike[str] = _SYSFS) -> int:
    """Bytes of the last-level cache of this machine; :data:`UNKNOWN_CACHE_BYTES` where the kernel does not say.

    The variable :data:`CACHE_BYTES` is stronger than the kernel.

    Raises:
        UsageError: the variable holds no number of bytes.
    """
    if value := os.environ.get(CACHE_BYTES):
        if not (value.isascii() and value.isdigit() and int(value)):
            raise UsageError(f"{CACHE_BYTES} is the size of the last-level cache in bytes, as 33554432, not {value!r}")
        return int(value)
    sizes = {}
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    indexes = sorted(name for name in os.listdir(folder) if name.startswith("index")) if os.path.isdir(folder) else []
    for index in indexes:
        try:
            level, size, kind = (_read(os.path.join(folder, index, name)) for name in ("level", "size", "type"))
            if kind != "Instruction":
                sizes[int(level)] = int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
        except (OSError, ValueError, IndexError):
            continue
    return sizes[max(sizes)] if sizes else UNKNOWN_CACHE_BYTES


def cache_to_leave(of_device: int) -> int:
    """Bytes of the cache in which nothing must be found: that of the device with the buffers, 0 where there is none."""
    return of_device if of_device and not os.environ.get(CACHE_BYTES) else last_level_cache()


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


@dataclass(frozen=True, slots=True)
class Layout:
    """Number of copies, and the distance in bytes between the copies of each buffer."""

    copies: int
    pitch: Mapping[str, int]


def span_of(cache: int, halved: int = 0) -> int:
    """Bytes that the copies span: twice `cache`, at most :data:`MOST_BYTES`, and that halved so many times."""
    return min(2 * cache, MOST_BYTES) >> halved


def rotation_marks(cell: Cell, halved: int, of_device: int = 0) -> dict[str, str]:
    """The mark of a cell whose copies span less than twice the last-level cache; empty for all others."""
    cache = cache_to_leave(of_device) if cell.options.cache == "rotate" else 0
    span = span_of(cache, halved)
    return {ROTATION: f"{span >> 20} of {2 * cache >> 20} MiB"} if span < 2 * cache else {}


def layout(buffers: tuple[Buffer, ...], cache: int, most: int, halved: int = 0) -> Layout:
    """Copies that span what :func:`span_of` says, at least 2 and at most `most`.

    A pitch is an odd number of cache lines, so that the copies do not all fall into the same sets of a cache.
    """
    if not buffers:
        return Layout(1, {})
    span = span_of(cache, halved)
    tight = sum(_lines(buffer.nbytes) for buffer in buffers)
    copies = max(2, min(most, -(-span // tight)))
    apart = span // copies // len(buffers) if copies == most else 0
    return Layout(copies, {buffer.name: _lines(max(buffer.nbytes, apart)) for buffer in buffers})


def _lines(nbytes: int) -> int:
    return (-(-max(1, nbytes) // LINE) | 1) * LINE


def rotated(program: Program, cache: int, most: int, halved: int = 0) -> Program:
    """The program whose iterations use the copies of every buffer in turn. Raises UsageError."""
    check_rotatable(program)
    # a product's matrices are computed with, not sent: they stay where they are
    plan = layout(tuple(b for b in program.buffers if b.name not in MATRICES), cache, most, halved)
    if plan.copies == 1:
        return program
    stages = each_body(program, lambda nodes: steps_changed(nodes, lambda step: _turn_step(step, plan))).stages
    buffers = (
        Buffer(b.name, plan.pitch[b.name] * (plan.copies - 1) + b.nbytes) if b.name in plan.pitch else b
        for b in program.buffers
    )
    return Program(tuple(buffers), tuple(replace(stage, copies=plan.copies) for stage in stages))


def _turn_step(step: Step, plan: Layout) -> Step:
    return Step(step.op, {name: _turning(value, plan) for name, value in step.operands.items()})


def _turning(value: Operand, plan: Layout) -> Operand:
    if isinstance(value, (Region, Blocks)) and value.buffer in plan.pitch:
        return replace(value, turn=plan.pitch[value.buffer])
    return value


def check_rotatable(program: Program) -> None:
    """Raises UsageError when buffers are bound for the whole loop, as by persistent requests and windows."""
    bound = [
        node.op
        for stage in program.stages
        for node in each_node((*stage.setup, *stage.teardown))
        if isinstance(node, Step) and any(isinstance(value, (Region, Blocks)) for value in node.operands.values())
    ]
    if program.window is not None:
        bound.append("the window")
    if bound:
        raise UsageError(f"--cache rotate cannot move buffers that {bound[0]} binds before the loop: use --cache hot")


def with_cache(benchmark: Benchmark, halved: int = 0, of_device: int = 0) -> Benchmark:
    """The benchmark whose program rotates its buffers for cells with ``--cache rotate``."""
    original = benchmark.program

    def program(world: World, cell: Cell) -> Program:
        built = original(world, cell)
        if cell.options.cache != "rotate":
            return built
        return rotated(built, cache_to_leave(of_device), MOST_COPIES.get(cell.binding, MOST_COPIES["mpi4py"]), halved)

    return replace(benchmark, program=program)
