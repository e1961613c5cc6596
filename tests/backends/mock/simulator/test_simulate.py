"""The event path: times by hand, matching, causality, deadlocks and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.backends.mock.faults import RankDied, RankHangs
from omb_py.backends.mock.runner import MockRunner
from omb_py.backends.mock.session import MockSession
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import (
    Body,
    Buffer,
    Host,
    Lap,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Result,
    Stage,
    Stamp,
    Step,
    body,
)
from omb_py.engine.session import StepFailed
from omb_py.errors import UsageError
from omb_py.options.table import make_cell
from omb_py.suites import find
from tests.support import served
from tests.support.machines.simulated import cell, checked, with_step

MACHINE = "alpha=1us,beta=1ns"
A8, R0, R1 = Region("a", 0, 8), RequestSlot(0), RequestSlot(1)


def load(programs: Mapping[int, Program], text: str = MACHINE, seed: int = 1, size: int = 8) -> MockRunner:
    """A runner of hand-written programs, entered."""
    session = MockSession({"ranks": len(programs), "settings": text, "seed": seed})
    runner = session.load(make_cell("hand", "mock", "native", size), programs)
    runner.enter(0, {})
    return runner


def bodies(*nodes: Body, nbytes: int = 1 << 20) -> dict[int, Program]:
    """Programs of one stage with one buffer ``a``; one body a rank."""
    return {r: Program((Buffer("a", nbytes),), (Stage(body(*each)),)) for r, each in enumerate(nodes)}


def benchmark(name: str, ranks: int, size: int, text: str = MACHINE, **cell: Any) -> MockRunner:
    """A runner of one of the suite's benchmarks, entered."""
    found = find(name)
    what = make_cell(name, "mock", "native", size, dtype=found.dtype, **cell)
    session = MockSession({"ranks": ranks, "settings": text, "seed": 1})
    runner = session.load(what, {r: found.program(World(r, ranks), what) for r in range(ranks)})
    runner.enter(0, {})
    return runner


def laps(runner: MockRunner, rank: int = 0, iterations: int = 1, first: int = 0) -> Any:
    return runner.run(0, first, iterations)[rank].tolist()


# -- times by hand ---------------------------------------------------------------------------------------------


def test_latency_is_two_messages_a_round_trip() -> None:
    assert laps(benchmark("latency", 2, 8), 0, 3) == [[2016]] * 3  # 2 x (1000 + 8 x 1)


def test_times_are_rounded_to_whole_nanoseconds_an_operation() -> None:
    assert laps(benchmark("latency", 2, 8, "alpha=1us,beta=0.1ns")) == [[2002]]  # 2 x round(1000.8)


def test_bandwidth_is_a_window_on_the_wire_and_a_reply() -> None:
    # 4 x 100 B leave one after the other; the last arrives alpha later; then the reply of one byte
    assert laps(benchmark("bw", 2, 100, window=4), 0, 2) == [[400 + 1000 + 1001]] * 2


def test_an_eager_send_does_not_wait_for_its_receive() -> None:
    sender = (Lap(), steps.send(A8, 1, "char"), Lap("time"))
    late = (steps.compute(5000), Lap(), steps.recv(A8, 0, "char"), Lap("time"))
    out = load(bodies(sender, late)).run(0, 0, 1)
    assert (out[0].tolist(), out[1].tolist()) == ([[8]], [[0]])  # the message lay there already


def test_a_long_send_waits_for_its_receive() -> None:
    sender = (Lap(), steps.send(A8, 1, "char"), Lap("time"))
    late = (steps.compute(5000), Lap(), steps.recv(A8, 0, "char"), Lap("time"))
    out = load(bodies(sender, late), f"{MACHINE},eager=7").run(0, 0, 1)
    assert (out[0].tolist(), out[1].tolist()) == ([[5008]], [[1008]])


