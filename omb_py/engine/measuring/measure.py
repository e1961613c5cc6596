"""Measuring one cell: warm-up, the timed loop, when to stop, and the reductions over ranks.

Design: every iteration of every rank is one time.  After the loop two vector reductions give two series, the
maximum over the ranks that the benchmark times and their average (docs/statistics.md).
"""

from __future__ import annotations

import gc
import math
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import ge, ne
from typing import TYPE_CHECKING, TypeAlias

from omb_py.engine.measuring.cell_result import CellResult, LapSeries
from omb_py.engine.measuring.statistics import checkpoints, late_enough, settled, too_slow
from omb_py.engine.program.benchmark import Benchmark, Cell, Sampling, World
from omb_py.engine.program.datatype_layouts import message_bytes, transmitted
from omb_py.engine.program.groups import divided, timed_ranks
from omb_py.engine.program.language import Stage, program_hash
from omb_py.engine.samples import Integers, LapTimes, lap_of
from omb_py.engine.session import Runner, Session
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omb_py.engine.measuring.validate import ByteCheck, Log
    from omb_py.engine.observers.observer import Observer

LATE = "late"
"""The slot in which a rank notes by how many ns it missed the start of a round (`--process-sync roundtime`)."""
MOST_LATE = 0.05
"""Share of late rounds above which rounds are announced further ahead."""
MOST_TRIES = 20
UNSETTLED = "unsettled"
"""Why a loop stopped: the count was reached, and the samples depend on each other too slowly for an interval."""
AFTER_CHECKPOINT = 5
"""Iterations dropped after each checkpoint: the ranks were apart, and caches held other data."""


Samples: TypeAlias = "LapTimes | NDArray[np.int64]"
Phase = Callable[[str], None]
"""Reports the current phase to the watchdog: validate, loop (warm-ups have negative numbers), write."""


def worlds_of(session: Session) -> dict[int, World]:
    """The place of each local rank."""
    return {rank: World(rank, session.size, session.hosts) for rank in session.local}


def version_of(benchmark: Benchmark, cell: Cell, size: int, hosts: tuple[str, ...] = ()) -> str:
    """The version of the benchmark: a hash of the programs of the first two ranks and the last one."""
    cell = cell.with_options(cache="hot")  # how many copies there are depends on the machine; the row says `rotate`
    cell = replace(cell, sampling=Sampling(warmup=0))  # warm-ups say with which root the timed iterations begin
    ranks = sorted({0, 1 % size, size - 1})
    return program_hash(*(benchmark.program(World(r, size, hosts), cell) for r in ranks))


