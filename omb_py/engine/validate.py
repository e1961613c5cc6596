"""Validation: the body of the timed loop, run apart, with every byte of every block checked on every rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from omb_py.engine.benchmark import Benchmark, Cell, World
from omb_py.engine.dtypes import DTYPES
from omb_py.engine.payload import expectations
from omb_py.engine.program import Program
from omb_py.engine.session import Runner, Session

ITERATIONS = 10
TIMED_LOOP = -1
"""Iteration number in the payload of the timed loop, whose buffers stay as they are."""


@dataclass(frozen=True, slots=True)
class Log:
    """Writes wrong positions as OMB's ``-clog`` does: ``DIR/log-RANK.log``."""

    folder: Path

    def write(self, world: World, cell: Cell, iteration: int, actual: np.ndarray, expected: np.ndarray) -> None:
        """Append the wrong elements of a region."""
        kind = DTYPES[cell.dtype]
        view = kind.numpy if actual.nbytes % kind.itemsize == 0 else "uint8"
        got, want = actual.view(view), expected.view(view)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"log-{world.rank}.log").open("a") as out:
            out.write(f"Size: {cell.size}, Iteration:{iteration}, Datatype: {kind.mpi}\n")
            out.write(f"{'Position':<10}{'Expected':>18}{'Actual':>18}\n")
            for position in np.flatnonzero(got != want):
                out.write(f"{position:<10}{want[position]!s:>18}{got[position]!s:>18}\n")


class Checker:
    """Fills and checks the buffers of the local ranks for one runner."""

    def __init__(self, cell: Cell, worlds: Mapping[int, World], programs: Mapping[int, Program], log: Log | None):
        self.cell, self.worlds, self.programs, self.log = cell, worlds, programs, log

    def _parts(self, rank: int, iteration: int):  # type: ignore[no-untyped-def]
        stage = self.programs[rank].stages[0]
        variant = stage.variants[max(0, iteration) % len(stage.variants)]
        return expectations(variant, self.worlds[rank], iteration)

    def fill(self, runner: Runner, iteration: int) -> None:
        """Spoil what will be received, then put the payload of `iteration` where it is sent from."""
        for rank in self.worlds:
            before, after = self._parts(rank, iteration)
            for region, expected in after:
                memory = runner.memory(rank, region.buffer)
                memory[region.offset : region.offset + region.nbytes] = ~expected
            for region, content in before:
                memory = runner.memory(rank, region.buffer)
                memory[region.offset : region.offset + region.nbytes] = content

    def wrong(self, runner: Runner, iteration: int) -> int:
        """How many received bytes differ from what must be there."""
        total = 0
        for rank, world in self.worlds.items():
            for region, expected in self._parts(rank, iteration)[1]:
                actual = runner.memory(rank, region.buffer)[region.offset : region.offset + region.nbytes]
                bad = int(np.count_nonzero(actual != expected))
                if bad and self.log:
                    self.log.write(world, self.cell, iteration, actual.copy(), expected)
                total += bad
        return total


def checkable(benchmark: Benchmark) -> bool:
    """Whether a benchmark moves data that can be checked."""
    return "validation" in benchmark.options


def validate(
    session: Session, benchmark: Benchmark, cell: Cell, worlds: Mapping[int, World], log: Log | None = None
) -> int:
    """Run the body ``ITERATIONS`` times with distinct buffers and return the wrong bytes of all ranks."""
    apart = replace(cell, distinct=True)
    programs = {rank: benchmark.program(world, apart) for rank, world in worlds.items()}
    checker = Checker(apart, worlds, programs, log)
    runner = session.load(apart, programs)
    runner.enter(0, {})
    wrong = 0
    for iteration in range(ITERATIONS):
        checker.fill(runner, iteration)
        session.barrier()
        runner.run(0, iteration, 1)
        session.barrier()
        wrong += checker.wrong(runner, iteration)
    runner.leave(0)
    runner.close()
    return int(session.total(np.array([float(wrong)]))[0])
