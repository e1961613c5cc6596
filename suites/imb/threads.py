"""IMB-MT: a benchmark in every thread of each rank at once, each thread on a communicator and in memory of its own.

Pattern: IMB-MT 2021.11 (``PingPongMT``, …, ``AllReduceMT``). Thread t plays the iterations i with ``i % T == t``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from omb_py.engine.measuring.process_sync import ADDED
from omb_py.engine.program.benchmark import Benchmark, Cell, Needs, World
from omb_py.engine.program.groups import duplicated
from omb_py.engine.program.language import (
    Blocks,
    Body,
    Buffer,
    Operand,
    Program,
    Region,
    Requests,
    RequestSlot,
    Step,
    request_count,
    steps_changed,
)
from omb_py.suites.collective import calls
from omb_py.suites.imb import exchanges
from omb_py.suites.pt2pt import two_ranks
from omb_py.suites.shared import sides

_LINE = 64
"""Bytes of a cache line: threads do not share any."""
_KEPT = frozenset({"type", "op", "root", "window", "validation", "full", "process_sync"})
"""Options of a benchmark that mean the same in threads."""
IN_THREADS = {
    "pingpong_mt": "latency",
    "pingping_mt": "pingping",
    "sendrecv_mt": "sendrecv_call",
    "exchange_mt": "exchange",
    "uniband_mt": "uniband",
    "biband_mt": "biband",
    "barrier_mt": "barrier",
    "bcast_mt": "bcast",
    "reduce_mt": "reduce",
    "allreduce_mt": "allreduce",
}
"""A benchmark of IMB-MT -> the one that each thread does."""


def threads_of(cell: Cell) -> int:
    """Threads of each rank."""
    return sides(cell.options.thread_counts)[1]


def in_threads(program: Program, threads: int) -> Program:
    """The program of a rank in so many threads at once: buffers, requests and communicators for each of them."""
    (stage,) = program.stages
    room = {buffer.name: -(-buffer.nbytes // _LINE) * _LINE for buffer in program.buffers}
    slots, turns = request_count(program), len(stage.variants)
    variants = tuple(
        _move_to_thread(stage.variants[turn], thread, room, slots) for turn in range(turns) for thread in range(threads)
    )
    buffers = (Buffer(b.name, room[b.name] * (threads - 1) + b.nbytes) for b in program.buffers)
    return Program(tuple(buffers), (replace(stage, variants=variants, threads=threads),))


def _move_to_thread(nodes: Body, thread: int, room: dict[str, int], slots: int) -> Body:
    def moved(operand: Operand) -> Operand:
        match operand:
            case Region():
                return replace(operand, offset=operand.offset + thread * room[operand.buffer])
            case Blocks():
                start = thread * room[operand.buffer]
                return replace(operand, offsets=tuple(start + offset for offset in operand.offsets))
            case RequestSlot():
                return replace(operand, index=operand.index + thread * slots)
            case Requests():
                return replace(operand, first=operand.first + thread * slots)
        return operand

    def own(step: Step) -> Step:
        return duplicated(Step(step.op, {name: moved(operand) for name, operand in step.operands.items()}), thread + 1)

    return steps_changed(nodes, own)


def _program(original: Callable[[World, Cell], Program], world: World, cell: Cell) -> Program:
    return in_threads(original(world, cell), threads_of(cell))


def _refuses(name: str, cell: Cell) -> str:
    senders, receivers = sides(cell.options.thread_counts)
    unequal = senders not in (1, receivers)
    if unequal:
        return f"{name} has as many threads on every rank: -t {receivers}, not {cell.options.thread_counts}"
    if cell.options.process_sync in ADDED:
        how = f"--process-sync {cell.options.process_sync}"
        return f"{name} has threads, which {how} does not keep apart: take barrier or none"
    return ""


def _make_threaded(name: str, alone: Benchmark) -> Benchmark:
    metric, bytes_of = alone.metric, alone.metric.bytes_of
    if bytes_of is not None:
        metric = replace(
            metric,
            formula=f"threads × {metric.formula}",
            bytes_of=lambda cell, ranks: threads_of(cell) * bytes_of(cell, ranks),
        )
    return replace(
        alone,
        name=name,
        summary=f"{alone.name} in all threads of each rank at once",
        program=partial(_program, alone.program),
        metric=metric,
        options=alone.options & _KEPT | {"thread_counts"},
        bandwidth=None,
        needs=Needs(thread_level="multiple"),
        refuses=partial(_refuses, name),
    )


_ALONE = {each.name: each for family in (two_ranks, exchanges, calls) for each in family.BENCHMARKS}
BENCHMARKS = tuple(_make_threaded(name, _ALONE[alone]) for name, alone in IN_THREADS.items())