class Sampler:
    """Runs a stage in pieces and keeps the samples of the local ranks."""

    def __init__(
        self,
        session: Session,
        benchmark: Benchmark,
        cell: Cell,
        runner: Runner,
        stage: int,
        laps: tuple[str, ...],
        last: bool,
        window: bool = False,
    ) -> None:
        self.session, self.runner, self.stage = session, runner, stage
        self._window = window
        self._late = laps.index(LATE) if LATE in laps else None
        self._read = [number for number, lap in enumerate(laps) if lap != LATE]
        """Numbers of the laps that are kept, as the runner counts them."""
        laps = tuple(lap for lap in laps if lap != LATE)
        self.laps, self.voided = laps, 0
        timed = timed_ranks(benchmark, cell, session.size, session.hosts)
        self.timed = sorted({*session.local} & {*timed})
        self.ranks_timed = len(timed)
        metric = benchmark.metric
        self.parts = metric.parts_of(cell)
        added = metric.adds if last and metric.lap not in laps else ()
        self._adds = [laps.index(lap) for lap in added if lap in laps]
        self.columns = (*laps, metric.lap) if self._adds else laps
        """Names of the columns of a sample: the laps, and their sum where that is the sample."""
        self.primary = self.columns.index(metric.lap) if metric.lap in self.columns else 0
        """The column that is the sample."""
        self.kept = 0
        self.done = self._drop = 0
        self._times: dict[int, list[Integers]] = {rank: [array("q") for _ in self._read] for rank in session.local}

    @property
    def ns_per_unit(self) -> float:
        """What times are divided by for the samples of a single rank, in µs."""
        return 1000.0 * self.parts

    def warm(self, iterations: int) -> None:
        """Let the next run begin with `iterations` warm-ups. They are numbered up to -1: 0 is the first that counts."""
        self.done -= iterations
        self._drop += iterations

    def run(self, iterations: int, drop: int = 0) -> None:
        """Run iterations to keep, after some to drop, without a pause between them.

        A pause would show: the ranks come back from Python up to tens of microseconds apart, and the first iteration
        of the one that came first holds that time.
        """
        drop += self._drop
        self._drop = 0
        missing, tries = iterations, 0
        while True:
            samples = self.runner.run(self.stage, self.done, drop + missing)
            if self._window:
                # a rank whose accesses are still under way may need this one to answer, which Python does not
                self.session.settle()
            self.done += drop + missing
            valid = self._find_in_time(samples, missing, drop) if self._late is not None else None
            kept = missing if valid is None else sum(valid)
            for rank, of_rank in samples.items():
                if rank_laps(of_rank) == len(self._read) + (self._late is not None):
                    for column, number in zip(self._times[rank], self._read, strict=True):
                        times = lap_of(of_rank, number, drop)
                        column.extend(times if valid is None else array("q", compress(times, valid)))
            self.kept += kept
            missing, tries, drop = missing - kept, tries + 1, AFTER_CHECKPOINT
            if missing <= 0:
                return
            if tries >= MOST_TRIES:
                raise EnvironmentProblem(
                    f"{self.voided} rounds began late and only {self.kept} in time: the ranks do not keep up with "
                    "--process-sync roundtime (more ranks than cores?): use --process-sync barrier"
                )

    def _find_in_time(self, samples: Mapping[int, Samples], rounds: int, drop: int) -> list[bool]:
        """For each round after those to drop whether no rank came late to it."""
        assert self._late is not None
        lateness = array("q", _largest([lap_of(of_rank, self._late, drop) for of_rank in samples.values()]))
        valid = [ns <= 0 for ns in self.session.maximum(lateness)]
        late = rounds - sum(valid)
        self.voided += late
        if late > rounds * MOST_LATE:
            self.runner.postpone_rounds()
        return valid

    def local(self, rank: int) -> list[Integers]:
        """The columns of a local timed rank, in ns for all parts of an iteration."""
        laps = self._times[rank]
        summed = (
            [array("q", map(sum, zip(*(laps[number] for number in self._adds), strict=True)))] if self._adds else []
        )
        return [*laps, *summed]

    def means_ns(self) -> list[float]:
        """Mean of each lap over the local ranks, whether the benchmark times them or not."""
        means = [list(map(_mean, laps)) for laps in self._times.values() if laps and laps[0]]
        return [_mean(of_lap) for of_lap in zip(*means, strict=True)] if means else [math.nan] * len(self.laps)

    def slowest(self) -> list[Integers]:
        """The columns' maximum over the timed ranks, in ns, on every process."""
        return self._combine(_largest, self.session.maximum)

    def total(self) -> list[Integers]:
        """The columns' sum over the timed ranks, in ns, on every process."""
        return self._combine(_add_columns, self.session.total)

    def _combine(
        self, here: Callable[[Sequence[Integers]], Iterable[int]], beyond: Callable[[Integers], Integers]
    ) -> list[Integers]:
        """Each column combined over the timed ranks: those that are local, then beyond this process, at once."""
        of_ranks = [self.local(rank) for rank in self.timed]
        joined = array("q")
        for column in range(len(self.columns)):
            # a process without a timed rank contributes zeros: times are never negative
            nothing = array("q", bytes(8 * self.kept))
            joined.extend(here([columns[column] for columns in of_ranks]) if of_ranks else nothing)
        whole = beyond(joined)
        return [whole[start : start + self.kept] for start in range(0, len(whole), self.kept)]


def rank_laps(samples: Samples) -> int:
    """How many laps a rank has read."""
    return samples.laps if isinstance(samples, LapTimes) else int(samples.shape[1])


def _largest(columns: Sequence[Integers]) -> Iterable[int]:
    return columns[0] if len(columns) == 1 else map(max, *columns)


def _add_columns(columns: Sequence[Integers]) -> Iterable[int]:
    return columns[0] if len(columns) == 1 else map(sum, zip(*columns, strict=True))


def measure(
    session: Session, benchmark: Benchmark, cell: Cell, phase: Phase = lambda name: None, log: Log | None = None
) -> CellResult:
    """Measure one cell on all ranks.

    Returns:
        The finished cell; series and lists are complete where rank 0 is.

    Raises:
        StepFailed: a library call returned an error.
    """
    if benchmark.runs:
        return benchmark.runs(session, cell, phase)
    if benchmark.once:
        return _take_start(session, benchmark, cell)
    measurement = Measurement(session, benchmark, cell, phase, log)
    for number in range(len(measurement.stages)):
        measurement.run_stage(number)
    return measurement.finish()


