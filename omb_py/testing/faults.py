"""Faults put into programs on purpose, to prove that they are found (``--inject``).

``flip`` and ``lost`` change a benchmark's program: a wrong byte, a message that never comes. ``busy`` changes what a
session loads: a wait inside the timed part, in all iterations or in some. The benchmark and its hash stay as they are,
because a slowdown is planted to be found by a comparison, which compares only what is measured by the same program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omb_py.engine.measuring.payload import expectations
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Body, Buffer, Lap, Program, Region, Stage, Step, templates
from omb_py.engine.program.steps import compute, flip, recv
from omb_py.errors import UsageError, nearest
from omb_py.suites.registry import find

KINDS = ("flip", "lost", "busy")
_LOST_TAG = 30000


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """``flip``: one received byte is inverted; ``lost``: a receive whose message was never sent; ``busy``: waiting."""

    kind: str
    rank: int
    size: int | None = None
    """Message size at which it happens; ``None``: at every size."""
    nanoseconds: int = 0
    """For ``busy``: the time in ns that an iteration waits inside its timed part."""
    every: int = 1
    """For ``busy``: one iteration in `every` waits."""


def inject(session: Any, text: str) -> Callable[[Benchmark], Benchmark]:
    """Plant the fault that `text` describes.

    Args:
        session: of this process; a ``busy`` fault changes every program that it loads from now on.

    Returns:
        The function that makes the faulty benchmark of a benchmark.

    Raises:
        UsageError: the text is wrong.
    """
    fault = parse_fault(text)
    if fault is None or fault.kind != "busy":
        return lambda benchmark: with_fault(benchmark, fault)
    load = session.load

    def load_slowed(cell: Cell, programs: Mapping[int, Program]) -> Any:
        metric = find(cell.benchmark).metric
        lap = metric.lap if metric.apart else ""
        return load(cell, {r: slowed(p, fault, lap) if r == fault.rank else p for r, p in programs.items()})

    session.load = load_slowed
    return lambda benchmark: benchmark


def parse_fault(text: str) -> InjectedFault | None:
    """``KIND:RANK[:SIZE]``, or nothing. Raises UsageError.

    >>> parse_fault("flip:1:8")
    InjectedFault(kind='flip', rank=1, size=8, nanoseconds=0, every=1)
    """
    if not text:
        return None
    kind, *numbers = text.split(":")
    if kind not in KINDS:
        raise UsageError(f"--inject: unknown fault {kind!r}: {nearest(kind, KINDS)}")
    if kind == "busy":
        return _busy(text, numbers)
    if not 1 <= len(numbers) <= 2 or not all(number.isdecimal() for number in numbers):
        raise UsageError(f"--inject takes KIND:RANK[:SIZE], for example flip:1:8, not {text!r}")
    return InjectedFault(kind, *map(int, numbers))


def _busy(text: str, numbers: list[str]) -> InjectedFault:
    if not 2 <= len(numbers) <= 3 or not all(number.isdecimal() for number in numbers) or int(numbers[-1]) < 1:
        raise UsageError(f"--inject takes busy:RANK:NANOSECONDS[:EVERY], for example busy:0:5000:33, not {text!r}")
    rank, nanoseconds, *every = map(int, numbers)
    return InjectedFault("busy", rank, nanoseconds=nanoseconds, every=every[0] if every else 1)


def slowed(program: Program, fault: InjectedFault, lap: str = "") -> Program:
    """The program with a wait in its timed part, or in that of one `lap`, in one iteration of `every`."""
    stage = program.stages[0]
    wait = compute(fault.nanoseconds)
    variants = stage.variants * fault.every
    # the same number of every variant waits, whichever they are
    planted = tuple(_add_wait(v, wait, lap) if i // len(stage.variants) == 0 else v for i, v in enumerate(variants))
    return replace(program, stages=(replace(stage, variants=planted), *program.stages[1:]))


def _add_wait(variant: Body, wait: Step, lap: str) -> Body:
    """Put the wait before the last reading of the clock (of `lap`); a rank that reads none waits first."""
    laps = [k for k, node in enumerate(variant) if isinstance(node, Lap) and node.name and lap in ("", node.name)]
    at = laps[-1] if laps else 0
    return (*variant[:at], wait, *variant[at:])


def _spoil(variant: Body, stage: Stage, world: World) -> Body:
    """The body with the last byte that arrives inverted after it; a rank where none arrives sends a wrong one."""
    before, after = expectations(variant, world, 0, templates(stage))
    received = [region for region, _ in after if region.nbytes]
    if received:
        return (*variant, flip(received[-1]))
    sent = [region for region, _ in before if region.nbytes]
    return (flip(sent[0]), *variant) if sent else variant


def spoil(program: Program, fault: InjectedFault, world: World) -> Program:
    """The program with the fault added to its first stage."""
    stage, buffers = program.stages[0], program.buffers
    if fault.kind == "flip":
        variants = tuple(_spoil(variant, stage, world) for variant in stage.variants)
    else:
        extra = recv(Region("lost", 0, 1), (world.rank + 1) % world.size, "char", _LOST_TAG)
        buffers = (*buffers, Buffer("lost", 1))
        variants = tuple((*variant, extra) for variant in stage.variants)
    return replace(program, buffers=buffers, stages=(replace(stage, variants=variants), *program.stages[1:]))


def with_fault(benchmark: Benchmark, fault: InjectedFault | None) -> Benchmark:
    """The benchmark whose program has a ``flip`` or ``lost`` fault on the fault's rank and size."""
    if fault is None:
        return benchmark
    original: Callable[[World, Cell], Program] = benchmark.program
    planted: InjectedFault = fault

    def program(world: World, cell: Cell) -> Program:
        clean = original(world, cell)
        hit = world.rank == planted.rank and planted.size in (None, cell.size)
        return spoil(clean, planted, world) if hit else clean

    return replace(benchmark, program=program)