def test_overlap_with_computation() -> None:
    def rank(ns: int) -> Body:
        call = steps.nonblocking(steps.allreduce(A8, A8, "int32", "sum"), R0)
        return (Lap(), call, Lap("init"), steps.compute(ns), Lap("compute"), steps.wait(R0), Lap("wait"))

    runner = load(bodies(rank(400), rank(400)), MACHINE)
    assert laps(runner) == [[0, 400, 608]]  # 1 x (1000 + 8) in all
    runner = load(bodies(rank(4000), rank(4000)), MACHINE)
    assert laps(runner) == [[0, 4000, 0]]


def test_a_test_completes_what_has_arrived_and_nothing_else() -> None:
    sender = (steps.send(A8, 1, "char"), steps.compute(9000))
    receiver = (
        Lap(),
        steps.irecv(A8, 0, "char", R0),
        steps.compute(1000),
        steps.test(R0),
        Lap("early"),
        steps.wait(R0),
        Lap("wait"),
        steps.irecv(A8, 0, "char", R0),
        steps.compute(10_000),
        steps.test(R0),
        steps.wait(R0),
        Lap("late"),
    )
    programs = bodies((*sender, *sender), receiver)
    assert laps(load(programs), 1) == [[1000, 8, 10_000]]


def test_a_slot_is_free_after_a_successful_test_only() -> None:
    def receiver(ns: int) -> Body:
        again = steps.irecv(A8, 0, "char", R0, tag=2)
        return (steps.irecv(A8, 0, "char", R0), steps.compute(ns), steps.test(R0), again, steps.wait(R0))

    sender = (steps.send(A8, 1, "char"), steps.send(A8, 1, "char", tag=2))
    load(bodies(sender, receiver(1008))).run(0, 0, 1)
    with pytest.raises(StepFailed, match="rank 1: request 0 is still in use"):
        load(bodies(sender, receiver(1007))).run(0, 0, 1)


def test_the_root_of_a_broadcast_does_not_wait_for_the_others() -> None:
    def rank(ns: int) -> Body:
        return (steps.compute(ns), Lap(), steps.bcast(A8, 0, "char"), Lap("time"))

    out = load(bodies(rank(5000), rank(0), rank(20_000), rank(5000)), MACHINE).run(0, 0, 1)
    assert [out[r].item() for r in range(4)] == [2016, 7016, 2016, 2016]


def test_a_synchronising_collective_waits_for_the_last() -> None:
    def rank(ns: int) -> Body:
        return (steps.compute(ns), Lap(), steps.allreduce(A8, A8, "int32", "sum"), Lap("time"))

    out = load(bodies(rank(0), rank(500))).run(0, 0, 1)
    assert [out[r].item() for r in range(2)] == [1508, 1008]


def test_laps_add_up_in_a_repeat_and_variants_take_turns() -> None:
    first = (Lap(), Repeat(3, (steps.compute(100), Lap("a"), steps.compute(10), Lap("b"))))
    second = (Lap(), steps.compute(7), Lap("b"))
    program = Program((), (Stage((first, second)),))
    assert laps(load({0: program}), 0, 3, first=1) == [[0, 7], [300, 30], [0, 7]]


def test_clocks_go_on_between_runs_and_a_session_barrier_aligns_them() -> None:
    runner = load(bodies((steps.compute(10), Stamp("at")), (steps.compute(30), Stamp("at"))))
    assert {r: o.item() for r, o in runner.run(0, 0, 1).items()} == {0: 10, 1: 30}
    runner._session.barrier()
    assert {r: o.item() for r, o in runner.run(0, 1, 1).items()} == {0: 40, 1: 60}


def test_later_stages_use_what_earlier_ones_measured() -> None:
    ran: list[Any] = []
    program = Program(
        (),
        (
            Stage(body(Lap(), steps.compute(250), Lap("time")), name="pure"),
            Stage(
                body(Lap(), steps.compute(Result("pure", "time")), Lap("time")),
                setup=(Host("note", ran.append), steps.compute(5)),
                teardown=(Host("note", ran.append), Lap("ignored")),
            ),
        ),
    )
    runner = load({0: program, 1: program}, MACHINE)
    assert laps(runner) == [[250]]
    runner.leave(0)
    runner.enter(1, {("pure", "time"): 250.9})
    assert runner.run(1, 0, 2)[1].tolist() == [[250]] * 2
    runner.leave(1)
    assert ran == [runner._session] * 4
    runner.close()