class Measurement:
    """A cell on its way through its stages, and what surrounds each timed loop: observers, checks, reductions."""

    def __init__(self, session: Session, benchmark: Benchmark, cell: Cell, phase: Phase, log: Log | None) -> None:
        self.session, self.benchmark, self.cell, self.phase = session, benchmark, cell, phase
        self.observers: list[Observer] = []
        if cell.observers:
            from omb_py.engine.observers.registry import find  # a rank without observers loads none

            self.observers = [find(name)(session, text) for name, text in cell.observers.items()]
        worlds = worlds_of(session)
        self.check = _check_of(session, benchmark, cell, worlds, log, phase)
        self.programs = {rank: benchmark.program(world, cell) for rank, world in worlds.items()}
        self.runner = session.load(cell, self.programs)
        self.result = CellResult(cell, 0, "", version_of(benchmark, cell, session.size, session.hosts))
        self.stages = self._stages()
        self._earlier: dict[tuple[str, str], float] = {}
        """(stage, lap) -> mean ns on this rank, of the stages before the current one."""
        self._observed: dict[str, float] = {}
        self._voided = 0
        """Rounds that began late."""

    def _stages(self) -> tuple[Stage, ...]:
        """Those of the first timed rank, which reads every clock that is reported; other ranks may read fewer."""
        session = self.session
        first = timed_ranks(self.benchmark, self.cell, session.size, session.hosts)[0]
        world = World(first, session.size, session.hosts)
        return (self.programs.get(first) or self.benchmark.program(world, self.cell)).stages

    def run_stage(self, number: int) -> None:
        """Run one stage from its setup to its teardown, and add its laps to the result."""
        stage, last = self.stages[number], number + 1 == len(self.stages)
        self.runner.enter(number, self._earlier)
        if self.check:
            self.check.fill(self.runner, number, self.programs)
        window = any(program.window for program in self.programs.values())
        sampler = Sampler(self.session, self.benchmark, self.cell, self.runner, number, stage.laps, last, window)
        sampler.warm(self.cell.sampling.warmup)
        self.phase("loop")
        stop = self._observe(sampler)
        self.phase("write")
        self.runner.leave(number)
        if self.check:
            self.check.add_loop(self.runner, number, sampler.done - 1)
        slowest = _reduce(self.session, sampler, stage.name if len(self.stages) > 1 else "", self.result)
        if not last:
            means = zip(sampler.laps, sampler.means_ns(), strict=True)
            self._earlier |= {(stage.name, lap): mean for lap, mean in means}
        self.result.iterations = sampler.kept
        self.result.stop_reason = UNSETTLED if stop == "count" and too_slow(slowest) else stop
        self._voided += sampler.voided if LATE in stage.laps else 0

    def _observe(self, sampler: Sampler) -> str:
        """Run the timed loop between the readings of the observers. Returns why it stopped."""
        for observer in self.observers:
            observer.start()
        gc.disable()  # a collection inside the loop would show as an outlier
        self.session.barrier()
        try:
            stop = _loop(self.session, self.cell, sampler, self.benchmark.counts.fewest)
        finally:
            gc.enable()
        operations = (sampler.done + self.cell.sampling.warmup) * sampler.parts
        for observer in self.observers:  # of several stages the last one is the operation
            self._observed |= observer.stop(operations)
        return stop

    def finish(self) -> CellResult:
        """Complete the result with what is known after the last stage, and free what the cell needed."""
        result = self.result
        for figures in (self.runner.notes, self._late_rounds, self._flop, lambda: self._observed):
            result.extra |= figures()
        result.marks = dict(self.runner.marks)
        self.runner.close()
        for observer in self.observers:
            observer.close()
        if self.check:
            self.check.complete(result)
        result.bytes_moved = _bytes_moved(self.session, self.benchmark, self.cell)
        if self.cell.options.ddt:
            result.extra["transmit_size"] = float(transmitted(self.cell))
            if result.bytes_moved:
                result.bytes_moved = result.bytes_moved * transmitted(self.cell) // message_bytes(self.cell)
        return result

    def _late_rounds(self) -> dict[str, float]:
        return {"late_rounds": float(self._voided)} if self.cell.options.process_sync == "roundtime" else {}

    def _flop(self) -> dict[str, float]:
        if not self.cell.options.workload:
            return {}
        from omb_py.engine.native.matmul import flop_of  # with NumPy

        own = float(sum(map(flop_of, self.programs.values())))
        computed = self.session.total(array("d", [own]))[0] / self.session.size
        return {"flop": float(computed)} if computed else {}


def _check_of(
    session: Session, benchmark: Benchmark, cell: Cell, worlds: Mapping[int, World], log: Log | None, phase: Phase
) -> ByteCheck | None:
    if not cell.validate or "validation" not in benchmark.options:
        return None
    from omb_py.engine.measuring.validate import ByteCheck  # with NumPy

    phase("validate")
    return ByteCheck(session, benchmark, cell, worlds, log)


def _bytes_moved(session: Session, benchmark: Benchmark, cell: Cell) -> int | None:
    metric = benchmark.metric
    if metric.bytes_of:
        return metric.bytes_of(cell, len(divided(cell, session.size, session.hosts)[0]))
    return metric.bytes_over(cell, session.hosts) if metric.bytes_over else None


