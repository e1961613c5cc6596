"""Predicted step times, to exact values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from omb_py.engine.program.language import Message
from omb_py.orchestrate.workloads.step_times import predict_step, timeline
from omb_py.results.analysis.step_prediction import MESSAGES, Ask, Curves
from omb_py.results.store.schema import blank_row

SIZES = tuple(1 << k for k in range(2, 21))
SIDE = {"backend": "mpi", "binding": "native", "library": "MPICH", "device": "cpu", "buffer": "numpy", "nodes": 1}


def sweep(
    benchmark: str,
    ranks: int,
    time: Callable[[int], float],
    sizes: Iterable[int] = SIZES,
    launches: int = 2,
    **more: Any,
) -> list[dict[str, Any]]:
    rows = []
    for launch, size in itertools.product(range(launches), sizes):
        row = (
            blank_row()
            | SIDE
            | {
                "benchmark": benchmark,
                "ranks": ranks,
                "size_bytes": size,
                "metric": "latency",
                "unit": "us",
                "source": "omb-py",
                "statistic": "median",
                "launch_id": f"{benchmark}{ranks}-{launch}",
                "started_at": "2026-10-01T12:00:00",
                "time_us": time(size),
                "dtype": "float32",
                "cache": "hot",
                "datatype_layout": "contiguous",
                "in_place": False,
            }
            | more
        )
        rows.append(row)
    return rows


def line(alpha: float, beta: float) -> Callable[[int], float]:
    return lambda size: alpha + beta * size


def curves(rows: list[dict[str, Any]], ranks: int = 4) -> Curves:
    return Curves(rows, SIDE | {"ranks": ranks})


def flat(cost: float) -> Callable[[Ask, int, int], float]:
    return lambda ask, size, ranks: cost


def test_calls_of_all_ranks_add_up() -> None:
    rows = sweep("allreduce", 4, line(3, 1e-3)) + sweep("bcast", 4, line(1, 2e-3))
    asks = [Ask("buckets", "allreduce", 1000, "float32")] * 2 + [Ask("start", "bcast", 5000)]
    found = predict_step([asks] * 4, curves(rows))
    assert found.rows == {"buckets": pytest.approx(2 * (3 + 1), rel=1e-3), "start": pytest.approx(1 + 10, rel=1e-3)}
    assert found.serial_us == pytest.approx(19, rel=1e-3) and found.missing == () and found.ranks_scaled == ()


def test_in_pieces() -> None:
    """Where a library changes its protocol the curve has a jump, and each call gets the time of its side."""

    def jump(size: int) -> float:
        return 1 + 1e-3 * size if size <= 8192 else 40 + 1e-4 * size

    found = predict_step([[Ask("a", "bcast", 4096)], [Ask("a", "bcast", 4096)]], curves(sweep("bcast", 2, jump), 2))
    assert found.serial_us == pytest.approx(1 + 4.096, rel=0.01)
    found = predict_step([[Ask("a", "bcast", 1 << 20)]] * 2, curves(sweep("bcast", 2, jump), 2))
    assert found.serial_us == pytest.approx(40 + 104.8576, rel=0.01)


def test_nothing_is_extrapolated_beyond_four_times() -> None:
    rows = sweep("bcast", 2, line(1, 1e-3), sizes=[1 << k for k in range(6, 13)])
    at = {size: predict_step([[Ask("a", "bcast", size)]] * 2, curves(rows, 2)) for size in (15, 16, 16384, 16388)}
    assert at[16384].serial_us == pytest.approx(1 + 16.384, rel=1e-3) and at[16].missing == ()
    for size in (15, 16388):
        assert at[size].serial_us is None and at[size].rows == {"a": None}
        (gap,) = at[size].missing
        assert (gap.benchmark, gap.ranks, gap.size_bytes) == ("bcast", 2, size)
        assert "more than 4 times outside of the measured sizes, 64 B to 4 KiB" in gap.why


def test_the_largest_size_of_what_is_missing_is_told() -> None:
    asks = [Ask("a", "allgather", size) for size in (8, 4096, 64)] + [Ask("b", "bcast", 8)]
    found = predict_step([asks] * 3, curves(sweep("bcast", 3, line(1, 0)), 3))
    assert [(m.benchmark, m.size_bytes, m.why) for m in found.missing] == [("allgather", 4096, "not measured")]
    assert found.rows["a"] is None and found.rows["b"] == pytest.approx(1, rel=1e-3)


@pytest.mark.slow
def test_other_numbers_of_ranks_are_used_within_the_models_rule() -> None:
    rows = list(itertools.chain(*(sweep("bcast", n, line(math.log2(n), 0)) for n in (2, 4, 8))))
    found = predict_step([[Ask("a", "bcast", 64)]] * 32, curves(rows, 32))
    assert found.serial_us == pytest.approx(5, rel=0.01) and found.ranks_scaled == ("bcast at 32 ranks from 2, 4, 8",)
    found = predict_step([[Ask("a", "bcast", 64)]] * 33, curves(rows, 33))
    (gap,) = found.missing
    assert "33 ranks are more than 4 times the largest measured (8): measure up to 9 ranks first" in gap.why


def test_a_reduction_is_of_its_type_and_a_copy_of_any() -> None:
    rows = sweep("allreduce", 2, line(2, 0)) + sweep("bcast", 2, line(1, 0))
    found = predict_step([[Ask("a", "allreduce", 64, "bfloat16"), Ask("b", "bcast", 64)]] * 2, curves(rows, 2))
    assert found.rows["a"] is None and found.rows["b"] == pytest.approx(1, rel=1e-3)
    assert [gap.dtype for gap in found.missing] == ["bfloat16"]


def test_the_curve_that_is_most_like_the_call_is_taken() -> None:
    rows = [
        *sweep("allreduce", 2, line(2, 0)),
        *sweep("allreduce", 2, line(9, 0), in_place=True),
        *sweep("allreduce", 2, line(1, 0), in_place=True, cache="rotate", launches=1),
        *sweep("allreduce", 2, line(7, 0), nodes=2),
        *sweep("allreduce", 2, line(8, 0), library="Open MPI"),
    ]
    (found, plain) = (
        predict_step([[Ask("a", "allreduce", 64, "float32", in_place=here)]] * 2, curves(rows, 2)).serial_us
        for here in (True, False)
    )
    assert (found, plain) == (pytest.approx(1, rel=1e-3), pytest.approx(2, rel=1e-3))


def test_sweeps_of_the_steps_own_launches_are_preferred() -> None:
    """Launches differ, so what was measured beside the step is closer than what was measured more often elsewhere."""
    elsewhere, beside = sweep("bcast", 2, line(9, 0), launches=5), sweep("bcast", 2, line(1, 0), launches=1)
    rows = [row | {"launch_id": "old"} for row in elsewhere] + [row | {"launch_id": "own"} for row in beside]
    asks = [[Ask("a", "bcast", 64)]] * 2
    times = {
        launch: predict_step(asks, Curves(rows, SIDE | {"ranks": 2}, (launch,))).serial_us
        for launch in ("own", "old", "neither")
    }
    assert times == {"own": pytest.approx(1), "old": pytest.approx(9), "neither": pytest.approx(3)}


class TestTimeline:
    def test_the_last_to_come_lets_all_go(self) -> None:
        calls = [
            [Ask("pair", "bcast", members=(0, 1)), Ask("all", "bcast")],
            [Ask("pair", "bcast", members=(0, 1)), Ask("all", "bcast")],
            [Ask("all", "bcast")],
        ]
        assert timeline(calls, flat(2)) == [{"pair": 2, "all": 2}, {"pair": 2, "all": 2}, {"all": 4}]

    def test_of_members_that_differ_the_largest_holds(self) -> None:
        calls = [[Ask("a", "alltoallv", 10)], [Ask("a", "alltoallv", 30)]]
        assert timeline(calls, lambda ask, size, ranks: float(size)) == [{"a": 30}, {"a": 30}]

    def test_a_pipeline_waits(self) -> None:
        """Rank 2 waits for both messages before it, and rank 0 for none."""

        def hop(row: str, out: int | None = None, back: int | None = None) -> Ask:
            sends = () if out is None else (Message(out, 8),)
            return Ask(row, MESSAGES, sends=sends, receives=() if back is None else (Message(back, 8),))

        calls = [[hop("go", out=1)], [hop("go", back=0), hop("go", out=2)], [hop("go", back=1)]]
        assert timeline(calls, flat(3)) == [{"go": 3}, {"go": 6}, {"go": 6}]

    def test_one_port_each_way(self) -> None:
        """A server gets two messages one after the other, while it sends one."""
        server = Ask("s", MESSAGES, sends=(Message(1, 8),), receives=(Message(1, 8), Message(2, 8)))
        calls = [
            [server],
            [Ask("w", MESSAGES, sends=(Message(0, 8),), receives=(Message(0, 8),))],
            [Ask("w", MESSAGES, sends=(Message(0, 8),))],
        ]
        assert timeline(calls, flat(5)) == [{"s": 10}, {"w": 5}, {"w": 5}]

    def test_a_message_begins_when_both_have_come(self) -> None:
        late = Ask("late", "bcast", members=(1, 2))
        calls = [
            [Ask("m", MESSAGES, sends=(Message(1, 8),))],
            [late, Ask("m", MESSAGES, receives=(Message(0, 8),))],
            [late],
        ]
        assert timeline(calls, flat(1)) == [{"m": 2}, {"late": 1, "m": 1}, {"late": 1}]

    def test_tags_and_order_tell_messages_apart(self) -> None:
        calls = [
            [Ask("x", MESSAGES, sends=(Message(1, 10, tag=1),)), Ask("y", MESSAGES, sends=(Message(1, 3, tag=2),))],
            [Ask("both", MESSAGES, receives=(Message(0, 3, tag=2), Message(0, 10, tag=1)))],
        ]
        assert timeline(calls, lambda ask, size, ranks: float(size)) == [{"x": 10, "y": 3}, {"both": 13}]
