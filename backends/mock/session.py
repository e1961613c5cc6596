"""A session whose ranks all run in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omb_py import __version__
from omb_py.backends.mock.algorithms import selection
from omb_py.backends.mock.config import Config, parse
from omb_py.backends.mock.faults import Fault
from omb_py.backends.mock.runner import MockPairRunner, MockRunner
from omb_py.backends.mock.simulator.network import Network
from omb_py.backends.mock.simulator.pair_round import PairSimulation
from omb_py.backends.mock.simulator.timing import Noise, launch_factor
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.language import Program
from omb_py.engine.program.pair_programs import PairPrograms
from omb_py.engine.rank.link import LaunchSpec
from omb_py.engine.session import Session
from omb_py.errors import UsageError

MAX_RANKS: Final = 65536
SKEW_ROUNDS: Final = 200


class MockSession(Session):
    """Implements :class:`omb_py.engine.session.Session`."""

    backend = "mock"
    library = "mock"
    binding_version = __version__
    _runner: MockRunner | MockPairRunner | None = None

    def __init__(self, spec: LaunchSpec) -> None:
        self.size = int(spec["ranks"])
        if not 1 <= self.size <= MAX_RANKS:
            raise UsageError(f"mock simulates 1 to {MAX_RANKS} ranks, not {self.size}")
        self.config: Config = parse(spec.get("settings") or "")
        names = tuple(spec.get("hosts") or ())
        # as on a cluster with more nodes than ranks, the first ones are used
        self.config = replace(self.config, nodes=min(len(names) or self.config.nodes, self.size))
        self.algorithms = selection(self.config.algorithm, os.environ)
        if self.algorithms and (fault := self.algorithms.usual.fault):
            planted: dict[str, Any] = {fault: (*getattr(self.config, fault), Fault(self.size - 1))}
            self.config = replace(self.config, **planted)
        self._check()
        self.network = Network(self.config, self.size, self.algorithms)
        self.local = tuple(range(self.size))
        nodes = self.config.nodes
        named = names or tuple(f"node{k}" for k in range(nodes))
        self.hosts = tuple(named[rank * nodes // self.size] for rank in self.local)
        self.library_version = self.config.version
        self.library_string = f"mock {self.config.version} (a simulation: nothing is measured)"
        self.thread_level: str = spec.get("thread_level") or "multiple"
        self._seed, self._launch_index = int(spec.get("seed") or 0), int(spec.get("launch_index") or 0)
        self.scale = launch_factor(self.config, self._seed, self._launch_index)
        """The factor of all operations of this launch."""
        self.clocks: NDArray[np.int64] = np.zeros(self.size, np.int64)
        """The simulated clock of each rank, ns."""
        begin = 1000 * self.config.alpha * self.scale / 1000
        self.started = {name: dict.fromkeys(self.local, begin * n) for name, n in (("init", 1), ("hello", 2))}
        """Times in µs of start-up: as long as 1000 messages, and twice as long until all have said hello."""
        self._loads = 0

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> MockRunner:
        """Prepare a cell. `programs` has one program for each rank.

        Raises:
            StepFailed, UsageError, EnvironmentProblem: a program is wrong (``lower``).
        """
        runner = self._runner = MockRunner(self, cell, programs, self._noise(self._loads))
        self._loads += 1
        return runner

    def load_pairs(self, cell: Cell, programs: PairPrograms) -> MockRunner | MockPairRunner:
        """Prepare a round of pairs, all at once where that gives the same numbers. Raises as :meth:`load`."""
        pairs = PairSimulation(self.config, self.network, self.scale, self._noise(self._loads), programs)
        if not pairs.is_simple():
            return self.load(cell, programs.of_ranks(self.local))
        runner = self._runner = MockPairRunner(self, cell, programs, pairs)
        self._loads += 1
        return runner

    def _noise(self, number: int) -> Noise:
        """The noise of a load; that of -1 is no load's."""
        return Noise(self.config, (self._seed, self._launch_index, number), self.size)

    def barrier(self) -> None:
        """Set all clocks to the latest."""
        self.clocks = np.full(self.size, self.clocks.max(), np.int64)

    def doing(self, step: int) -> str:
        """A step of the running program in words."""
        return self._runner.doing(step) if self._runner else ""

    def skew(self, kind: str = "barrier") -> float:
        """Median time in µs between the first and the last rank to leave a barrier: 0 without noise.

        Every kind of synchronisation counts as a barrier.
        """
        noise = self._noise(-1)
        if not noise.active:
            return 0.0
        barrier_ns = Network(self.config, self.size).collective("barrier", (), 0).time * self.scale
        exits = np.rint([barrier_ns * noise.row(k) for k in range(SKEW_ROUNDS)])
        return float(np.median(exits.max(axis=1) - exits.min(axis=1))) / 1000

    def _check(self) -> None:
        config = self.config
        for rank in config.ranks_named():
            if rank >= self.size:
                raise UsageError(f"mock: there is no rank {rank} among {self.size}")
