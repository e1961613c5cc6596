"""The simulation of a cell: it takes the fast path where it can, else the event path, and returns the laps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.faults import Flipper
from omb_py.backends.mock.simulator.data import Memory, moves_data
from omb_py.backends.mock.simulator.lockstep import Lockstep, symmetric
from omb_py.backends.mock.simulator.lower import Op, Site, lower
from omb_py.backends.mock.simulator.network import Network
from omb_py.backends.mock.simulator.noise import Noise
from omb_py.backends.mock.simulator.ports import Ports
from omb_py.backends.mock.simulator.simulate import Events, Loop
from omb_py.backends.mock.simulator.timing import Timing
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program, edges_of, templates
from omb_py.engine.program.rma import check_hosts
from omb_py.engine.program.step_text import count_steps, describe, describe_cell, parts, steps_of
from omb_py.engine.session import BaseRunner
from omb_py.errors import UsageError

if TYPE_CHECKING:
    from omb_py.backends.mock.session import MockSession

_BodyOps = list[list[Op]]
"""Operations of each part of a stage: variants, setup, teardown."""

_BODY = slice(0, -2)
_SETUP = slice(-2, -1)
_TEARDOWN = slice(-1, None)


class MockRunner(BaseRunner):
    """Implements :class:`omb_py.engine.session.Runner` for all ranks."""

    def __init__(self, session: MockSession, cell: Cell, programs: Mapping[int, Program], noise: Noise) -> None:
        config, ranks = session.config, session.size
        self._session, self._cell, self._programs = session, cell, programs
        if cell.validate and config.data == "off":
            raise UsageError("mock: with data=off there is nothing to validate; leave out data=off or -c")
        self.moves = moves_data(config, cell, programs)
        """Whether bytes are moved; if not, all ranks share scratch memory."""
        self._window = programs[0].window
        if self._window:
            check_hosts(self._window, session.hosts)
        self._memory = Memory(programs, cell.buffer, self.moves)
        self._network = Network(config, ranks, session.algorithms)
        timing = Timing(config, ranks, session.scale, noise)
        self._noise = noise
        self._flipper = Flipper(config.flip, cell.size)
        self.events = Events(config, timing, self._flipper, session.hosts, describe_cell(cell), cell.size, session)
        self.events.ports = Ports(self._network.topology)
        self.in_step = config.path == "auto" and symmetric(programs) and not self._network.topology.shared
        """Whether the fast path is taken."""
        self._by_event = not self.in_step
        self._lockstep = Lockstep(timing, self._flipper, ranks, session)
        self._shared: list[_BodyOps] = self._lower(0, all_ranks=True) if self.in_step else []
        self._by_rank: list[list[_BodyOps]] = []
        self._stage = 0
        self._results: dict[int, Mapping[tuple[str, str], float]] = {}
        if not self.in_step:
            self._rank_ops()

    def memory(self, rank: int, buffer: str) -> NDArray[np.uint8]:
        """The bytes of a buffer, or shared scratch memory if no data is moved. Raises KeyError."""
        return self._memory.of(rank, buffer)

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Simulate iterations of a stage's body; see :class:`omb_py.engine.session.Runner`.

        Raises:
            RankHangs: no rank can go on.
            RankDied: an injected fault ended a rank.
            StepFailed: a call is wrong.
        """
        self._noise.forget()
        self._flipper.restart()
        if not self.in_step:
            return self._run_events(stage, _BODY, first, iterations)
        count = self._before_fault(first, iterations)
        slots = len(self._programs[0].stages[stage].laps)
        variants = self._shared[stage][_BODY]
        self._session.clocks, out = self._lockstep.run(variants, first, count, slots, self._session.clocks)
        if count == iterations:
            return dict(enumerate(out))
        # in the next iteration a rank is lost, which only the event path reports
        rest = self._run_events(stage, _BODY, first + count, iterations - count)
        return {rank: np.concatenate([laps, rest[rank]]) for rank, laps in enumerate(out)}

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Simulate a stage's setup; computations take their times from `results`. Raises KeyError if one lacks."""
        self._results[stage] = results
        for ops in (self._shared[stage : stage + 1], *(rank[stage : stage + 1] for rank in self._by_rank)):
            self._resolve(ops, results)
        self._stage = stage
        self._once(stage, _SETUP)

    def leave(self, stage: int) -> None:
        """Simulate a stage's teardown."""
        self._once(stage, _TEARDOWN)

    def notes(self) -> Mapping[str, float]:
        """Time to create a graph or window in µs, as long as an allgather of one number."""
        time = self._network.collective("allgather", (), 8).time * self._session.scale / 1000
        edges = edges_of(self._programs[0])
        return ({"topology_us": time} if edges is not None else {}) | ({"win_create_us": time} if self._window else {})

    def position(self) -> tuple[int, int]:
        """(iteration, step) that is being simulated; on the event path that of the rank furthest behind."""
        return self.events.position if self._by_event else self._lockstep.position

    def doing(self, step: int) -> str:
        """A step of the current stage in words, on the rank of the last position or error."""
        steps = steps_of(self._programs[self.events.named].stages[self._stage])
        return describe(steps[step]) if step < len(steps) else ""

    def _once(self, stage: int, part: slice) -> None:
        if self.in_step:
            self._session.clocks, _ = self._lockstep.run(self._shared[stage][part], 0, 1, 0, self._session.clocks)
        elif any(ops for rank in self._by_rank for ops in rank[stage][part]):
            self._run_events(stage, part, 0, 1, is_body=False)

    def _run_events(
        self, stage: int, where: slice, first: int, count: int, is_body: bool = True
    ) -> dict[int, NDArray[np.int64]]:
        self._by_event = True
        variants: Sequence[_BodyOps] = [ops[stage][where] for ops in self._rank_ops()]
        slots = [len(self._programs[rank].stages[stage].laps) for rank in range(len(variants))]
        loop = Loop(variants, first, count, slots, is_body)
        clocks, out = self.events.run(loop, self._session.clocks.tolist())
        self._session.clocks = np.array(clocks, np.int64)
        return {rank: np.array(laps, np.int64).reshape(count, slots[rank]) for rank, laps in enumerate(out)}

    def _before_fault(self, first: int, count: int) -> int:
        """Number of iterations before the first in which a rank is lost."""
        config = self._session.config
        strikes = [f.first_strike(self._cell.size, first, count) for f in (*config.hang, *config.die)]
        return min((at - first for at in strikes if at is not None), default=count)

    def _rank_ops(self) -> list[list[_BodyOps]]:
        """Operations by rank, stage and part; lowered at first use."""
        if not self._by_rank:
            self._by_rank = [self._lower(rank) for rank in range(self._session.size)]
            for rank in self._by_rank:
                for stage, results in self._results.items():
                    self._resolve(rank[stage : stage + 1], results)
        return self._by_rank

    def _lower(self, rank: int, all_ranks: bool = False) -> list[_BodyOps]:
        """Operations of a rank by stage and part."""
        memory = self._memory
        site = Site(
            self._network,
            rank,
            self._session.scale,
            lambda name: memory.size(rank, name),
            memory.rows if all_ranks else lambda region: memory.view(rank, region),
            lambda name: memory.of(rank, name) if memory.moves else None,
            memory.view,
        )
        stages = []
        for stage in self._programs[rank].stages:
            bodies, number, known = [], 0, templates(stage)
            for j, part in enumerate(parts(stage)):
                laps = stage.laps if j < len(stage.variants) else None
                bodies.append(lower(part, laps, number, site, known))
                number += count_steps(part)
            stages.append(bodies)
        return stages

    @staticmethod
    def _resolve(stages: Sequence[_BodyOps], results: Mapping[tuple[str, str], float]) -> None:
        """Fill in the times of computations that an earlier stage measured."""
        for op in (op for bodies in stages for body in bodies for op in body):
            if op.source is not None:
                op.ns = op.source.of(results)
