"""Measuring on the simulated backend with known times: every number is computed by hand here."""

from __future__ import annotations

import gc
import json
from array import array
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.measuring.measure import AFTER_CHECKPOINT, Sampler, measure, version_of, worlds_of
from omb_py.engine.measuring.statistics import checkpoints
from omb_py.engine.program.benchmark import Cell, World
from omb_py.engine.program.language import program_hash
from omb_py.engine.session import Runner
from omb_py.suites.collective.forms import ROTATE
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, measured, session
from tests.support.programs import IALLREDUCE


def us(*values: float) -> str:
    return "/".join(f"{value}us" for value in values)


def printed(done: CellResult) -> float:
    """OMB's number: the mean over the timed ranks of each rank's mean."""
    return float(np.mean(done.laps["time"]))


class Spy:
    """Notes which iterations a session is asked to run."""

    def __init__(self, ranks: int, mock: str = "") -> None:
        self.session = session(ranks, mock)
        self.calls: list[tuple[int, int]] = []
        self.awake: list[bool] = []
        """Whether Python's garbage collector was, at each call."""
        load = self.session.load

        def loaded(what: Cell, programs: Any) -> Runner:
            runner = load(what, programs)
            run = runner.run

            def noted(stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
                self.calls.append((first, iterations))
                self.awake.append(gc.isenabled())
                return run(stage, first, iterations)

            runner.run = noted  # type: ignore[method-assign]
            return runner

        self.session.load = loaded  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize(("name", "waits"), [("exchange_put", True), ("bidir_get", True), ("allreduce", False)])
def test_after_the_loop_a_rank_stays_in_the_library_while_others_access_its_window(
    name: str, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(2)
    runs_before: list[int] = []
    monkeypatch.setattr(spy.session, "barrier", lambda: runs_before.append(len(spy.calls)))
    measure(spy.session, find(name), cell(name, iterations=4, warmup=2))
    assert spy.calls == [(-2, 6)] and runs_before == [0, 1][: 1 + waits]


class TestSeries:
    def test_of_a_collective_are_maximum_and_average_over_all_ranks(self) -> None:
        done = measured("allreduce", 2, f"series={us(10, 12, 14)}:{us(20, 10, 30)}", iterations=3)
        assert done.series["time"]["max"].tolist() == [20, 12, 30]
        assert done.series["time"]["avg"].tolist() == [15, 11, 22]
        assert done.laps["time"] == [12, 20]
        assert printed(done) == 16
        assert done.slowest_rank_share == pytest.approx([1 / 3, 2 / 3])
        assert done.slowest_rank_changes == 2
        assert (done.iterations, done.stop_reason) == (3, "fixed")

    def test_ranks_that_are_equally_slow_are_both_the_slowest(self) -> None:
        done = measured("bcast", 3, f"series={us(5)}:{us(7)}:{us(7)}", iterations=4)
        assert (done.slowest_rank_share, done.slowest_rank_changes) == ([0, 1, 1], 0)

    def test_of_latency_are_half_the_round_trip_on_rank_0_alone(self) -> None:
        done = measured("latency", 2, f"series={us(10, 12)}:{us(20, 40)}", iterations=2)
        assert done.series["time"]["max"].tolist() == done.series["time"]["avg"].tolist() == [15, 26]
        assert (done.laps["time"], done.slowest_rank_share) == ([20.5], [1])

    def test_of_bw_are_whole_laps_and_the_bytes_are_counted(self) -> None:
        done = measured("bw", 2, f"series={us(100, 300)}:{us(20, 20)}", size=1000, iterations=2, window=8)
        assert done.series["time"]["max"].tolist() == [120, 320]
        assert done.bytes_moved == 8000
        assert done.bytes_moved / printed(done) == pytest.approx(8000 / 220)  # MB/s

    @pytest.mark.parametrize("name", ["bcast", "allgather", "alltoall", "gather", "scatter"])
    def test_of_every_collective_take_all_ranks(self, name: str) -> None:
        done = measured(name, 4, f"series={us(1)}:{us(2)}:{us(3)}:{us(6)}", iterations=5)
        assert done.laps["time"] == [1, 2, 3, 6]
        assert done.series["time"]["max"].tolist() == [6] * 5
        assert done.series["time"]["avg"].tolist() == [3] * 5
        assert done.bytes_moved is None


class TestStages:
    def test_take_computing_times_from_earlier_ones_and_name_their_laps(self) -> None:
        done = measure(session(2, f"series={us(10)}:{us(20)}"), IALLREDUCE, cell("allreduce", iterations=4))
        assert list(done.series) == ["pure.time", "overlap.init", "overlap.compute", "overlap.wait"]
        assert done.laps["pure.time"] == [10, 20]
        assert done.laps["overlap.init"] == [0, 0]
        assert done.laps["overlap.compute"] == [15, 15]  # all simulated ranks share what was measured: the mean
        assert done.laps["overlap.wait"] == [0, 5]

    def test_know_the_laps_of_ranks_that_are_not_timed(self) -> None:
        benchmark = replace(IALLREDUCE, timed="rank 0")
        done = measure(session(2, f"series={us(10)}:{us(30)}"), benchmark, cell("allreduce", iterations=4))
        assert done.laps["pure.time"] == [10]
        assert done.laps["overlap.compute"] == [20]


class TestStopping:
    def test_fixed_counts_run_in_one_piece(self) -> None:
        spy = Spy(2)
        done = measure(spy.session, find("allreduce"), cell("allreduce", iterations=700, warmup=50))
        assert spy.calls == [(-50, 750)]
        assert (done.iterations, done.stop_reason) == (700, "fixed")

    def test_precision_stops_after_a_quarter_of_the_count_when_nothing_varies(self) -> None:
        done = measured("allreduce", 2, iterations=1000, auto=True)
        assert (done.iterations, done.stop_reason) == (338, "precision")

    def test_a_count_that_ends_with_samples_that_drift_says_so(self) -> None:
        ramp = [float(v) for v in range(100, 300)]
        done = measured("allreduce", 2, f"series={us(*ramp)}", iterations=100, auto=True)
        assert (done.iterations, done.stop_reason) == (100, "unsettled")
        fixed = measured("allreduce", 2, f"series={us(*ramp)}", iterations=100)
        assert fixed.stop_reason == "fixed"

    def test_never_before_the_smaller_of_100_and_omb_s_count(self) -> None:
        done = measured("bw", 2, iterations=20, auto=True)
        assert (done.iterations, done.stop_reason) == (20, "count")

    def test_noise_runs_to_the_count_and_drops_what_follows_a_checkpoint(self) -> None:
        spy = Spy(2, "noise=0.5")
        done = measure(spy.session, find("allreduce"), cell("allreduce", iterations=200, auto=True, precision=1e-9))
        assert (done.iterations, done.stop_reason) == (200, "count")
        d = AFTER_CHECKPOINT
        assert checkpoints(200) == [100, 150, 200]
        assert spy.calls == [(0, 100), (100, d + 50), (150 + d, d + 50)]

    def test_the_kept_samples_are_those_around_the_dropped_ones(self) -> None:
        times = [float(v) for v in range(1, 161)]
        done = measured("allreduce", 2, f"series={us(*times)}", iterations=150, auto=True, precision=1e-9)
        d = AFTER_CHECKPOINT
        assert done.stop_reason == "unsettled"
        assert done.series["time"]["max"].tolist() == times[:100] + times[100 + d : 150 + d]
        assert printed(done) == pytest.approx(np.mean(times[:100] + times[100 + d : 150 + d]))

    def test_precision_is_looked_at_again_at_each_checkpoint(self) -> None:
        # a hundred iterations far apart around 50 us, in no order, then 50 us exactly: the medians of batches settle
        wild = [50 + (-1) ** k * (1 + (k * 37) % 40) for k in range(100 + AFTER_CHECKPOINT)]
        done = measured("allreduce", 2, f"series={us(*wild, *[50] * 1000)}", iterations=400, auto=True, precision=0.05)
        assert (done.iterations, done.stop_reason) == (225, "precision")

    @pytest.mark.parametrize("auto", [True, False])
    def test_the_time_limit_stops_at_the_next_checkpoint(self, auto: bool) -> None:
        done = measured("allreduce", 2, "noise=0.5", iterations=1000, auto=auto, precision=1e-9, time_limit=0.0)
        assert (done.iterations, done.stop_reason) == (100, "time")


class TestSeveralProcesses:
    """What a process does that holds one rank of two; the other process's part is played by the test."""

    class Half(Runner):
        """One rank of two, whose neighbour measures what `other` says, in ns."""

        backend, binding, size, hosts = "fake", "native", 2, ("a", "a")

        def __init__(self, mine: list[int], other: int, rank: int = 0) -> None:
            self.mine, self.other, self.local = mine, other, (rank,)
            self.asked: list[str] = []

        def load(self, what: Cell, programs: Mapping[int, Any]) -> Any:
            assert list(programs) == list(self.local)
            return self

        def barrier(self) -> None: ...

        def run(self, stage: int, first: int, iterations: int) -> dict[int, NDArray[np.int64]]:
            values = [self.mine[(first + i) % len(self.mine)] for i in range(iterations)]
            return {self.local[0]: np.array(values, np.int64).reshape(-1, 1)}

        def maximum(self, values: array[int]) -> array[int]:
            return array("q", [max(value, self.other) for value in values])

        def total(self, values: array[int]) -> array[int]:
            return array("q", [value + self.other for value in values])

        def gather(self, value: Any) -> list[Any]:
            self.asked.append("gather")
            return []

        def share(self, value: Any) -> Any:
            self.asked.append("share")
            return "precision"  # rank 0 decides

    def test_series_are_reduced_over_processes(self) -> None:
        half: Any = self.Half([3000, 9000], other=5000)
        done = measure(half, find("allreduce"), cell("allreduce", iterations=2))
        assert done.series["time"]["max"].tolist() == [5, 9]
        assert done.series["time"]["avg"].tolist() == [4, 7]
        assert done.laps["time"] == []

    def test_a_rank_that_is_not_timed_adds_nothing(self) -> None:
        half: Any = self.Half([3000], other=5000, rank=1)
        benchmark, what = find("latency"), cell("latency", iterations=3)
        sampler = Sampler(half, benchmark, what, half, 0, ("time",), last=True)
        sampler.run(3)
        assert sampler.slowest() == sampler.total() == [array("q", [5000, 5000, 5000])]

    def test_rank_0_decides_when_to_stop(self) -> None:
        half: Any = self.Half([3000, 90000], other=5000, rank=1)
        done = measure(half, find("allreduce"), cell("allreduce", iterations=1000, auto=True, precision=1e-12))
        assert (done.iterations, done.stop_reason) == (338, "precision")


class TestAround:
    def test_phases_are_announced_in_order(self) -> None:
        phases: list[str] = []
        measure(session(2), find("bcast"), cell("bcast", validate=True), phases.append)
        assert phases == ["validate", "loop", "write"]

    def test_the_garbage_collector_sleeps_in_the_loop_and_wakes_after_it(self) -> None:
        spy = Spy(2)
        measure(spy.session, find("bcast"), cell("bcast", warmup=5))
        assert (spy.calls, spy.awake) == ([(-5, 15)], [False])
        assert gc.isenabled()

    def test_every_local_rank_has_its_place(self) -> None:
        assert worlds_of(session(3)) == {r: World(r, 3, ("node0",) * 3) for r in range(3)}

    def test_the_version_is_the_hash_of_first_second_and_last_rank(self) -> None:
        what, benchmark, world = cell("bw"), find("bw"), session(2)
        programs = [benchmark.program(World(r, 2, world.hosts), what) for r in (0, 1)]
        assert version_of(benchmark, what, 2, world.hosts) == program_hash(*programs)
        many = session(5)
        programs = [find("bcast").program(World(r, 5, many.hosts), cell("bcast")) for r in (0, 1, 4)]
        assert version_of(find("bcast"), cell("bcast"), many.size, many.hosts) == program_hash(*programs)

    def test_validation_does_not_change_the_version(self) -> None:
        assert measured("bw", 2, validate=True).program_hash == measured("bw", 2).program_hash


def test_a_result_comes_back_from_its_message_as_it_was() -> None:
    what = cell("allreduce", 64, iterations=2, time_limit=2.5, precision=0.5, validate=True, warmup=3)
    done = measure(session(2, f"series={us(10, 12)}:{us(20, 10)}"), find("allreduce"), what)
    message = json.loads(json.dumps(done.to_message()))
    back = CellResult.from_message({**message, "type": "cell"})
    assert back.series["time"]["max"].tolist() == [20, 12]
    assert replace(back, series=done.series) == done and back.cell == what
    assert (back.slowest_rank_share, back.slowest_rank_changes) == ([0.5, 0.5], 1)
    assert (back.validated, back.wrong_bytes, back.bytes_moved) == (True, 0, None)


@pytest.mark.parametrize(
    ("name", "iterations", "warmup"), [("scatter", 1, 0), ("gatherv", 1, 1), ("scatter", 2, 0), ("gatherv", 3, 1)]
)
def test_the_timed_loop_is_checked_for_the_root_of_its_last_iteration(name: str, iterations: int, warmup: int) -> None:
    """Roots take turns: which bytes are where at the end depends on whose turn was last, warm-up included."""
    done = measured(name, 2, validate=True, root=ROTATE, iterations=iterations, warmup=warmup)
    assert (done.validated, done.wrong_bytes) == (True, 0)


def test_a_benchmark_that_measures_itself_is_believed() -> None:
    of_its_own: Any = SimpleNamespace(runs=lambda session, cell, phase: (session, cell, phase))
    given: Any = ("session", "cell", "phase")
    assert measure(given[0], of_its_own, given[1], given[2]) == given
