"""Blocking, overlapping and persistent loops around a collective's call, and OMB's overlap formula."""

from __future__ import annotations

from typing import ClassVar

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Buffer, Lap, Region, RequestSlot, Result, Stage, body
from omb_py.suites.collective.calls import COLLECTIVES
from omb_py.suites.collective.forms import ROTATE, overlap_columns
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured

CALL = steps.allreduce(Region("send", 0, 16), Region("recv", 0, 16), "int32", "sum")
BUFFERS = (Buffer("send", 16), Buffer("recv", 16))
R = RequestSlot(0)
BARRIER = steps.barrier()


def stages(name: str, **more: object) -> tuple[Stage, ...]:
    program = BENCHMARKS[name].program(World(0, 3), cell(name, 16, **more))
    assert program.buffers == BUFFERS
    return program.stages


def test_every_collective_has_three_forms() -> None:
    for what in COLLECTIVES:
        forms = [BENCHMARKS[name] for name in (what.name, f"i{what.name}", f"{what.name}_persistent")]
        assert [b.family for b in forms] == ["collective", "non-blocking", "persistent"]
        assert {(b.sizes, b.counts, b.timed, b.dtype, b.bandwidth) for b in forms} == {
            (what.sizes, forms[0].counts, "all", what.dtype, what.bandwidth)
        }
        assert [b.options - what.options for b in forms] == [
            forms[0].options - what.options,
            (forms[0].options | {"tests"}) - what.options,
            forms[0].options - what.options,
        ]


def test_the_call_is_timed_and_a_barrier_follows_outside_the_timer() -> None:
    assert stages("allreduce") == (Stage(body(Lap(), CALL, Lap("time"), BARRIER)),)


def test_barriers_stand_back_to_back_where_omb_s_do() -> None:
    """In OMB's sources the loops of barrier, barrier_persistent and the pure one of ibarrier have no other barrier."""
    start, wait = steps.nonblocking(BARRIER, R), steps.wait(R)
    bodies = {
        name: [stage.variants for stage in BENCHMARKS[name].program(World(0, 3), cell(name, 0)).stages]
        for name in ("barrier", "barrier_persistent", "ibarrier")
    }
    assert bodies["barrier"] == [body(Lap(), BARRIER, Lap("time"))]
    assert bodies["barrier_persistent"] == [body(Lap(), steps.start(R), wait, Lap("time"))]
    assert bodies["ibarrier"][0] == body(Lap(), start, wait, Lap("time"))
    assert bodies["ibarrier"][1][0][-2:] == (Lap("wait"), BARRIER)


def test_without_synchronisation_there_is_no_barrier() -> None:
    assert stages("allreduce", process_sync="none") == (Stage(body(Lap(), CALL, Lap("time"))),)


def test_a_persistent_one_is_made_before_and_freed_after() -> None:
    made = Stage(
        body(Lap(), steps.start(R), steps.wait(R), Lap("time"), BARRIER),
        setup=(steps.persistent(CALL, R),),
        teardown=(steps.free(R),),
    )
    assert stages("allreduce_persistent") == (made,)


def test_overlap_computes_as_long_as_the_pure_call_took() -> None:
    start, wait = steps.nonblocking(CALL, R), steps.wait(R)
    busy = steps.compute(Result("pure", "time"))
    assert stages("iallreduce") == (
        Stage(body(Lap(), start, wait, Lap("time"), BARRIER), "pure"),
        Stage(body(Lap(), start, Lap("init"), busy, Lap("compute"), wait, Lap("wait"), BARRIER), "overlap"),
    )


def test_test_calls_stand_between_equal_parts_of_the_computing() -> None:
    (variant,) = stages("iallreduce", tests=3)[1].variants
    part = (steps.compute(Result("pure", "time", 3)), Lap("compute"), steps.test(R), Lap("test"))
    assert variant[3:-3] == part * 3


@pytest.mark.parametrize("name", ["gather", "igather", "gather_persistent"])
def test_a_rotating_root_is_a_variant_for_each_rank(name: str) -> None:
    program = BENCHMARKS[name].program(World(1, 3), cell(name, 16, root=ROTATE))
    stage = program.stages[-1]
    assert len(stage.variants) == 3
    assert {b.name: b.nbytes for b in program.buffers} == {"send": 16, "recv": 48}
    if name == "gather":
        assert [node["root"] for variant in stage.variants for node in variant[1:2]] == [0, 1, 2]  # type: ignore[index]
    if name == "gather_persistent":
        assert [step["request"].index for step in stage.setup] == [0, 1, 2]  # type: ignore[index]


@pytest.mark.parametrize(("warmup", "roots"), [(0, [0, 1, 2, 0]), (2, [2, 0, 1, 2]), (3, [0, 1, 2, 0])])
def test_roots_go_on_from_the_warm_ups(warmup: int, roots: list[int]) -> None:
    """OMB's root is the number of the iteration, warm-ups counted, modulo the ranks."""
    what = cell("gather", 16, root=ROTATE, warmup=warmup)
    (stage,) = BENCHMARKS["gather"].program(World(1, 3), what).stages
    assert [stage.variants[number % 3][1]["root"] for number in range(4)] == roots  # type: ignore[index]
    assert stage.variants[-warmup % 3][1]["root"] == 0  # type: ignore[index]


class TestColumns:
    """OMB's formula (reference sections 1.3 and 9.7) worked out by hand."""

    LAPS: ClassVar = {
        "pure.time": [40.0, 60.0],
        "overlap.init": [1.0, 3.0],
        "overlap.compute": [50.0, 50.0],
        "overlap.test": [4.0, 4.0],
        "overlap.wait": [10.0, 20.0],
    }

    def test_terms_are_means_over_ranks(self) -> None:
        out = overlap_columns(self.LAPS)
        assert out["overall"] == 2 + 50 + 4 + 15 == out["init"] + out["compute"] + out["test"] + out["wait"]
        assert (out["pure"], out["min_comm"], out["max_comm"]) == (50, 40, 60)
        assert out["overlap_pct"] == pytest.approx(100 - (71 - 50) / 50 * 100)

    def test_it_is_never_negative(self) -> None:
        assert overlap_columns({**self.LAPS, "overlap.wait": [500.0, 500.0]})["overlap_pct"] == 0

    def test_without_test_calls_they_take_no_time(self) -> None:
        laps = {name: times for name, times in self.LAPS.items() if name != "overlap.test"}
        assert overlap_columns(laps)["test"] == 0

    def test_of_a_known_series(self) -> None:
        """On mock a call takes its time in the background: all of it but the wait is hidden."""
        done = measured("iallreduce", 2, "series=10us", iterations=4)
        assert done.laps["pure.time"] == [10, 10]
        assert done.laps["overlap.compute"] == [10, 10]
        assert done.laps["overlap.wait"] == [0, 0]
        assert done.laps["overall"] == [10, 10]
        assert overlap_columns(done.laps)["overlap_pct"] == 100
        assert done.series["overall"]["max"].tolist() == [10] * 4
