"""Synchronisation of the ranks between iterations (``--process-sync``), as a transformation of any program.

``barrier``: the library's own, which the benchmark's program has already.  ``dissemination``: a barrier made of
zero-byte messages, the same for every library: in round k rank r tells rank r + 2^k and hears of rank r - 2^k.
``roundtime``: rank 0 announces a moment of the common clock, and all ranks begin then [Hunold and Carpen-Amarie,
*Hierarchical Clock Synchronization in MPI*, CLUSTER 2018]; a sample then goes from that moment to a rank's end, so its
maximum over the ranks is the global span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, Options, World
from omb_py.engine.program.groups import own_group
from omb_py.engine.program.language import (
    Body,
    Buffer,
    Lap,
    Node,
    Program,
    Region,
    RequestSlot,
    Stage,
    Stamp,
    Step,
    Until,
    request_count,
)

ADDED: Final = ("dissemination", "roundtime")
"""Kinds whose steps are added to a benchmark's own."""
KINDS: Final = ("barrier", *ADDED, "none")
_TAG: Final = 31_000
START: Final = "start of round"
"""The buffer of round-time: int64 target; float64 slope, intercept, origin of this rank's clock; int64 ns ahead."""
START_BYTES: Final = 40


def dissemination(members: Sequence[int], rank: int, request: RequestSlot) -> Body:
    """A barrier of the `members`, ranks of the launch, in ⌈log2 members⌉ rounds; `request` is a slot of its own."""
    nodes: list[Node] = []
    distance, empty = 1, Region(START, 0, 0)
    place, size = members.index(rank), len(members)
    while distance < size:
        to, source = members[(place + distance) % size], members[(place - distance) % size]
        nodes += [
            steps.irecv(empty, source, "char", request, _TAG + distance.bit_length()),
            steps.send(empty, to, "char", _TAG + distance.bit_length()),
            steps.wait(request),
        ]
        distance *= 2
    return tuple(nodes)


def common_start(world: World) -> Body:
    """After a barrier rank 0 announces a moment; all wait for it, and the clock of the laps starts there."""
    round_start = Region(START, 0, START_BYTES)
    moment = Region(START, 0, 8)
    announce = (Step("announce", {"recv": round_start}),) if world.rank == 0 else ()
    tell = Step("tell", {"buf": moment, "root": 0, "dtype": "char"})
    return (steps.barrier(), *announce, tell, Until(round_start))


def _begin_together(body: Body, start: Body) -> Body:
    first = next((number for number, node in enumerate(body) if isinstance(node, Lap)), None)
    return body if first is None else (*body[:first], *start, *body[first + 1 :])


def synchronised(program: Program, world: World, kind: str, members: Sequence[int] = ()) -> Program:
    """The program with the synchronisation of a kind in each of its stages.

    Args:
        program: the program of a rank.
        world: the rank and the launch.
        kind: one of :data:`KINDS`.
        members: ranks that wait for each other; empty: all. ``roundtime`` is of all.
    """
    if kind not in ADDED:
        return program
    if kind == "dissemination":
        after = dissemination(members or range(world.size), world.rank, RequestSlot(request_count(program)))
        bodies = [tuple((*body, *after) for body in stage.variants) for stage in program.stages]
    else:
        start = common_start(world)
        bodies = [tuple(_begin_together(body, start) for body in stage.variants) for stage in program.stages]
    stages: tuple[Stage, ...] = tuple(
        replace(stage, variants=variants) for stage, variants in zip(program.stages, bodies, strict=True)
    )
    return Program((*program.buffers, Buffer(START, START_BYTES)), stages)


def with_sync(benchmark: Benchmark) -> Benchmark:
    """The benchmark whose program has the synchronisation that its cell names."""
    if "process_sync" not in benchmark.options:
        return benchmark
    original = benchmark.program

    def program(world: World, cell: Cell) -> Program:
        return synchronised(original(world, cell), world, cell.options.process_sync, own_group(world, cell))

    return replace(benchmark, program=program)


def skew_program(world: World, kind: str) -> tuple[Program, Cell]:
    """A program that only synchronises and then reads the clock; and a cell for it."""
    cell = Cell("skew", "", "native", 0, options=Options(process_sync=kind))
    before: Body = (Lap(),) if kind == "roundtime" else (steps.barrier(),) if kind in ("barrier", "none") else ()
    program = synchronised(Program((), (Stage((before,)),)), world, kind)
    stage = program.stages[0]
    exits = tuple((*body, Stamp("exit")) for body in stage.variants)
    return Program(program.buffers, (replace(stage, variants=exits),)), cell
