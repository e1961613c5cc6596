"""The search drops what cannot win, finds boundaries by bisection, and leaves the default where nothing is better."""

from __future__ import annotations

import math

import pytest

from omb_py.results.tune.elimination import FEWEST_PAIRS, MOST_PAIRS, SearchDesign, block_of, first_places, pairs_for
from omb_py.results.tune.search import Search
from tests.support.machines.planted import (
    SIZES,
    Machine,
    Planted,
    all_equal,
    boundaries_right,
    planted,
    tune,
    worst_loss,
)

DESIGN = SearchDesign(seed=3)


def searched(library: Planted, design: SearchDesign = DESIGN, sizes: tuple[int, ...] = SIZES) -> Search:
    """A search to its end."""
    search, machine = Search(sizes, len(library.alphas), design), Machine(library, design.seed)
    while block := search.next_block():
        launched = {w.candidate: machine.launch(w.candidate, [sizes[p] for p in w.places]) for w in block}
        search.add({w.candidate: {p: launched[w.candidate][sizes[p]] for p in w.places} for w in block})
    return search


@pytest.mark.parametrize("seed", range(4))
def test_planted_crossovers_are_found_at_a_fraction_of_the_full_grid(seed: int) -> None:
    library = planted(seed)
    tuned = tune(library, seed)
    assert boundaries_right(library, tuned.chosen)
    assert worst_loss(library, tuned.chosen) <= 0.05
    assert tuned.share <= 0.4


@pytest.mark.parametrize("seed", [9, 17, 20, 63])
def test_slow_launches_hide_neither_a_boundary_nor_a_gain(seed: int) -> None:
    """One launch in ten takes 1.5 times as long. Each of these seeds erred while slow launches counted in full."""
    library = planted(seed, slow_share=0.1)
    tuned = tune(library, seed)
    assert boundaries_right(library, tuned.chosen)
    assert worst_loss(library, tuned.chosen) <= 0.05
    assert all(answer.verdict == "FASTER" for answer in tuned.answers.values())


@pytest.mark.parametrize("seed", range(4))
def test_equal_algorithms_give_no_rule(seed: int) -> None:
    assert tune(all_equal(), seed).rules == []


def test_a_slow_candidate_is_dropped_after_the_first_look_and_a_close_one_is_measured_on() -> None:
    library = Planted((1.0, 0.8, 0.81, 2.0), (0.001, 0.0008, 0.00081, 0.002))
    state = searched(library, sizes=(8,)).states[0]
    assert len(state.times[3]) == DESIGN.checks[0]
    assert len(state.times[1]) > DESIGN.checks[0]
    assert state.standing is not None
    assert state.standing.leader in (1, 2)


def test_what_leads_is_known_before_anything_is_decided() -> None:
    search = Search((8, 64), 3, DESIGN)
    assert search.leader(0) == (0, 0.0, 0), "nothing was measured"
    search.add({0: {0: 1.0, 1: 1.0}, 1: {0: 0.7, 1: 1.2}, 2: {0: 0.9}})
    assert search.leader(0) == (1, pytest.approx(-0.3), 1)
    assert search.leader(1) == (0, 0.0, 0), "only the default and what is slower were measured"


def test_the_default_wins_a_tie_and_what_is_faster_by_less_than_the_margin_is_not_set() -> None:
    alike = searched(Planted((1.0, 0.98), (0.0, 0.0), spread=0.002), sizes=(8, 64))
    better = searched(Planted((1.0, 0.9), (0.0, 0.0), spread=0.002), sizes=(8, 64))
    assert set(alike.choices().values()) == {0}
    assert set(better.choices().values()) == {1}


def test_bisection_measures_few_sizes_and_ends_at_neighbors() -> None:
    search = searched(Planted((1.0, 2.0), (0.01, 0.002), (125.0,), spread=0.001))
    chosen = search.choices()
    last = max(p for p, c in chosen.items() if c == 0)
    first = min(p for p, c in chosen.items() if c == 1)
    assert (SIZES[last], SIZES[first]) == (128, 256)  # at 128 B candidate 1 is faster, but by 1 % only
    assert len(search.states) < len(SIZES) / 2