def _take_start(session: Session, benchmark: Benchmark, cell: Cell) -> CellResult:
    """The result of a benchmark with one sample a launch, which the session took when it began."""
    name = benchmark.metric.lap
    if name not in session.started:
        raise EnvironmentProblem(f"{benchmark.name}: backend {session.backend} does not know how long its start took")
    startups = list(session.started[name].items())
    result = CellResult(cell, 1, "fixed", version_of(benchmark, cell, session.size, session.hosts))
    times = [us for _, us in startups]
    slowest = session.maximum(array("d", [max(times)]))
    average = session.total(array("d", [sum(times)]))[0] / session.size
    result.series[name] = LapSeries(max=slowest, avg=array("d", [average]))
    everyone = sorted(start for of_process in session.gather(startups) for start in of_process)
    result.laps[name] = [us for _, us in everyone]
    result.slowest_rank_share = [float(us >= slowest[0]) for _, us in everyone]
    return result


def _loop(session: Session, cell: Cell, sampler: Sampler, fewest: int) -> str:
    """Run the timed iterations; returns why it stopped: `fixed`, `count`, `precision` or `time`."""
    began = time.monotonic()
    if not cell.sampling.auto and cell.sampling.time_limit is None:
        sampler.run(cell.sampling.iterations)
        return "fixed"
    first = min(fewest, cell.sampling.iterations)
    for goal in checkpoints(cell.sampling.iterations, first):
        judged = cell.sampling.auto and late_enough(goal, cell.sampling.iterations)
        if not judged and cell.sampling.time_limit is None:
            continue
        sampler.run(goal - sampler.kept, drop=AFTER_CHECKPOINT if sampler.kept else 0)
        if goal >= cell.sampling.iterations:
            break
        slowest = sampler.slowest()[sampler.primary] if judged else ()
        # rank 0 decides for all
        reached = judged and 0 in session.local and settled(slowest, cell.sampling.precision)
        late = cell.sampling.time_limit is not None and time.monotonic() - began >= cell.sampling.time_limit
        verdict: str = session.share("precision" if reached else "time" if late else "")
        if verdict:
            return verdict
    return "count" if cell.sampling.auto else "fixed"


def _reduce(session: Session, sampler: Sampler, stage: str, result: CellResult) -> Integers:
    """Add the two series of each column, the ranks' means, and how often each rank was the slowest.

    Returns:
        The series of the maximum of the sample, in ns, on every process.
    """
    slowest, total = sampler.slowest(), sampler.total()
    sample = slowest[sampler.primary]
    everyone: list[tuple[int, list[float], float, int]] = sorted(
        part
        for parts in session.gather([_summarise_rank(sampler, rank, sample) for rank in sampler.timed])
        for part in parts
    )
    one, all_ranks = sampler.ns_per_unit, sampler.ns_per_unit * sampler.ranks_timed
    for column, lap in enumerate(sampler.columns):
        name = f"{stage}.{lap}" if stage and column < len(sampler.laps) else lap
        largest, average = (
            array("d", [ns / each for ns in series[column]] if 0 in session.local else ())
            for series, each in ((slowest, one), (total, all_ranks))
        )
        result.series[name] = LapSeries(max=largest, avg=average)
        result.laps[name] = [of_rank[column] for _, of_rank, _, _ in everyone]
    result.slowest_rank_share = [share for _, _, share, _ in everyone]
    # one rank stops being the slowest and another begins
    result.slowest_rank_changes = sum(changed for _, _, _, changed in everyone) / 2
    return sample


def _summarise_rank(sampler: Sampler, rank: int, slowest: Integers) -> tuple[int, list[float], float, int]:
    """A rank, its mean of each column in µs, its share of iterations as the slowest, and how often that changed."""
    columns = sampler.local(rank)
    last = bytes(map(ge, columns[sampler.primary], slowest))
    changes = sum(map(ne, last, last[1:]))
    return rank, [_mean(column) / sampler.ns_per_unit for column in columns], _mean(last), changes


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def buffers_needed(benchmark: Benchmark, cells: list[Cell], world: World) -> tuple[dict[str, int], set[str]]:
    """Largest size of each buffer over the cells of a sweep, in bytes, validation included.

    With the names of those that the library does not allocate.
    """
    needed: dict[str, int] = {}
    ours: set[str] = set()
    for cell in cells:
        variants = [cell, replace(cell, distinct=True)] if cell.validate else [cell]
        for variant in variants:
            for buffer in benchmark.program(world, variant).buffers:
                needed[buffer.name] = max(needed.get(buffer.name, 0), buffer.nbytes)
                if not buffer.library:
                    ours.add(buffer.name)
    return needed, ours
