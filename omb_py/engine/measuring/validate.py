"""Validation: the body of the timed loop, run apart, with every byte of every block checked on every rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.measuring.forwarding import BufferContents, can_follow, follow, passes_on
from omb_py.engine.measuring.payload import (
    WHOLE,
    Arrivals,
    Bytes,
    Expected,
    Laid,
    Make,
    Part,
    count_wrong,
    expectations,
    repeatable,
    write,
)
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.groups import divided
from omb_py.engine.program.language import Program, Region, templates
from omb_py.engine.session import Runner, Session
from omb_py.grammar.rank_groups import by_group

ITERATIONS = 10
CHECKED: Final = 64 << 20
"""Bytes of all messages of a cell that are checked before its timed loop, one message at least: what will be received
is spoiled before, so that one iteration shows what is wrong."""
_MOMENT_NS = 1000.0
PerRank = NDArray[np.float64]
"""A number for each rank, as sessions add them."""
TIMED_LOOP = -1
"""Iteration number in the payload of the timed loop, whose buffers stay as they are."""


@dataclass(frozen=True, slots=True)
class Log:
    """Writes wrong positions as OMB's ``-clog`` does: ``DIR/log-RANK.log``."""

    folder: Path

    def write(self, world: World, cell: Cell, iteration: int, actual: Bytes, expected: Bytes) -> None:
        kind = DTYPES[cell.dtype]
        whole_elements = actual.nbytes % kind.itemsize == 0  # a reply of one byte is no element
        received, wanted = (part.view(kind.numpy if whole_elements else "uint8") for part in (actual, expected))
        # bytes, not values: payloads of copies may be NaN, which is unlike itself
        wrong = (actual != expected).reshape(len(received), -1).any(axis=1)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"log-{world.rank}.log").open("a") as out:
            out.write(f"Size: {cell.size}, Iteration:{iteration}, Datatype: {kind.mpi}\n")
            out.write(f"{'Position':<10}{'Expected':>18}{'Actual':>18}\n")
            for position in np.flatnonzero(wrong):
                out.write(f"{position:<10}{wanted[position]!s:>18}{received[position]!s:>18}\n")


