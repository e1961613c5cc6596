"""Faults put into programs on purpose, to prove that they are found: a wrong byte, a message that never comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from omb_py.engine.benchmark import Benchmark, Cell, World
from omb_py.engine.program import Buffer, Program, Region, Stage, Step, walk
from omb_py.engine.steps import flip, recv
from omb_py.errors import UsageError, nearest

KINDS = ("flip", "lost")
_LOST_TAG = 30000


@dataclass(frozen=True, slots=True)
class Fault:
    """``flip``: one received byte is inverted; ``lost``: a receive whose message was never sent."""

    kind: str
    rank: int
    size: int | None = None
    """Message size at which it happens; ``None``: at every size."""


def parse_fault(text: str) -> Fault | None:
    """``KIND:RANK[:SIZE]``, or nothing. Raises UsageError.

    >>> parse_fault("flip:1:8")
    Fault(kind='flip', rank=1, size=8)
    """
    if not text:
        return None
    kind, *numbers = text.split(":")
    if kind not in KINDS:
        raise UsageError(f"--inject: unknown fault {kind!r}: {nearest(kind, KINDS)}")
    if not 1 <= len(numbers) <= 2 or not all(number.isdecimal() for number in numbers):
        raise UsageError(f"--inject takes KIND:RANK[:SIZE], for example flip:1:8, not {text!r}")
    return Fault(kind, *map(int, numbers))


def _last_received(stage: Stage) -> Region | None:
    found: Region | None = None
    for node, k in walk(stage.variants[0]):
        if isinstance(node, Step):
            named = (node.operands.get(name) for name in ("recv", "buf", "window" if node.op == "exposed" else ""))
            region = next((found for found in named if found), None)
            if isinstance(region, Region):
                found = region.at(k)
    return found


def _first_sent(stage: Stage) -> Region | None:
    steps = (node for node, _ in walk(stage.variants[0]) if isinstance(node, Step))
    return next((step["send"].at(0) for step in steps if isinstance(step.operands.get("send"), Region)), None)


def spoil(program: Program, fault: Fault, world: World) -> Program:
    """The program with the fault added to its first stage."""
    stage = program.stages[0]
    if fault.kind == "flip":
        region = _last_received(stage)
        sent = _first_sent(stage)
        if region is None:
            if sent is None:
                return program
            variants = tuple((flip(sent), *body) for body in stage.variants)  # what only sends, sends a wrong byte
            return replace(program, stages=(replace(stage, variants=variants), *program.stages[1:]))
        extra: Step = flip(region)
        buffers = program.buffers
    else:
        extra = recv(Region("lost", 0, 1), (world.rank + 1) % world.size, "char", _LOST_TAG)
        buffers = (*program.buffers, Buffer("lost", 1))
    variants = tuple((*body, extra) for body in stage.variants)
    return replace(program, buffers=buffers, stages=(replace(stage, variants=variants), *program.stages[1:]))


def with_fault(benchmark: Benchmark, fault: Fault | None) -> Benchmark:
    """The benchmark whose program has the fault on the fault's rank and size."""
    if fault is None:
        return benchmark
    original: Callable[[World, Cell], Program] = benchmark.program
    wanted: Fault = fault

    def program(world: World, cell: Cell) -> Program:
        made = original(world, cell)
        hit = world.rank == wanted.rank and wanted.size in (None, cell.size)
        return spoil(made, wanted, world) if hit else made

    return replace(benchmark, program=program)
