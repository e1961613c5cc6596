"""Requests that come and go: when they begin, when they leave, and what their tokens move."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.workloads.benchmark import columns
from omb_py.suites.workloads.concurrent import Turn, drawn, turns
from omb_py.suites.workloads.families import parse_workload
from tests.suites.workloads.test_families import calls, step

WIDTH = 768 * 2
ARRIVALS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), min_size=1, max_size=8).map(sorted)


def test_a_request_waits_for_a_free_place() -> None:
    assert turns([(0, 2), (0, 2), (0, 1)], slots=2) == [Turn(2, 0), Turn(0, 2), Turn(1, 0)]


@given(ARRIVALS, st.integers(1, 4))
def test_every_token_is_generated_once_within_the_places(arrivals: list[tuple[int, int]], slots: int) -> None:
    made = turns(arrivals, slots)
    assert sum(turn.begins for turn in made) == len(arrivals)
    assert sum(turn.begins + turn.goes_on for turn in made) == sum(tokens for _, tokens in arrivals)
    assert all(0 < turn.begins + turn.goes_on <= slots for turn in made)


def test_gaps_have_the_mean_of_the_rate_and_follow_the_seed() -> None:
    made = drawn(2000, 0.25, 1, seed=1)
    assert made[-1][0] / 2000 == pytest.approx(4, rel=0.1) and made == drawn(2000, 0.25, 1, seed=1)
    assert made != drawn(2000, 0.25, 1, seed=2)


@pytest.mark.parametrize("fused", ["on", "off"])
def test_fusing_changes_the_number_of_calls_and_not_the_bytes(fused: str, tmp_path: Path) -> None:
    trace = tmp_path / "requests"
    trace.write_text("# turn tokens\n0 3\n1, 1\n2 2\n")
    text = parse_workload(f"serving:layers=1,prompt=10,arrivals=@{trace},fused={fused}").text
    assert "0 3;1 1;2 2" in text
    own = calls(text, 2)[0]
    assert sum(c.nbytes for c in own) == 2 * (3 * 10 + 3 * 1) * WIDTH, "three prompts, and three tokens after the first"
    assert len(own) == (2 * (3 + 3) if fused == "off" else 2 * (1 + 2 + 2 + 1))


def test_requests_at_once_share_a_call() -> None:
    own = calls("serving:layers=1,arrivals=0 4;0 4;0 4", 2)[0]
    assert [c.nbytes for c in own] == [3 * 32 * WIDTH] * 2 + [3 * WIDTH] * 6
    apart = calls("serving:layers=1,arrivals=0 4;0 4;0 4,fused=off", 2)[0]
    assert [c.nbytes for c in apart] == [32 * WIDTH] * 6 + [WIDTH] * 18 and {c.until for c in apart} == {2}


def test_one_by_one_fused_calls_take_less_time_as_there_are_fewer() -> None:
    one, each = (columns(step(f"serving:layers=1,requests=8,rate=8,fused={fused}", 4).laps) for fused in ("on", "off"))
    assert one["serial_us"] < each["serial_us"]


@pytest.mark.parametrize("text", ["0", "0 0", "-1 3", "a b", "0 1 2"])
def test_what_is_no_request(text: str) -> None:
    with pytest.raises(UsageError, match=r"write poisson, or @FILE with a line TURN TOKENS for each request"):
        parse_workload(f"serving:arrivals={text}")