def test_messages_overtake_only_with_another_tag() -> None:
    a, b = Region("a", 0, 8), Region("a", 8, 8)
    sender = (steps.send(a, 1, "char", tag=1), steps.send(b, 1, "char", tag=2))
    receiver = (steps.recv(a, 0, "char", tag=2), steps.recv(b, 0, "char", tag=1))
    runner = load(bodies(sender, receiver, nbytes=16))
    runner.memory(0, "a")[:] = range(16)
    runner.run(0, 0, 1)
    assert runner.memory(1, "a").tolist() == [*range(8, 16), *range(8)]


def test_an_eager_message_holds_what_was_sent() -> None:
    a, b = Region("a", 0, 1), Region("a", 1, 1)
    sender = (steps.send(a, 1, "char"), steps.flip(a), steps.send(a, 1, "char"))
    receiver = (steps.compute(10**6), steps.recv(a, 0, "char"), steps.recv(b, 0, "char"))
    runner = load(bodies(sender, receiver, nbytes=2))
    runner.memory(0, "a")[:] = 5
    runner.run(0, 0, 1)
    assert runner.memory(1, "a").tolist() == [5, 250]


def test_unmatched_messages_stay_for_the_next_run() -> None:
    turns = Stage(((steps.send(A8, 1, "char"),), ())), Stage(((), (steps.recv(A8, 0, "char"),)))
    programs = {r: Program((Buffer("a", 8),), (stage,)) for r, stage in enumerate(turns)}
    runner = load(programs)
    runner.memory(0, "a")[:] = 9
    runner.run(0, 0, 1)
    assert runner.memory(1, "a").tolist() == [0] * 8
    runner.run(0, 1, 1)
    assert runner.memory(1, "a").tolist() == [9] * 8


# -- series and stragglers -------------------------------------------------------------------------------------


def test_series_are_the_times_of_messages_by_iteration() -> None:
    runner = benchmark("latency", 2, 8, "series=10us/12us/14us")
    assert laps(runner, 0, 4) == [[20_000], [24_000], [28_000], [20_000]]
    assert laps(runner, 0, 1, first=2) == [[28_000]]


def test_the_timed_call_takes_the_series_and_the_closing_barrier_does_not() -> None:
    runner = benchmark("bcast", 2, 8, "series=10us,alpha=1us")
    assert laps(runner, 0, 2) == [[10_000], [10_000]]
    assert runner._session.clocks.tolist() == [22_000, 22_000]


def test_a_straggler_is_late_in_timed_collectives_only() -> None:
    runner = benchmark("allreduce", 4, 8, f"{MACHINE},straggler=2:2us")
    out = runner.run(0, 0, 5)
    assert [out[r][:, 0].tolist() for r in range(4)] == [[2016] * 5, [2016] * 5, [4016] * 5, [2016] * 5]


# -- ranks that are lost ---------------------------------------------------------------------------------------


def test_a_receive_that_never_comes_is_found_at_once() -> None:
    ping = (Lap(), steps.send(A8, 1, "char"), steps.recv(A8, 1, "char"), Lap("time"))
    lost = (steps.recv(A8, 0, "char"), steps.send(A8, 0, "char"), steps.recv(A8, 0, "char", tag=9))
    runner = load(bodies(ping, lost), f"{MACHINE},nodes=2")
    with pytest.raises(RankHangs) as caught:
        runner.run(0, 17, 10)
    words = "rank 1 (node1) hangs in step 2 (recv 8 B from 0), iteration 17 of hand 8 B; nothing can move"
    assert str(caught.value) == words
    assert (caught.value.rank, caught.value.step, caught.value.iteration) == (1, 2, 17)
    assert runner.position() == (17, 2)
    assert runner.doing(2) == "recv 8 B from 0"
    assert runner.doing(99) == ""


