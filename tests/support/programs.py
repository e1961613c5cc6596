"""Benchmarks that only tests have: what the step language can say beyond the eight that come with omb-py."""

from __future__ import annotations

from dataclasses import replace

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.dtypes import reduction_dtype
from omb_py.engine.program.language import Buffer, Lap, Program, Region, RequestSlot, Result, Stage, body
from omb_py.suites.registry import BENCHMARKS


def iallreduce_program(world: World, cell: Cell) -> Program:
    """OMB's overlap test: the pure call first, then the call with as much computing behind it."""
    out, back, request = Region("send", 0, cell.size), Region("recv", 0, cell.size), RequestSlot(0)
    call = steps.nonblocking(steps.allreduce(out, back, reduction_dtype(cell.dtype), cell.options.op), request)
    pure = body(Lap(), call, steps.wait(request), Lap("time"), steps.barrier())
    overlap = body(
        Lap(),
        call,
        Lap("init"),
        steps.compute(Result("pure", "time")),
        Lap("compute"),
        steps.wait(request),
        Lap("wait"),
        steps.barrier(),
    )
    return Program(
        (Buffer("send", cell.size), Buffer("recv", cell.size)), (Stage(pure, "pure"), Stage(overlap, "overlap"))
    )


def rotating_bcast_program(world: World, cell: Cell) -> Program:
    """A broadcast whose root is another rank in every iteration."""
    buf = Region("buf", 0, cell.size)
    variants = tuple(
        (Lap(), steps.bcast(buf, root, cell.dtype), Lap("time"), steps.barrier()) for root in range(world.size)
    )
    return Program((Buffer("buf", cell.size),), (Stage(variants),))


IALLREDUCE: Benchmark = replace(BENCHMARKS["allreduce"], name="iallreduce", program=iallreduce_program)
ROTATING_BCAST: Benchmark = replace(BENCHMARKS["bcast"], name="rotating_bcast", program=rotating_bcast_program)
