"""The one-sided programs, written out as C OMB's loops (reference section 1.4); values and text on the simulation."""

from __future__ import annotations

import pytest

from omb_py.engine.measuring.measure import measure
from omb_py.engine.measuring.payload import expectations
from omb_py.engine.program import rma
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Body, Buffer, Lap, Program, Region, Repeat, RequestSlot, Step, Window
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.engine.program.steps import flip, wait
from omb_py.errors import EnvironmentProblem
from omb_py.suites.one_sided import BENCHMARKS
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, checked, measured, session, with_step

NAMES = [b.name for b in BENCHMARKS]
OUT, IN, PLACE = Region("send", 0, 16), Region("recv", 0, 16), Region("window", 0, 16)
PUT = [rma.put(OUT, PLACE, target, "char") for target in (0, 1)]


def program(name: str, rank: int, **more: object) -> Program:
    return find(name).program(World(rank, 2), cell(name, 16, **more))


def body_of(name: str, rank: int, **more: object) -> Body:
    (stage,) = program(name, rank, **more).stages
    (body,) = stage.variants
    return body


def admits(name: str, sync: str) -> bool:
    refuses = find(name).refuses
    return not (refuses and refuses(cell(name, sync=sync)))


class TestPassive:
    """Rank 0 alone works; a lap holds the operation and its synchronisation."""

    @pytest.mark.parametrize(("sync", "ends"), [("flush", rma.win_flush(1)), ("flush_local", rma.win_flush_local(1))])
    def test_the_lock_of_a_flush_stands_outside_the_iterations(self, sync: str, ends: object) -> None:
        (stage,) = program("put_latency", 0, sync=sync).stages
        assert (stage.setup, stage.teardown) == ((rma.win_lock(1),), (rma.win_unlock(1),))
        assert stage.variants == ((Lap("clock"), PUT[1], ends, Lap("time")),)

    def test_lock_and_lock_all_are_taken_in_every_iteration(self) -> None:
        assert body_of("put_latency", 0, sync="lock")[1:-1] == (rma.win_lock(1), PUT[1], rma.win_unlock(1))
        assert body_of("put_latency", 0, sync="lock_all")[1:-1] == (rma.win_lock_all(), PUT[1], rma.win_unlock_all())

    @pytest.mark.parametrize("name", NAMES)
    def test_the_target_calls_nothing(self, name: str) -> None:
        if admits(name, "lock"):
            steps = [node.body[0] if isinstance(node, Repeat) else node for node in body_of(name, 1, sync="lock")]
            assert [step.op for step in steps] == [rma.EXPOSED]  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        ("name", "sync", "exclusive"),
        [
            ("put_latency", "lock", False),
            ("acc_latency", "lock", False),
            ("fop_latency", "flush", False),
            ("fop_latency", "lock", True),
            ("cas_latency", "lock", True),
            ("get_acc_latency", "flush", True),
        ],
    )
    def test_locks_are_shared_or_exclusive_as_in_omb(self, name: str, sync: str, exclusive: bool) -> None:
        (stage,) = program(name, 0, sync=sync).stages
        assert rma.win_lock(1, exclusive) in (*stage.setup, *stage.variants[0])


class TestReductions:
    """OMB sends MPI_CHAR as it is, and opens a window of its largest message for one element."""

    @pytest.mark.parametrize("name", ["acc_latency", "get_acc_latency", "fop_latency", "cas_latency"])
    def test_a_char_is_sent_as_a_char_and_stored_so(self, name: str) -> None:
        (call,) = (
            node for node in body_of(name, 0, sync="flush") if isinstance(node, Step) and "dtype" in node.operands
        )
        assert (call["dtype"], find(name).sent_dtype("char")) == ("char", "char")
        assert find("allreduce").sent_dtype("char") == "int8"

    @pytest.mark.parametrize(
        ("name", "opened"), [("acc_latency", 16), ("fop_latency", 1 << 22), ("cas_latency", 1 << 22)]
    )
    def test_the_window_is_as_large_as_omb_s(self, name: str, opened: int) -> None:
        sizes = {buffer.name: buffer.nbytes for buffer in program(name, 1).buffers}
        assert sizes.pop("window") == opened and set(sizes.values()) == {16 if name == "acc_latency" else 1}


class TestActive:
    """Both ranks act in turn."""

    def test_three_fences_an_iteration(self) -> None:
        fence, calls = rma.win_fence(), [rma.exposed(PUT[1], 0), rma.exposed(PUT[0], 1)]
        assert body_of("put_latency", 0, sync="fence")[1:-1] == (fence, PUT[1], fence, calls[1], fence)
        assert body_of("put_latency", 1, sync="fence") == (fence, calls[0], fence, PUT[0], fence)

    def test_post_start_complete_wait(self) -> None:
        assert body_of("put_latency", 0, sync="pscw")[1:-1] == (
            rma.win_start(1),
            PUT[1],
            rma.win_complete(1),
            rma.win_post(1),
            rma.exposed(PUT[0], 1),
            rma.win_wait(1),
        )
        assert body_of("put_latency", 1, sync="pscw") == (
            rma.win_post(0),
            rma.exposed(PUT[1], 0),
            rma.win_wait(0),
            rma.win_start(0),
            PUT[0],
            rma.win_complete(0),
        )