def test_long_sends_to_each_other_deadlock() -> None:
    each = [(steps.send(A8, peer, "char"), steps.recv(A8, peer, "char")) for peer in (1, 0)]
    load(bodies(*each)).run(0, 0, 3)
    with pytest.raises(RankHangs, match=r"rank 0 \(node0\) hangs in step 0 \(send 8 B to 1\), iteration 0 of hand 8 B"):
        load(bodies(*each), f"{MACHINE},eager=0").run(0, 0, 3)


def test_a_collective_that_one_rank_leaves_out() -> None:
    programs = bodies((steps.barrier(), steps.barrier()), (steps.barrier(),))
    with pytest.raises(RankHangs, match=r"rank 0 \(node0\) hangs in step 1 \(barrier\), iteration 0"):
        load(programs).run(0, 0, 1)


@pytest.mark.parametrize("name", ["allreduce", "bcast"])
def test_an_injected_hang(name: str) -> None:
    runner = benchmark(name, 4, 8, "hang=2:8:17,nodes=2")
    runner.run(0, 0, 17)
    with pytest.raises(RankHangs) as caught:
        runner.run(0, 10, 20)
    error = caught.value
    assert (error.rank, error.host, error.iteration, error.step) == (2, "node1", 17, 0)
    assert str(error).startswith(f"rank 2 (node1) hangs in step 0 ({name} ")


def test_an_injected_death() -> None:
    with pytest.raises(RankDied) as caught:
        benchmark("allreduce", 4, 8, "die=1").run(0, 3, 20)
    words = "rank 1 (node0) died in step 0 (allreduce 8 B int32 sum), iteration 3 of allreduce 8 B"
    assert str(caught.value) == words


# -- wrong programs --------------------------------------------------------------------------------------------


def test_truncation() -> None:
    programs = bodies((steps.send(Region("a", 0, 16), 1, "char"),), (steps.recv(A8, 0, "char"),))
    runner = load(programs)
    with pytest.raises(StepFailed, match="rank 1: message of 16 B truncated to 8 B") as caught:
        runner.run(0, 0, 1)
    assert runner.doing(caught.value.step) == "recv 8 B from 0"


def test_ranks_in_different_collectives() -> None:
    programs = bodies((steps.bcast(A8, 0, "char"),), (steps.allreduce(A8, A8, "int32", "sum"),))
    runner = load(programs)
    words = "rank 1 calls allreduce 8 B int32 sum where others call bcast 8 B from root 0"
    with pytest.raises(StepFailed, match=words) as caught:
        runner.run(0, 0, 1)
    assert runner.doing(caught.value.step) == "allreduce 8 B int32 sum"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (steps.send(A8, 2, "char"), "send: there is no rank 2 among 2"),
        (steps.bcast(A8, -1, "char"), "bcast: there is no rank -1 among 2"),
        (steps.recv(Region("a", 12, 8), 1, "char"), "recv: bytes 12 to 20 of a, which has 16"),
        (steps.flip(Region("b", 0, 8)), "flip: there is no buffer 'b'"),
        (steps.allgather(A8, A8, "char"), "allgather: room for 8 B where 16 B are received"),
        (steps.alltoall(Region("a", 0, 16), A8, "char"), "alltoall: room for 8 B where 16 B are received"),
    ],
)
def test_wrong_operands(step: Step, words: str) -> None:
    with pytest.raises(StepFailed, match=words):
        load(bodies((step,), (steps.barrier(),), nbytes=16))


def test_reductions_that_are_not_there() -> None:
    with pytest.raises(UsageError, match="unknown reduction 'summ': did you mean sum"):
        load(bodies((steps.allreduce(A8, A8, "int32", "summ"),)))
    with pytest.raises(UsageError, match="reduction bxor is not defined for float32"):
        load(bodies((steps.allreduce(A8, A8, "float32", "bxor"),)))


# -- properties ------------------------------------------------------------------------------------------------

COSTS = st.builds(
    "alpha={}ns,beta={}ns,noise={},spike={}:{},eager={},launch={}".format,
    st.integers(0, 3000),
    st.floats(0, 2).map(lambda x: round(x, 3)),
    st.sampled_from([0, 0.05, 0.5]),
    st.sampled_from([0, 0.2]),
    st.sampled_from([0, 10]),
    st.sampled_from([0, 16, 1 << 20]),
    st.sampled_from([0, 0.2]),
)
Sent: TypeAlias = tuple[int, int, int, int, int]
MESSAGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 64), st.integers(1, 2), st.integers(0, 2000)),
    min_size=1,
    max_size=12,
)


