"""Requests that come and go: when they begin, when they leave, and what their tokens move."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli import main
from omb_py.errors import UsageError
from omb_py.suites.workloads.benchmark import columns
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.serving import Served, Turn, draw_arrivals, latencies, percentile, serve, tokens_of_turn
from tests.suites.workloads.test_families import calls, step

WIDTH = 768 * 2
ARRIVALS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), min_size=1, max_size=8).map(sorted)


def test_a_request_waits_for_a_free_place() -> None:
    turns, seen = serve([(0, 2), (0, 2), (0, 1)], slots=2)
    assert turns == [Turn(2, 0), Turn(0, 2), Turn(1, 0)]
    assert seen == [Served(0, 0, 1, 2), Served(0, 0, 1, 2), Served(0, 2, 2, 1)]


def test_prompts_are_read_in_parts_beside_tokens() -> None:
    """Ten positions in parts of at most four, of both requests together: the second waits for the first."""
    turns, seen = serve([(0, 3), (1, 2)], slots=2, prompt=10, chunk=4)
    assert [turn.chunk for turn in turns] == [4, 4, 4, 4, 4, 0] and sum(turn.begins for turn in turns) == 0
    assert [turn.goes_on for turn in turns] == [0, 0, 0, 1, 1, 1]
    assert [turn.ends for turn in turns] == [0, 0, 1, 0, 1, 0]
    assert seen == [Served(0, 2, 4, 3), Served(1, 4, 5, 2)]


def test_a_draft_gives_several_tokens_a_turn() -> None:
    assert tokens_of_turn(0, 0.8) == 1 and tokens_of_turn(3, 1.0) == 4
    assert tokens_of_turn(2, 0.5) == pytest.approx((1 - 0.5**3) / 0.5)
    turns, (seen,) = serve([(0, 9)], slots=1, gain=tokens_of_turn(3, 1.0))
    assert len(turns) == 3 and seen == Served(0, 0, 2, 9)
    own = calls("serving:layers=1,arrivals=0 9,draft=3,accepted=1", 2)[0]
    assert [c.nbytes for c in own] == [32 * WIDTH] * 2 + [4 * WIDTH] * 4, "four positions are checked at once"


def test_with_a_clock_arrivals_are_seconds() -> None:
    """A request that comes within a turn waits for the next one."""
    seconds = parse_workload("serving:layers=1,turn=20ms,arrivals=0 3;0.021 1;0.04 2")
    turns = parse_workload("serving:layers=1,arrivals=0 3;2 1;2 2")
    assert [c.nbytes for c in seconds.calls(0, 2)] == [c.nbytes for c in turns.calls(0, 2)]
    fast, slow = (parse_workload(f"serving:layers=1,turn=20ms,rate={rate},requests=9") for rate in (500, 5))
    assert len(fast.calls(0, 2)) < len(slow.calls(0, 2)), "who comes together travels together"
    with pytest.raises(UsageError, match=r"arrivals at parts of a turn are seconds: .* as turn=20ms"):
        parse_workload("serving:arrivals=0.5 3").calls(0, 2)


def test_latencies_are_the_calls_from_arrival_to_token() -> None:
    """Of two layers, so four calls a turn; turn j takes 4·10^j."""
    v = parse_workload("serving:layers=2,arrivals=0 3;1 2,slots=1").values
    times = [10.0**turn for turn in range(5) for _ in range(4)]
    found = latencies(v, 2, times)
    first = [4.0, 4 * 1110.0]  # the second request waits for a place for two turns, and reads in the third
    later = [4 * 110 / 2, 4 * 10**4]
    assert (found["ttft_p50_us"], found["ttft_p99_us"]) == tuple(first)
    assert (found["tpot_p50_us"], found["tpot_p99_us"]) == tuple(later)
    assert "tpot_p50_us" not in latencies(parse_workload("serving:layers=2,arrivals=0 1").values, 2, times)


@pytest.mark.parametrize(
    ("more", "embedded", "chosen"),
    [
        ("", [2 * 32, 2, 2], [2, 2, 2]),
        (",fused=off", [32, 32, 1, 1, 1, 1], [1] * 6),
        (",draft=1,accepted=1", [2 * 32, 4], [2, 4]),
        (",chunk=32", [32, 32 + 1, 2, 1], [1, 2, 2, 1]),
        (",chunk=30", [30, 30, 4 + 1, 2, 1], [1, 2, 2, 1]),
    ],
)
def test_with_a_head_each_turn_embeds_positions_and_gathers_logits(
    more: str, embedded: list[int], chosen: list[int]
) -> None:
    """Of two requests at once; a part of a prompt that ends none has no logits."""
    own = calls(f"serving:layers=1,arrivals=0 3;0 3,head=on{more}", 2)[0]
    assert [c.nbytes // WIDTH for c in own if c.label == "embedding"] == embedded
    assert [c.nbytes // (50432 // 2 * 2) for c in own if c.op == "allgather"] == chosen
    without = calls(f"serving:layers=1,arrivals=0 3;0 3{more}", 2)[0]
    assert [c.nbytes for c in own if c.label not in ("embedding", "logits")] == [c.nbytes for c in without]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [3.0, 1.0, 2.0, 4.0]
    assert [percentile(values, share) for share in (25, 50, 51, 99)] == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ",chunk=16,draft=2,turn=20ms,rate=40", ",fused=off,head=on"])
def test_each_byte_is_right_and_the_latencies_are_printed(more: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"serving:layers=1,requests=5,tokens=4,scale=1/4{more}"
    words = ["step", "-n", "3", "--workload", text, "--backend", "mock", "-i", "2", "-x", "0", "--no-store", "--quiet"]
    assert main([*words, "-c"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"# communication to first token \(TTFT\) +[\d.]+ us p50 +[\d.]+ us p99", printed)
    assert re.search(r"# communication of a later token \(TPOT\) +[\d.]+ us p50 +[\d.]+ us p99", printed)


@given(ARRIVALS, st.integers(1, 4))
def test_every_token_is_generated_once_within_the_places(arrivals: list[tuple[int, int]], slots: int) -> None:
    made, seen = serve(arrivals, slots)
    assert sum(turn.begins for turn in made) == len(arrivals)
    assert sum(turn.begins + turn.goes_on for turn in made) == sum(tokens for _, tokens in arrivals)
    assert all(0 < turn.begins + turn.goes_on <= slots for turn in made)
    assert all(request.arrived <= request.first == request.last - request.tokens + 1 for request in seen)


@pytest.mark.slow
@given(ARRIVALS, st.integers(1, 4), st.integers(1, 7), st.integers(1, 9))
def test_every_position_of_a_prompt_is_read_once(
    arrivals: list[tuple[int, int]], slots: int, chunk: int, prompt: int
) -> None:
    made, seen = serve(arrivals, slots, prompt, chunk)
    assert sum(turn.chunk for turn in made) == prompt * len(arrivals)
    assert all(turn.chunk <= chunk and turn.chunk + turn.goes_on > 0 for turn in made)
    assert sum(turn.goes_on for turn in made) == sum(tokens - 1 for _, tokens in arrivals)
    assert all(request.arrived <= request.first <= request.last for request in seen)


def test_gaps_have_the_mean_of_the_rate_and_follow_the_seed() -> None:
    made = draw_arrivals(2000, 0.25, 1, seed=1)
    assert made[-1][0] / 2000 == pytest.approx(4, rel=0.1) and made == draw_arrivals(2000, 0.25, 1, seed=1)
    assert made != draw_arrivals(2000, 0.25, 1, seed=2)


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


@pytest.mark.slow
def test_one_by_one_fused_calls_take_less_time_as_there_are_fewer() -> None:
    one, each = (columns(step(f"serving:layers=1,requests=8,rate=8,fused={fused}", 4).laps) for fused in ("on", "off"))
    assert one["serial_us"] < each["serial_us"]


@pytest.mark.parametrize("text", ["0", "0 0", "-1 3", "a b", "0 1 2", "nan 1", "inf 1"])
def test_what_is_no_request(text: str) -> None:
    with pytest.raises(UsageError, match=r"write poisson, or @FILE with a line WHEN TOKENS for each request"):
        parse_workload(f"serving:arrivals={text}")
