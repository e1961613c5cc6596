"""One-sided benchmarks among several ranks: epochs, places in the windows, the printed numbers."""

from __future__ import annotations

from omb_py.engine.program import rma
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Region, Repeat, Stage, Step
from omb_py.engine.program.steps import barrier
from omb_py.suites.imb.windows import BENCHMARKS, passive_columns
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, measured

NAMES = [each.name for each in BENCHMARKS]


def stage_of(name: str, rank: int, ranks: int, **more: object) -> Stage:
    return find(name).program(World(rank, ranks), cell(name, **more)).stages[0]


def put(target: int, mine: int, place: int) -> Step:
    return rma.put(Region("send", 8 * mine, 8), Region("window", 8 * place, 8), target, "char")


def test_rank_0_writes_to_all_before_one_flush_under_a_lock_that_is_taken_once() -> None:
    stage = stage_of("one_put_all", 0, 3, window=1)
    assert stage.variants[0] == (Lap(), Repeat(1, (put(1, 1, 0), put(2, 2, 0))), rma.win_flush_all(), Lap("time"))
    assert (stage.setup, stage.teardown) == ((rma.win_lock_all(),), (rma.win_unlock_all(),))
    assert stage_of("one_put_all", 1, 3).setup == ()


def test_every_rank_begins_with_the_next_one() -> None:
    (_, repeat, *_) = stage_of("all_put_all", 1, 4).variants[0]
    assert isinstance(repeat, Repeat)
    assert repeat.body == (put(2, 2, 1), put(3, 3, 1), put(0, 0, 1))


def test_a_local_flush_is_followed_by_a_whole_one_where_data_is_checked() -> None:
    steps = [node for node in stage_of("put_all_local", 0, 3, distinct=True).variants[0] if isinstance(node, Step)]
    assert steps == [rma.win_flush_local_all(), rma.win_flush_all(), barrier()]


def test_neighbors_are_locked_and_flushed_once_each() -> None:
    stage = stage_of("exchange_put", 0, 4, window=1)
    calls = Repeat(1, (put(3, 0, 0), put(1, 1, 1)))
    assert stage.variants[0][:5] == (Lap(), calls, rma.win_flush(3), rma.win_flush(1), Lap("time"))
    assert stage.setup == (rma.win_lock(3), rma.win_lock(1))
    assert stage_of("exchange_put", 0, 2).setup == (rma.win_lock(1),)


def test_a_put_to_a_target_that_computes_as_long_as_it_waited_takes_twice_as_long_with_a_barrier() -> None:
    done = measured("passive_put", 2, "alpha=10us,beta=0ns", window=1)
    pure, busy = done.laps["pure.time"][0], done.laps["busy.time"][0]
    assert (pure, busy) == (20, 30)
    assert passive_columns(done.laps) == {"pure": 20, "overall": 30}