def traffic(messages: list[Sent], ranks: int = 4) -> dict[int, Program]:
    """Every rank posts its receives and sends of (source, destination, bytes, tag, compute first), then waits."""
    nodes: list[list[Any]] = [[Lap()] for _ in range(ranks)]
    used = [0] * ranks
    for source, destination, nbytes, tag, ns in messages:
        for rank in (destination, source):
            nodes[rank].append(steps.compute(ns))
        nodes[destination].append(
            steps.irecv(Region("a", 0, nbytes), source, "char", RequestSlot(used[destination]), tag)
        )
        used[destination] += 1
        nodes[source].append(steps.isend(Region("a", 0, nbytes), destination, "char", RequestSlot(used[source]), tag))
        used[source] += 1
    for rank in range(ranks):
        nodes[rank] += [steps.waitall(Requests(0, used[rank])), Lap("time")]
    return bodies(*(tuple(each) for each in nodes))


def play(text: str, messages: list[Sent]) -> tuple[list[tuple[int, int]], dict[int, Any]]:
    """Start of the send and end of the receive of each message, and the laps of each rank."""
    runner = load(traffic(messages), text)
    pair, log = runner.events._pair, []

    def noted(source: int, destination: int, message: Any, posted: Any) -> None:
        pair(source, destination, message, posted)
        log.append((message.sent, posted.handle.done))

    runner.events._pair = noted
    out = runner.run(0, 0, 3)
    return log, {rank: laps.tolist() for rank, laps in out.items()}


@pytest.mark.slow
@settings(max_examples=60)
@given(text=COSTS, messages=MESSAGES)
def test_no_receive_completes_before_its_send_started(text: str, messages: list[Sent]) -> None:
    log, out = play(text, messages)
    assert len(log) == 3 * len(messages)
    assert all(sent <= received for sent, received in log)
    assert all(lap[0] >= 0 for each in out.values() for lap in each)


def test_other_seeds_give_other_times() -> None:
    found = find("latency")
    cell = make_cell("latency", "mock", "native", 8)
    times = set()
    for seed, launch in ((1, 0), (1, 1), (2, 0)):
        session = MockSession({"ranks": 2, "settings": "noise=0.1", "seed": seed, "launch_index": launch})
        runner = session.load(cell, {r: found.program(World(r, 2), cell) for r in range(2)})
        times.add(tuple(runner.run(0, 0, 5)[0][:, 0].tolist()))
    assert len(times) == 3


def test_a_server_answers_whoever_comes_first() -> None:
    """Rank 1 waits for the answer of rank 2: in the order of the ranks it would be a deadlock."""
    kind = served.benchmark()
    assert checked(kind, 3, cell("pingpong_any_source", served.SIZE)) == 0
    flipped = with_step(kind, 0, steps.flip(Region("received", 0, served.SIZE)))
    assert checked(flipped, 3, cell("pingpong_any_source", served.SIZE)) > 0


def test_of_several_that_wait_the_one_that_sent_first_is_taken() -> None:
    """Workers send after 3, 1 and 2 µs, the server comes after 9."""
    here = Region("a", 0, 8)

    def worker(us: int) -> Body:
        return (
            steps.compute(us * 1000),
            steps.send(here, 0, "char", 1),
            steps.recv(here, 0, "char", 2),
            Stamp("answered"),
        )

    workers, waiting = (1, 2, 3), [steps.compute(9000)]
    for _ in workers:
        waiting += [steps.recv_next(here, workers, "char", 1), steps.answer(here, workers, "char", 2)]
    runner = load(bodies((*waiting, Stamp("answered")), worker(3), worker(1), worker(2)))
    samples = runner.run(0, 0, 1)
    answered = {rank: int(samples[rank][0, 0]) for rank in workers}
    assert sorted(workers, key=answered.__getitem__) == [2, 3, 1]
