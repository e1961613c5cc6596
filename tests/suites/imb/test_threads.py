"""IMB-MT: a benchmark in all threads of each rank, each with memory, requests and a communicator of its own."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import duplicate_of, duplicates_of
from omb_py.engine.program.language import Region, Requests, RequestSlot, Stage, Step, walk
from omb_py.suites.imb.threads import BENCHMARKS, IN_THREADS
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell

NAMES = [each.name for each in BENCHMARKS]
MOVING = [name for name in NAMES if name != "barrier_mt"]


def stage_of(name: str, threads: int, rank: int = 0, ranks: int = 2) -> Stage:
    what = cell(name, 24, thread_counts=f"1:{threads}")
    (stage,) = find(name).program(World(rank, ranks), what).stages
    return stage


def steps_of(name: str, threads: int) -> list[list[Step]]:
    return [[node for node, _ in walk(body) if isinstance(node, Step)] for body in stage_of(name, threads).variants]


@pytest.mark.parametrize("name", NAMES)
def test_every_thread_does_what_the_benchmark_does_alone(name: str) -> None:
    alone = find(IN_THREADS[name])
    (stage,) = alone.program(World(0, 2), cell(alone.name, 24)).stages
    wanted = [node.op for node, _ in walk(stage.variants[0]) if isinstance(node, Step)]
    assert [[step.op for step in own] for own in steps_of(name, 3)] == [wanted] * 3
    assert stage_of(name, 3).threads == 3


@pytest.mark.parametrize("name", NAMES)
def test_threads_share_no_byte_request_or_communicator(name: str) -> None:
    used: list[set[tuple[str, int]]] = []
    for thread, own in enumerate(steps_of(name, 3)):
        assert {duplicate_of(step) for step in own} == {thread + 1}
        mine: set[tuple[str, int]] = set()
        for operand in (operand for step in own for operand in step.operands.values()):
            match operand:
                case Region(buffer, offset, nbytes):
                    mine |= {(buffer, byte) for byte in range(offset, offset + nbytes)}
                case RequestSlot(index):
                    mine.add(("request", index))
                case Requests(first, count):
                    mine |= {("request", number) for number in range(first, first + count)}
        used.append(mine)
    assert sum(map(len, used)) == len(set().union(*used))


def test_duplicates_are_made_in_one_order_on_all_ranks() -> None:
    what = cell("allreduce_mt", 24, thread_counts="1:2", groups="2x2")
    programs = [find("allreduce_mt").program(World(rank, 4), what) for rank in range(4)]
    own = [duplicates_of(program) for program in programs[1:3]]
    assert own == [[((0, 1), 1), ((0, 1), 2)], [((2, 3), 1), ((2, 3), 2)]]


def test_a_thread_that_gets_another_threads_bytes_is_wrong() -> None:
    """In the timed loop every iteration has the same payload, so the thread is a part of it."""
    from omb_py.engine.measuring.payload import expectations

    bodies = stage_of("bcast_mt", 2).variants
    first, second = (expectations(body, World(1, 2), -1)[1][0][1]() for body in bodies)
    assert (first != second).any()


def test_roots_that_rotate_do_so_in_each_thread() -> None:
    what = cell("bcast_mt", 24, thread_counts="1:2", root=-1, warmup=0)
    (stage,) = find("bcast_mt").program(World(0, 3), what).stages
    calls = [next(node for node in body if isinstance(node, Step)) for body in stage.variants]
    assert [(step["root"], duplicate_of(step)) for step in calls] == [(r, t) for r in range(3) for t in (1, 2)]


def test_a_rate_is_that_of_all_threads() -> None:
    """A window of 4 messages of 1000 B in 10 µs is 400 MB/s in one thread, and 800 in two at once."""
    metric = find("uniband_mt").metric
    assert metric.bytes_of
    both, one = (metric.bytes_of(cell("uniband_mt", 1000, thread_counts=f"1:{n}"), 2) for n in (2, 1))
    assert (both, one) == (8000, 4000)
