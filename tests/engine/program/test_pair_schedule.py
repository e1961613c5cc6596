"""The circle method: everybody meets everybody once, and nobody two at a time."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.program.pair_schedule import Schedule, circle, parse_schedule


@pytest.mark.parametrize(("count", "rounds", "pairs"), [(2, 1, 1), (3, 3, 1), (4, 3, 2), (8, 7, 4), (9, 9, 4)])
def test_rounds_are_as_few_as_can_be(count: int, rounds: int, pairs: int) -> None:
    assert [len(each) for each in circle(count)] == [pairs] * rounds


@pytest.mark.slow
@given(st.integers(0, 90))
def test_every_pair_meets_once_and_nobody_twice_in_a_round(count: int) -> None:
    rounds = list(circle(count))
    for pairs in rounds:
        inside = [end for pair in pairs for end in pair]
        assert len(set(inside)) == len(inside)
    met = sorted(pair for pairs in rounds for pair in pairs)
    assert met == list(combinations(range(count), 2))


@pytest.mark.slow
def test_a_thousand_nodes_meet_in_1023_rounds() -> None:
    rounds = list(circle(1024))
    assert len(rounds) == 1023
    assert len({pair for pairs in rounds for pair in pairs}) == 1024 * 1023 // 2


schedules = st.builds(
    Schedule,
    st.integers(0, 1 << 31),
    st.sampled_from(["parallel", "serial"]),
    st.sampled_from(["forward", "back"]),
    st.lists(st.integers(0, 40), unique=True, max_size=12).map(tuple),
)


@given(schedules)
def test_a_schedule_is_its_text(schedule: Schedule) -> None:
    assert parse_schedule(schedule.text()) == schedule


@given(schedules, st.integers(41, 50))
def test_a_schedule_has_every_pair_of_its_ranks_in_its_direction(schedule: Schedule, size: int) -> None:
    members = schedule.ranks or tuple(range(size))
    pairs = [pair for _, piece in schedule.rounds(size) for pair in piece]
    assert sorted(tuple(sorted(pair)) for pair in pairs) == sorted(combinations(sorted(members), 2))
    assert all((a < b) == (schedule.direction == "forward") for a, b in pairs)
    if schedule.kind == "serial":
        assert all(len(piece) == 1 for _, piece in schedule.rounds(size))


def test_seeds_make_other_rounds() -> None:
    orders = {tuple(tuple(piece) for _, piece in Schedule(seed).rounds(8)) for seed in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize("text", ["", "1:parallel:forward", "1:both:forward:", "1:serial:up:", "x:serial:forward:"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_schedule(text)