class Checker:
    """Fills and checks the buffers of the local ranks for one runner."""

    def __init__(
        self,
        cell: Cell,
        worlds: Mapping[int, World],
        programs: Mapping[int, Program],
        log: Log | None,
        followed: Mapping[int, Program] | None = None,
    ) -> None:
        """Check the programs of the local ranks; `followed` are those of all ranks, where stages are followed."""
        self.cell, self.worlds, self.programs, self.log = cell, worlds, programs, log
        self._all = followed or {}
        self._contents: dict[tuple[int, int], dict[int, BufferContents]] = {}

    def _follow_stage(self, stage: int, iteration: int) -> dict[int, BufferContents]:
        if (stage, iteration) not in self._contents:
            self._contents = {(stage, iteration): follow(self._all, stage, iteration)}
        return self._contents[stage, iteration]

    def fill_followed(self, runner: Runner, stage: int, iteration: int) -> None:
        """Put the bytes there from which the steps of the stage were followed."""
        for rank in self.worlds:
            for name, content in self._follow_stage(stage, iteration)[rank].before.items():
                runner.memory(rank, name)[: content.size] = content

    def wrong_followed(self, runner: Runner, stage: int, iteration: int) -> PerRank:
        """Number of bytes of each rank that are not what the followed steps have left."""
        counts = np.zeros(next(iter(self.worlds.values())).size)
        for rank, world in self.worlds.items():
            contents = self._follow_stage(stage, iteration)[rank]
            for name, written in contents.written.items():
                actual, expected = runner.memory(rank, name)[: written.size][written], contents.after[name][written]
                bad = int(np.count_nonzero(actual != expected))
                if bad and self.log:
                    self.log.write(world, self.cell, iteration, actual.copy(), expected)
                counts[rank] += bad
        return counts

    def _parts(self, rank: int, stage: int, iteration: int, last: int) -> Expected:
        program_stage = self.programs[rank].stages[stage]
        if program_stage.check is not None:
            reads, leaves = (expectations(nodes, self.worlds[rank], iteration) for nodes in program_stage.check)
            return reads[0], leaves[1]
        variants = program_stage.variants or ((),)
        return expectations(variants[last % len(variants)], self.worlds[rank], iteration, templates(program_stage))

    def fill(self, runner: Runner, stage: int, iteration: int) -> None:
        """Spoil what will be received, then put the payload of `iteration` where it is sent from.

        In the timed loop all variants and all copies of the buffers take turns, so all of them get their payload.
        """
        variants = len(next(iter(self.programs.values())).stages[stage].variants) or 1
        timed = iteration == TIMED_LOOP
        for rank in self.worlds:
            of_stage = self.programs[rank].stages[stage]
            copies, copy = of_stage.copies, of_stage.copy_at(iteration)
            rows = slice(None) if timed else slice(copy, copy + 1)
            parts = [self._parts(rank, stage, iteration, turn) for turn in (range(variants) if timed else (iteration,))]
            for region, expected in (part for _, after in parts for part in after):
                spoiled = expected.before if isinstance(expected, Laid) else partial(_complement, expected)
                write(_copies(runner, rank, region, copies)[rows], spoiled)
            for region, content in (part for before, _ in parts for part in before):
                write(_copies(runner, rank, region, copies)[rows], content)

    def _list_left(self, rank: int, stage: int, last: int) -> list[Part]:
        """What the timed loop leaves behind.

        Where roots take turns at one buffer, as in a broadcast, each sends on what it has received: the buffer keeps
        what the first iteration put there. Bytes that do not travel keep what :meth:`fill` put there.
        """
        of_stage = self.programs[rank].stages[stage]
        apart = of_stage.copies * of_stage.threads  # every so-many-th iteration is of one thread, in one copy
        first = -self.cell.sampling.warmup + (last + self.cell.sampling.warmup) % apart
        turns = range(len(of_stage.variants) or 1)
        sent = dict(part for turn in turns for part in self._parts(rank, stage, TIMED_LOOP, turn)[0])
        from_first = dict(self._parts(rank, stage, TIMED_LOOP, first)[1])
        return [
            (region, _sent_on(from_first[region], sent[region]) if region in sent and region in from_first else make)
            for region, make in self._parts(rank, stage, TIMED_LOOP, last)[1]
        ]

    def repeatable(self, stage: int) -> bool:
        """Whether the content of the buffers after the timed loop is known (``repeatable``)."""
        stages = (program.stages[stage] for program in self.programs.values())
        return all(repeatable(variant, templates(s)) for s in stages for variant in s.variants)

    def wrong(self, runner: Runner, stage: int, iteration: int, last: int | None = None) -> PerRank:
        """Number of received bytes that differ from the expected ones, of each rank; 0 for ranks that are not local.

        Args:
            runner: where the buffers are.
            stage: index of the stage.
            iteration: its number in the payload.
            last: number of the last iteration of the timed loop, which chooses the variant; None: `iteration`.
        """
        counts = np.zeros(next(iter(self.worlds.values())).size)
        at = iteration if last is None else last
        for rank, world in self.worlds.items():
            of_stage = self.programs[rank].stages[stage]
            parts = self._parts(rank, stage, iteration, at)[1] if last is None else self._list_left(rank, stage, last)
            arrivals = Arrivals()
            for region, make in parts:
                actual = _copies(runner, rank, region, of_stage.copies)[of_stage.copy_at(at)]
                expected = arrivals.expected(make, actual)
                bad = count_wrong(expected, actual)
                if bad and self.log:
                    self.log.write(world, self.cell, iteration, actual.copy(), expected(within=WHOLE))
                counts[rank] += bad
        return counts


def _sent_on(received: Make, own: Make) -> Make:
    return partial(_merge, received, own) if isinstance(received, Laid) else received


def _merge(received: Laid, own: Make, within: slice = WHOLE) -> Bytes:
    return np.where(received.where[within], received.make(within=within), own(within=within))


def _complement(make: Make, within: slice) -> Bytes:
    return ~make(within=within)


def _copies(runner: Runner, rank: int, region: Region, copies: int) -> Bytes:
    """A region in every copy of its buffer, one row a copy; a region that does not turn is the same in all rows."""
    start = runner.memory(rank, region.buffer)[region.offset :]
    if copies == 1:
        return start[None, : region.nbytes]
    shape = (copies, region.nbytes)
    return np.lib.stride_tricks.as_strided(start, shape, (region.turn, 1))


