"""The simulation of a cell: events of all ranks, from which come the laps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.faults import Flipper
from omb_py.backends.mock.simulator.data import RankMemory, moves_data
from omb_py.backends.mock.simulator.lower import Op, Site, lower
from omb_py.backends.mock.simulator.pair_round import PairSimulation, PairsUnlike
from omb_py.backends.mock.simulator.simulate import Events, Loop
from omb_py.backends.mock.simulator.timing import Noise, Ports, Timing
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program, count_steps, edges_of, parts, steps_of, templates
from omb_py.engine.program.pair_programs import PairPrograms
from omb_py.engine.program.rma import check_hosts
from omb_py.engine.program.step_text import describe, describe_cell
from omb_py.engine.session import Runner
from omb_py.errors import UsageError

if TYPE_CHECKING:
    from omb_py.backends.mock.session import MockSession

_BodyOps = list[list[Op]]
"""Operations of each part of a stage: variants, setup, teardown."""

_BODY = slice(0, -2)
_SETUP = slice(-2, -1)
_TEARDOWN = slice(-1, None)


class MockRunner(Runner):
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
        self._memory = RankMemory(programs, cell.buffer, self.moves)
        self._network = session.network
        self._noise = noise
        self._flipper = Flipper(config.flip, cell.size)
        timing = Timing(config, ranks, session.scale, noise)
        self.events = Events(config, timing, self._flipper, session.hosts, describe_cell(cell), cell.size, session)
        self.events.ports = Ports(self._network.topology)
        self._stage = 0
        self._ops = [self._lower(rank) for rank in range(ranks)]
        """Operations by rank, stage and body."""

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
        return self._simulate(stage, _BODY, first, iterations)

    def enter(self, stage: int, results: Mapping[tuple[str, str], float]) -> None:
        """Simulate a stage's setup; computations take their times from `results`. Raises KeyError if one lacks."""
        for op in (op for rank in self._ops for bodies in rank[stage] for op in bodies):
            if op.source is not None:
                op.ns = op.source.of(results)
        self._stage = stage
        self._run_once(stage, _SETUP)

    def leave(self, stage: int) -> None:
        """Simulate a stage's teardown."""
        self._run_once(stage, _TEARDOWN)

    def notes(self) -> Mapping[str, float]:
        """Time to create a graph or window in µs, as long as an allgather of one number."""
        time = self._network.collective("allgather", (), 8).time * self._session.scale / 1000
        edges = edges_of(self._programs[0])
        return ({"topology_us": time} if edges is not None else {}) | ({"win_create_us": time} if self._window else {})

    def position(self) -> tuple[int, int]:
        """(iteration, step) of the rank that is furthest behind."""
        return self.events.position

    def doing(self, step: int) -> str:
        """A step of the current stage in words, on the rank of the last position or error."""
        steps = steps_of(self._programs[self.events.named].stages[self._stage])
        return describe(steps[step]) if step < len(steps) else ""

    def _run_once(self, stage: int, part: slice) -> None:
        if any(ops for rank in self._ops for ops in rank[stage][part]):
            self._simulate(stage, part, 0, 1, is_body=False)

    def _simulate(
        self, stage: int, where: slice, first: int, count: int, is_body: bool = True
    ) -> dict[int, NDArray[np.int64]]:
        variants = [ops[stage][where] for ops in self._ops]
        slots = [len(self._programs[rank].stages[stage].laps) for rank in range(len(variants))]
        loop = Loop(variants, first, count, slots, is_body)
        clocks, out = self.events.run(loop, self._session.clocks.tolist())
        self._session.clocks = np.array(clocks, np.int64)
        return {rank: np.array(laps, np.int64).reshape(count, slots[rank]) for rank, laps in enumerate(out)}

    def _lower(self, rank: int) -> list[_BodyOps]:
        site = Site(self._network, rank, self._session.scale, self._memory)
        stages = []
        for stage in self._programs[rank].stages:
            bodies, number, inits = [], 0, templates(stage)
            for j, nodes in enumerate(parts(stage)):
                laps = stage.laps if j < len(stage.variants) else None
                bodies.append(lower(nodes, laps, number, site, inits))
                number += count_steps(nodes)
            stages.append(bodies)
        return stages


class MockPairRunner(Runner):
    """Implements :class:`omb_py.engine.session.Runner` for a round of pairs that are simulated at once."""

    def __init__(self, session: MockSession, cell: Cell, programs: PairPrograms, pairs: PairSimulation) -> None:
        self._session, self._cell, self._programs, self._pairs = session, cell, programs, pairs

    def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
        """Simulate iterations for the ranks of the pairs. Raises as :meth:`MockRunner.run`."""
        try:
            return self._pairs.run(first, iterations, self._session.clocks)
        except PairsUnlike:
            return self._session.load(self._cell, self._programs.of_ranks(self._session.local)).run(
                stage, first, iterations
            )

    def doing(self, step: int) -> str:
        """A step of the pairs' first rank in words."""
        steps = steps_of(self._programs.ends[0].stages[0])
        return describe(steps[step]) if step < len(steps) else ""