def test_a_candidate_that_fails_is_asked_for_no_more() -> None:
    search = Search((8, 64), 3, DESIGN)
    first = search.next_block()
    assert sorted(w.candidate for w in first) == [0, 1, 2]
    search.exclude(2)
    search.add({c: {p: math.log(1 + c) for p in range(2)} for c in (0, 1)})
    assert sorted(w.candidate for w in search.next_block()) == [0, 1]
    with pytest.raises(ValueError, match="default"):
        search.exclude(0)


def test_a_leader_that_fails_late_is_replaced() -> None:
    library = Planted((1.0, 0.5, 0.8), (0.0, 0.0, 0.0), spread=0.002)
    search = searched(library, sizes=(8,))
    assert search.choices() == {0: 1}
    search.exclude(1)
    machine = Machine(library, 1)
    while block := search.next_block():
        search.add({w.candidate: {0: machine.launch(w.candidate, [8])[8]} for w in block})
    assert search.choices() == {0: 2}


def test_blocks_without_results_end_the_search() -> None:
    search = Search((8,), 2, DESIGN)
    blocks = 0
    while search.next_block():
        search.add({})
        blocks += 1
    assert blocks == DESIGN.checks[0]
    assert search.choices() == {}


def test_what_is_left_is_counted_for_the_budget() -> None:
    search = Search((8, 64), 3, DESIGN)
    assert search.most_left() == 3 * DESIGN.checks[-1]
    search.next_block()
    search.add({c: dict.fromkeys(range(2), 0.0) for c in range(3)})
    assert search.most_left() == 3 * (DESIGN.checks[-1] - 1)
    assert search.open_places == [0, 1]
    assert search.spent == 6


def test_the_order_of_a_block_is_drawn_and_repeatable() -> None:
    places = {c: [0, 4, 8] for c in range(6)}
    orders = {tuple(w.candidate for w in block_of(number, places, 5)) for number in range(20)}
    assert len(orders) > 10
    assert block_of(7, places, 5) == block_of(7, places, 5)
    assert len({w.places for w in block_of(7, places, 5)}) == 1
    assert first_places(10, 3) == [0, 3, 6, 9]


def test_a_size_that_gains_hardly_more_than_the_margin_does_not_hide_where_the_gain_ends() -> None:
    """Candidate 1 gains much up to 16 KiB and 3.9 % from there on: the boundary is found, not left to the proof."""
    library = Planted((100.0, 20.0), (0.1, 0.0961), spread=0.001)
    chosen = searched(library).choices()
    gains = {SIZES[place]: 1 - library.time(1, SIZES[place]) / library.time(0, SIZES[place]) for place in chosen}
    assert {size for place, candidate in chosen.items() if candidate for size in (SIZES[place],)} == {
        size for size, gain in gains.items() if gain > 0.0435
    }
    last = max(place for place, candidate in chosen.items() if candidate)
    assert chosen[last + 1] == 0, "the next size of the list was measured too"


def test_two_slow_launches_of_three_drop_nobody() -> None:
    """Candidate 1 is the fastest: one fast launch of three shows it, since nothing makes a launch faster."""
    times = {0: 10.0, 1: 5.0, 2: 5.5, 3: 9.5}
    search = Search((8,), len(times), DESIGN)
    for block in range(3):
        assert search.next_block()
        slow = {1: 1.5 if block else 1.0}
        search.add({c: {0: math.log(us * slow.get(c, 1.0)) + 0.001 * ((c + block) % 3)} for c, us in times.items()})
    search.next_block()
    assert (1 in search.states[0].left, search.choices()) == (True, {0: 1})


def test_the_proof_is_as_large_as_the_spread_asks_for() -> None:
    assert pairs_for([]) == FEWEST_PAIRS
    narrow, wide, huge = ([[0.3 - s, 0.3 + s, 0.3 - s, 0.3 + s]] for s in (0.02, 0.06, 0.5))
    assert (pairs_for(narrow), pairs_for(huge)) == (FEWEST_PAIRS, MOST_PAIRS)
    assert FEWEST_PAIRS < pairs_for(wide) < MOST_PAIRS
    search = searched(planted(1, spread=0.1))
    assert len(search.gains()) == sum(candidate != 0 for candidate in search.choices().values())
    assert pairs_for(search.gains()) > FEWEST_PAIRS


@pytest.mark.parametrize("seed", range(3))
def test_crossovers_are_found_where_launches_spread_by_five_percent(seed: int) -> None:
    library = planted(seed, spread=0.05)
    assert boundaries_right(library, tune(library, seed).chosen)