class TestBandwidth:
    def test_a_window_goes_to_as_many_places_with_one_synchronisation(self) -> None:
        out, place = Region("send", 0, 16, 16), Region("window", 0, 16, 16)
        made = program("put_bw", 0, window=64)
        assert made.stages[0].variants[0][1:-1] == (Repeat(64, (rma.put(out, place, 1, "char"),)), rma.win_flush(1))
        assert {b.name: b.nbytes for b in made.buffers} == {"send": 1024, "window": 1024}

    @pytest.mark.parametrize("rank", [0, 1])
    def test_both_directions_at_once(self, rank: int) -> None:
        peer = 1 - rank
        work = [step for step in body_of("put_bibw", rank, window=2) if not isinstance(step, Lap)]
        assert [work[0], work[1], *work[-2:]] == [
            rma.win_post(peer),
            rma.win_start(peer),
            rma.win_complete(peer),
            rma.win_wait(peer),
        ]
        assert [node.body[0].op for node in work if isinstance(node, Repeat)] == ["put", rma.EXPOSED]  # type: ignore[union-attr]


def test_with_a_request_the_operation_is_waited_on_before_it_is_synchronised() -> None:
    call = rma.with_request(PUT[1], RequestSlot(0))
    assert call.op == "rput"
    assert body_of("rput_latency", 0)[1:-1] == (call, wait(RequestSlot(0)), rma.win_flush(1))
    assert [sync for sync in SYNCS if admits("rget_latency", sync)] == ["flush", "flush_local", "lock", "lock_all"]


@pytest.mark.parametrize("kind", WINDOWS)
def test_the_library_allocates_what_it_is_asked_to(kind: str) -> None:
    made = program("get_latency", 0, window_kind=kind)
    assert made.window == Window(kind, "window")
    assert made.buffers == (Buffer("recv", 16), Buffer("window", 16, kind in ("allocate", "shared")))


class TestValues:
    """``series=3us/5us``: every operation and message takes these times in turn; alpha is 1 us, a barrier one alpha."""

    @pytest.mark.parametrize(
        ("name", "sync", "samples"),
        [
            ("put_latency", "flush", [3, 5, 3, 5]),
            ("get_latency", "lock", [3, 5, 3, 5]),
            ("fop_latency", "lock_all", [3, 5, 3, 5]),
            ("rget_latency", "flush_local", [3, 5, 3, 5]),
        ],
    )
    def test_passive_is_the_whole_operation(self, name: str, sync: str, samples: list[float]) -> None:
        done = measured(name, 2, "series=3us/5us", sync=sync, iterations=4)
        assert done.series["time"]["max"].tolist() == samples
        assert done.laps["time"] == [4.0]

    def test_active_is_half_an_iteration(self) -> None:
        plain = measured("put_latency", 2, "alpha=1us,beta=0ns", sync="fence", iterations=4)
        # three fences and an operation of each rank: 5 us an iteration
        assert plain.series["time"]["max"].tolist() == [2.5] * 4

    def test_a_window_of_bytes_over_its_time(self) -> None:
        done = measured("put_bw", 2, "series=2us", size=1000, window=64, iterations=3)
        assert done.bytes_moved == 64_000 and done.laps["time"] == [2.0]
        assert measured("put_bibw", 2, size=1000, window=64, iterations=3).bytes_moved == 128_000

    def test_the_cost_of_the_window_is_noted(self) -> None:
        assert measured("put_latency", 2).extra["win_create_us"] > 0
        assert "win_create_us" not in measured("latency", 2).extra

    @pytest.mark.parametrize("name", ["put_bw", "get_bw"])
    def test_in_any_place_of_a_window(self, name: str) -> None:
        rank, buffer = (1, "window") if name == "put_bw" else (0, "recv")
        for k in range(4):
            wrong = with_step(find(name), rank, flip(Region(buffer, 24 * k + 5, 1), iteration=k))
            assert checked(wrong, 2, cell(name, 24, window=4)) == 1

    def test_the_loop_that_is_timed_is_checked_too(self) -> None:
        late = with_step(find("get_latency"), 0, flip(Region("recv", 3, 1), iteration=14))
        what = cell("get_latency", 24, iterations=15, validate=True)
        assert (checked(late, 2, what), measure(session(2), late, what).wrong_bytes) == (0, 1)

    def test_a_compare_and_swap_swaps_in_every_other_iteration(self) -> None:
        for iteration in range(4):
            what = expectations(body_of("cas_latency", 1), World(1, 2), iteration)
            ((held, before),), ((there, after),) = what
            assert held == there == Region("window", 0, 1)
            assert (before().tolist() != after().tolist()) is (iteration % 2 == 0)


def test_ranks_of_two_nodes_share_no_window() -> None:
    with pytest.raises(EnvironmentProblem, match=r"-w shared needs all ranks on one node.*use -w allocate"):
        measured("put_latency", 2, "nodes=2", window_kind="shared")
