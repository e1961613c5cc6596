"""The fast path: all ranks run the same collectives, so one pass over the program moves a vector of clocks.

It gives the same numbers as the event path (:mod:`omb_py.backends.mock.simulator.simulate`); a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.faults import Flipper
from omb_py.backends.mock.simulator.data import combine, exchange, into
from omb_py.backends.mock.simulator.lower import IRREGULAR, Code, Op
from omb_py.backends.mock.simulator.timing import Times, Timing
from omb_py.engine.measuring.payload import mask
from omb_py.engine.program.groups import GROUP
from omb_py.engine.program.language import Program, Step, walk
from omb_py.engine.program.rma import EXPOSED, OPERATIONS, SYNCHRONISATIONS
from omb_py.engine.program.step_text import parts
from omb_py.engine.program.steps import base
from omb_py.engine.session import StepFailed

_BETWEEN_TWO: Final = (
    "send",
    "recv",
    "recv_any",
    "recv_next",
    "answer",
    "sendrecv",
    "sendrecv_replace",
    "psend",
    "precv",
)
_APART: Final = IRREGULAR.union(_BETWEEN_TWO, OPERATIONS, SYNCHRONISATIONS, {EXPOSED})
"""Operations that each rank runs for itself."""


def symmetric(programs: Mapping[int, Program]) -> bool:
    """Whether all ranks run one program that has only collectives and local steps."""
    program = programs[0]
    for stage in program.stages:
        for part in parts(stage):
            steps = (node for node, _ in walk(part) if isinstance(node, Step))
            if any(base(step.op) in _APART or GROUP in step.operands for step in steps):
                return False
    return all(other is program or other == program for other in programs.values())


class Lockstep:
    """Simulates all ranks of a cell at once."""

    def __init__(self, timing: Timing, flipper: Flipper, ranks: int, session: Any) -> None:
        self._timing, self._flipper, self._ranks, self._session = timing, flipper, ranks, session
        self._pending: dict[int, Times] = {}
        self.position = (0, 0)

    def run(
        self, variants: Sequence[Sequence[Op]], first: int, count: int, slots: int, clock: Times
    ) -> tuple[Times, Times]:
        """Run iterations from the given clocks.

        Returns:
            The clocks at the end, and nanoseconds, shape (ranks, iterations, lap slots).

        Raises:
            StepFailed: a request is still in use.
        """
        noise = self._timing.noise
        draw = noise.used[0]
        out = np.zeros((count, slots, self._ranks), np.int64)
        for index in range(count if variants else 0):
            iteration = first + index
            last = clock
            for op in variants[iteration % len(variants)]:
                if op.code == Code.LAP:
                    if op.slot >= 0:
                        out[index, op.slot] += clock - last
                    last = clock
                elif op.code == Code.STAMP:
                    out[index, op.slot] = clock
                elif op.code == Code.COLLECTIVE:
                    self.position = (iteration, op.number)
                    leaving = self._collective(op, iteration, draw, clock)
                    draw += 1
                    if not op.requests:
                        clock = leaving
                    elif op.requests[0] in self._pending:
                        raise StepFailed(op.number, 7, f"request {op.requests[0]} is still in use")
                    else:
                        self._pending[op.requests[0]] = leaving
                elif op.code == Code.WAIT:
                    for slot in op.requests:
                        if slot in self._pending:
                            clock = np.maximum(clock, self._pending.pop(slot))
                elif op.code == Code.TEST:
                    slot = op.requests[0]
                    if slot in self._pending and bool((self._pending[slot] <= clock).all()):
                        del self._pending[slot]
                else:
                    self._local(op, iteration)
                    clock = clock + op.ns
        if noise.active:
            noise.used[:] = [draw] * self._ranks
        return clock, np.ascontiguousarray(out.transpose(2, 0, 1))

    def _collective(self, op: Op, iteration: int, draw: int, clock: Times) -> Times:
        """Move the data of a collective and return the time at which each rank leaves it, ns."""
        opened: NDArray[Any] | int = int(clock.max())
        if op.root >= 0:
            opened = np.maximum(clock, clock[op.root])
        if op.send is not None and op.recv is not None:
            assert op.step is not None
            if op.root >= 0:
                into(op.recv, op.send[op.root].copy(), mask(op.layout, op.nbytes))
                received = op.nbytes
            else:
                data = exchange(op.step, op.send, op.dtype, op.reduction)
                received = data.shape[1]
                receivers = slice(None) if op.sink < 0 else slice(op.sink, op.sink + 1)
                into(op.recv[receivers, :received], data, mask(op.layout, received))
            for rank in self._flipper.ranks:
                if rank != op.root and op.sink in (-1, rank):
                    self._flipper.deliver(rank, op.recv[rank, :received], iteration)
        times: Times = self._timing.collectives(op, iteration, draw) + opened
        return times

    def _local(self, op: Op, iteration: int) -> None:
        if op.code == Code.FLIP:
            if op.recv is not None and op.recv.shape[1] and op.iteration in (-1, iteration):
                np.bitwise_xor(op.recv[:, :1], 0xFF, out=op.recv[:, :1])
        elif op.code == Code.REDUCE:
            assert op.step is not None
            combine(op.step, op.send, op.recv, op.dtype, op.reduction)
        elif op.code == Code.HOST:
            assert op.call is not None
            for _ in range(self._ranks):
                op.call(self._session)
