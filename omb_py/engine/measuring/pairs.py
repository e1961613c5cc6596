"""A benchmark of two ranks, measured between every pair of a world: the samples of each pair are kept apart.

The program is the benchmark's own, with other numbers for its two ranks. Ranks without a partner in a round wait
without using a core where the session knows how (``sleeping_barrier``): on a full machine they would be in the way.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.measuring.cell_result import PairRound
from omb_py.engine.measuring.measure import Phase
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Body, Node, Program, Repeat, Stage, Step, program_hash
from omb_py.engine.program.pair_schedule import Pair, parse_schedule
from omb_py.engine.samples import lap_of
from omb_py.engine.session import Session

IDLE = Program((), (Stage(((),)),))
"""The program of a rank without a partner."""


def between(program: Program, pair: Pair) -> Program:
    """A program of ranks 0 and 1 with other numbers for the two."""

    def renamed(nodes: Body) -> Body:
        return tuple(_renamed(node) for node in nodes)

    def _renamed(node: Node) -> Node:
        if isinstance(node, Repeat):
            return replace(node, body=renamed(node.body))
        if isinstance(node, Step) and "peer" in node.operands:
            return replace(node, operands={**node.operands, "peer": pair[node["peer"]]})
        return node

    stages = tuple(
        replace(
            stage,
            variants=tuple(map(renamed, stage.variants)),
            setup=renamed(stage.setup),
            teardown=renamed(stage.teardown),
        )
        for stage in program.stages
    )
    return replace(program, stages=stages)


def measure_pairs(
    session: Session, benchmark: Benchmark, cell: Cell, phase: Phase = lambda name: None
) -> Iterator[PairRound]:
    """Measure every pair of the cell's schedule, round by round; all ranks must take all of it.

    Raises:
        StepFailed: a library call returned an error.
    """
    ends = [benchmark.program(World(rank, 2), cell) for rank in (0, 1)]
    version = program_hash(*ends)
    moved = benchmark.metric.bytes_of(cell, 2) if benchmark.metric.bytes_of else None
    # a round is handed on when the next one is known to exist, since only the last is marked
    waiting: tuple[int, list[Pair], Mapping[Pair, NDArray[np.float32]]] | None = None
    for number, pairs in parse_schedule(cell.pairs).rounds(session.size):
        if waiting is not None:
            yield PairRound(cell, waiting[0], False, waiting[2], version, moved)
        waiting = number, pairs, _measure(session, benchmark, cell, pairs, ends, phase)
    if waiting is not None:
        yield PairRound(cell, waiting[0], True, waiting[2], version, moved)


def _measure(
    session: Session, benchmark: Benchmark, cell: Cell, pairs: list[Pair], ends: list[Program], phase: Phase
) -> Mapping[Pair, NDArray[np.float32]]:
    place = {rank: (pair, end) for pair in pairs for end, rank in enumerate(pair)}
    ends_here = {rank: place[rank] for rank in session.local if rank in place}
    programs = {rank: IDLE for rank in session.local}
    programs |= {rank: between(ends[end], pair) for rank, (pair, end) in ends_here.items()}
    runner = session.load(cell, programs) if ends_here else None
    if runner is not None:
        runner.enter(0, {})
    phase("loop")
    session.barrier()
    samples_here: dict[Pair, NDArray[np.float32]] = {}
    if runner is not None:
        gc.disable()
        try:
            laps = runner.run(0, -cell.sampling.warmup, cell.sampling.warmup + cell.sampling.iterations)
        finally:
            gc.enable()
        for rank, (pair, end) in ends_here.items():
            if end == 0:
                own = np.array(lap_of(laps[rank], 0, cell.sampling.warmup))
                times = own / (1000.0 * benchmark.metric.parts_of(cell))
                samples_here[pair] = times.astype(np.float32)
    phase("write")
    if runner is not None:
        runner.leave(0)
        runner.close()
    session.sleeping_barrier()
    return {pair: samples for part in session.gather(samples_here) for pair, samples in part.items()}
