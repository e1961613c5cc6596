"""Calls with known times, simulated to exact values; more in tests/orchestrate/workloads/test_step_times.py."""

from __future__ import annotations

import pytest

from omb_py.backends.timeline import End, Exchange, TimedCollective, spent_us


def test_a_message_takes_its_time_at_each_end() -> None:
    """Rank 0 gets from two at once: one after the other. The senders are done when theirs is out."""
    calls = [
        [Exchange("in", receives=(End(1, 1, 4.0), End(2, 1, 4.0)))],
        [Exchange("out", sends=(End(0, 1, 4.0),)), TimedCollective("rest", 2.5, (1, 2))],
        [Exchange("out", sends=(End(0, 1, 4.0),)), TimedCollective("rest", 2.5, (1, 2))],
    ]
    assert spent_us(calls) == [{"in": 8}, {"out": 4, "rest": 2.5}, {"out": 4, "rest": 2.5}]


def test_a_rank_sends_to_itself() -> None:
    assert spent_us([[Exchange("own", (End(0, 3, 0.1),), (End(0, 3, 0.1),))]]) == [{"own": 0.1}]


def test_times_are_not_rounded_to_nanoseconds() -> None:
    ((row, us),) = spent_us([[TimedCollective("a", 1e-9), TimedCollective("a", 3e-9)]])[0].items()
    assert row == "a" and us == pytest.approx(4e-9, rel=1e-9)


def test_a_rank_without_calls_spends_nothing() -> None:
    assert spent_us([[], [TimedCollective("a", 1.0, (1,))]]) == [{}, {"a": 1.0}]


def test_calls_that_do_not_meet_are_named() -> None:
    waiting = [TimedCollective("a", 1.0), Exchange("b", sends=(End(1, 1, 1.0),))]
    with pytest.raises(ValueError, match=r"calls of ranks do not meet: rank 0 waits in call 1"):
        spent_us([waiting, waiting[:1]])
