"""A server that receives from whoever comes first, on three ranks: it ends only where the order is not fixed.

Rank 1 sends nothing before rank 2 was answered, so a server that waits for rank 1 first waits for good.
"""

from __future__ import annotations

from dataclasses import replace

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.language import Buffer, Lap, Program, Region, Requests, RequestSlot, Stage, body
from omb_py.suites.registry import find
from omb_py.suites.shared import TWO_OR_MORE

SIZE = 24
WORKERS = (1, 2)


def _program(world: World, cell: Cell) -> Program:
    sent, received, token = Region("sent", 0, SIZE), Region("received", 0, SIZE), Region("token", 0, 8)
    asks = steps.send(sent, 0, "char", 1), steps.answered(steps.recv(received, 0, "char", 2))
    if world.rank == 1:
        nodes = (steps.recv(token, 2, "char", 3), *asks)
    elif world.rank == 2:
        nodes = (*asks, steps.send(token, 1, "char", 3))
    else:
        answers = (steps.answer(Region("sent", n * SIZE, SIZE), WORKERS, "char", 2) for n in (0, 1))
        nodes = ()
        for number, answer in enumerate(answers):
            taken = steps.recv_next(Region("received", number * SIZE, SIZE), WORKERS, "char", 1)
            nodes = (*nodes, taken, steps.nonblocking(answer, RequestSlot(number)))
        nodes = (*nodes, steps.waitall(Requests(0, 2)))
    buffers = Buffer("sent", 2 * SIZE), Buffer("received", 2 * SIZE), Buffer("token", 8)
    return Program(buffers, (Stage(body(Lap(), *nodes, Lap("time"), steps.barrier())),))


def benchmark() -> Benchmark:
    """The server and two workers as a benchmark."""
    return replace(find("pingpong_any_source"), program=_program, ranks=TWO_OR_MORE)