class ByteCheck:
    """The check of a cell's bytes: before the timed loop, and of what each loop has left."""

    def __init__(
        self, session: Session, benchmark: Benchmark, cell: Cell, worlds: Mapping[int, World], log: Log | None
    ) -> None:
        self.session, self.cell, self.worlds, self.log = session, cell, worlds, log
        self._followed = followed_stages(session, benchmark, cell, worlds)
        self._wrong = validate_ranks(session, benchmark, cell, worlds, log, self._followed)
        """Wrong bytes of each rank so far."""

    def fill(self, runner: Runner, stage: int, programs: Mapping[int, Program]) -> None:
        self._checker = Checker(self.cell, self.worlds, programs, self.log)
        self._checker.fill(runner, stage, TIMED_LOOP)

    def add_loop(self, runner: Runner, stage: int, last: int) -> None:
        """Count what the loop of a stage left wrong; `last` is the number of its last iteration."""
        self.session.barrier()  # peers may write into this rank's memory until they have left the stage
        late = np.zeros(self.session.size)
        if stage not in self._followed and self._checker.repeatable(stage):  # of some ranks only, as of the root's
            late = self._checker.wrong(runner, stage, TIMED_LOOP, last)
        self._wrong = self._wrong + self.session.total(late)

    def complete(self, result: CellResult) -> None:
        """Add the verdict to the result, and the wrong bytes of each group where there are several."""
        result.wrong_bytes, result.validated = int(self._wrong.sum()), not self._wrong.any()
        if self.cell.options.groups:
            of_groups = by_group(self._wrong.tolist(), divided(self.cell, self.session.size, self.session.hosts))
            result.extra |= {f"group_{k}_wrong_bytes": sum(of_group) for k, of_group in enumerate(of_groups)}


def followed_stages(session: Session, benchmark: Benchmark, cell: Cell, worlds: Mapping[int, World]) -> frozenset[int]:
    """Stages in which a rank passes on what another has left, and in which the steps of all ranks can be followed."""
    programs = {rank: benchmark.program(world, replace(cell, distinct=True)) for rank, world in worlds.items()}
    stages = range(len(next(iter(programs.values())).stages))
    cannot, passes = np.zeros(len(stages)), np.zeros(len(stages))
    for number in stages:
        for program in programs.values():
            cannot[number] += not can_follow(program, number)
            passes[number] += any(map(passes_on, program.stages[number].variants))
    cannot, passes = session.total(cannot), session.total(passes)
    return frozenset(number for number in stages if passes[number] and not cannot[number])


def iterations_of(size: int) -> int:
    """How often the body of a stage is checked before the timed loop, for messages of `size` bytes.

    >>> iterations_of(8), iterations_of(16 << 20), iterations_of(1 << 30)
    (10, 4, 1)
    """
    return max(1, min(ITERATIONS, CHECKED // max(1, size)))


def validate_ranks(
    session: Session,
    benchmark: Benchmark,
    cell: Cell,
    worlds: Mapping[int, World],
    log: Log | None = None,
    followed: frozenset[int] = frozenset(),
) -> PerRank:
    """Run the body of every stage with distinct buffers and return the number of wrong bytes of each rank.

    A body runs :func:`iterations_of` times, and each of its variants at least once.
    """
    apart = replace(cell, distinct=True)
    programs = {rank: benchmark.program(world, apart) for rank, world in worlds.items()}
    every = (World(rank, session.size, session.hosts) for rank in range(session.size) if followed)
    checker = Checker(apart, worlds, programs, log, {w.rank: benchmark.program(w, apart) for w in every})
    runner = session.load(apart, programs)
    stages = next(iter(programs.values())).stages
    # a step that computes as long as an earlier stage took computes for a moment here
    results = {(stage.name, lap): _MOMENT_NS for stage in stages for lap in stage.laps}
    wrong = np.zeros(session.size)
    for number, stage in enumerate(stages):
        runner.enter(number, results)
        for iteration in range(max(iterations_of(cell.size), len(stage.variants))):
            (checker.fill_followed if number in followed else checker.fill)(runner, number, iteration)
            session.barrier()
            runner.run(number, iteration, 1)
            session.barrier()
            check = checker.wrong_followed if number in followed else checker.wrong
            wrong += check(runner, number, iteration)
        runner.leave(number)
    runner.close()
    return session.total(wrong)
