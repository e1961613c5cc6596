"""The order of launches, what is measured again, and the rates of false alarms and of changes found."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from omb_py.orchestrate.compare.interleaving import CompareDesign, CompareListener, conduct, shuffled, sides_of
from omb_py.orchestrate.compare.pilot import BudgetTooShort, Pilot
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.compare.match import Side
from tests.support.synthetic import KINDS, simulate, upper


class Script:
    """Launches with a planted factor in some cells; notes what it was asked for."""

    def __init__(self, slower: dict[int, float] | None = None, missing: set[int] | None = None) -> None:
        self.asked: list[tuple[Side, list[int], int]] = []
        self.pairs: list[int] = []
        self.slower, self.missing = slower or {}, missing or set()

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        self.asked.append((side, list(cells), number))
        self.pairs.append(pair)
        wobble = 1 + 0.001 * (len(self.asked) % 5)
        values = {cell: wobble * (self.slower.get(cell, 1.0) if side == "NEW" else 1.0) for cell in cells}
        return {c: Launched(v, v, v) for c, v in values.items() if c not in self.missing}


class Told(CompareListener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.rounds: list[tuple[int, list[int]]] = []
        self.plans: list[tuple[Pilot, CompareDesign]] = []

    def planned(self, pilot: Pilot, design: CompareDesign) -> None:
        self.plans.append((pilot, design))

    def begins(self, design: CompareDesign, number: int, cells: Sequence[int]) -> None:
        self.rounds.append((number, list(cells)))


class Clock:
    """Gives a time that rises by this much at each look."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.now_s = step_s, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


def test_the_order_within_each_pair_is_drawn_by_the_seed() -> None:
    script = Script()
    conduct([[0]], CompareDesign(CompareRules(), 40, 1), script)
    sides = [side for side, _, _ in script.asked]
    assert script.pairs == [k // 2 for k in range(80)]
    assert [tuple(sides[k : k + 2]) for k in range(0, 80, 2)] == [sides_of(1, pair) for pair in range(40)]
    first = [sides_of(1, pair)[0] for pair in range(1000)]
    assert first.count("BASE") == pytest.approx(500, abs=50)
    repeated = sum(a == b for a, b in itertools.pairwise(first))
    assert repeated == pytest.approx(500, abs=50), "no rhythm: ABBA never repeats"
    assert first[:40] != [sides_of(2, pair)[0] for pair in range(40)]


def test_cells_are_shuffled_alike_for_both_of_a_pair_and_anew_for_each() -> None:
    script = Script()
    conduct([range(20)], CompareDesign(CompareRules(), 3, 7), script)
    orders = [cells for _, cells, _ in script.asked]
    assert orders[0] == orders[1] and orders[2] == orders[3] and orders[0] != orders[2]
    assert all(sorted(cells) == list(range(20)) for cells in orders)
    assert orders[0] == shuffled(range(20), 7, 0), "by the seed alone"


def test_cells_of_other_needs_have_launches_of_their_own_side_next_to_side() -> None:
    script = Script()
    conduct([[0, 1], [2]], CompareDesign(CompareRules(), 1, 1), script)
    assert [(side, sorted(cells)) for side, cells, _ in script.asked] == [
        ("BASE", [0, 1]),
        ("NEW", [0, 1]),
        ("BASE", [2]),
        ("NEW", [2]),
    ]


def test_unclear_cells_alone_are_measured_again_and_a_change_is_then_said() -> None:
    script, listener = Script({1: 1.2}), Told()
    found = conduct([range(3)], CompareDesign(CompareRules(rounds=3), 4, 1), script, listener)
    assert listener.rounds == [(1, [0, 1, 2]), (2, [1])], "four pairs are too few to show a change"
    assert [one.verdict for one in found.judged] == ["SAME", "SLOWER", "SAME"]
    assert found.judged[1].answers["median"].launches == (8, 8), "both rounds count"
    assert [len(rounds) for rounds in found.cells] == [1, 2, 1]
    assert all(cells == [1] for _, cells, number in script.asked if number == 2)
    assert len(found.order) == len(script.asked) == 16


def test_pairs_are_numbered_on_in_the_next_round() -> None:
    script = Script({0: 1.2})
    found = conduct([[0]], CompareDesign(CompareRules(rounds=2), 5, 1), script)
    assert script.pairs == [k // 2 for k in range(20)]
    assert [measured.pairs for measured in found.cells[0]] == [tuple("01234"), tuple("56789")]


def test_a_cell_that_no_launch_has_is_no_look() -> None:
    found = conduct([range(2)], CompareDesign(CompareRules(), 2, 1), Script(missing={0}))
    assert found.cells[0] == [] and found.judged[0].answers == {}
    assert found.judged[1].verdict == "SAME"


def test_the_first_pairs_are_told_and_change_nothing() -> None:
    script, listener, design = Script(), Told(), CompareDesign(CompareRules(rounds=3), 8, 1)
    found = conduct([range(2)], design, script, listener)
    ((pilot, told),) = listener.plans
    assert told is design and pilot.cells == 2
    assert len(found.cells[0][0].base) == 8 and listener.rounds == [(1, [0, 1])]


def test_the_pairs_of_a_pilot_choose_the_launches_and_are_not_judged() -> None:
    script, listener = Script(), Told()
    design = CompareDesign(CompareRules(rounds=3), 10, 1, budget_s=100.0)
    found = conduct([[0]], design, script, listener, Clock(3.0))  # 3 s for three pairs
    ((pilot, chosen),) = listener.plans
    assert pilot.pair_s == pytest.approx(1.0)
    assert (chosen.launches, chosen.first_pair, chosen.budget_s) == (10, 3, None)
    assert [number for number, _ in listener.rounds] == [0, 1]
    assert {number for _, _, number in script.asked[:6]} == {0}
    assert found.cells[0][0].pairs == tuple(map(str, range(3, 13))), "the order goes on as it would have"


def test_a_planned_comparison_that_is_resumed_makes_no_pilot() -> None:
    script = Script()
    found = conduct([[0]], CompareDesign(CompareRules(), 4, 1, first_pair=3), script)
    assert found.cells[0][0].pairs == tuple("3456")
    assert script.pairs == [3, 3, 4, 4, 5, 5, 6, 6]


def test_a_budget_in_which_no_change_can_be_shown_is_refused() -> None:
    design = CompareDesign(CompareRules(rounds=3), 10, 1, budget_s=8.0)
    with pytest.raises(BudgetTooShort, match=r"enough for 5 more launches a side.*needs 6: give it 10 s"):
        conduct([[0]], design, Script(), clock=Clock(3.0))


def test_half_a_pair_is_left_out() -> None:
    class Half(Script):
        def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
            found = super().__call__(side, cells, number, pair)
            return {} if len(self.asked) == 2 else found

    found = conduct([[0]], CompareDesign(CompareRules(), 3, 1), Half())
    assert len(found.cells[0][0].base) == len(found.cells[0][0].new) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_against_a_is_silent(kind: str) -> None:
    # make bench-compare counts thousands of reports
    rates = [
        simulate(kind, family, 40, CompareRules(rounds=rounds), seed=11) for family in (1, 20) for rounds in (1, 3)
    ]
    assert sum(one.alarms for one in rates) <= 2


@pytest.mark.slow
def test_ten_percent_are_found_at_a_spread_of_two() -> None:
    for family in (1, 20):
        for rounds in (1, 3):
            rates = simulate("normal", family, 40, CompareRules(rounds=rounds), seed=5, change=1.10)
            assert rates.found >= 36, (family, rounds)


class Rhythm(Script):
    """A machine that does something by itself: launch number -> the factor of its times."""

    def __init__(self, factor: Callable[[int], float]) -> None:
        super().__init__()
        self.factor = factor

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        self.asked.append((side, list(cells), number))
        value = self.factor(len(self.asked) - 1) * (1 + 0.001 * (len(self.asked) * 7 % 5))
        return {cell: Launched(value, value, value) for cell in cells}


@pytest.mark.parametrize(
    "factor",
    [
        pytest.param(lambda k: 1.005**k, id="a steady drift"),
        # BASE NEW NEW BASE would give all slow launches to NEW
        pytest.param(lambda k: 1.2 if k % 4 in (1, 2) else 1.0, id="every second pair of launches is slow"),
        pytest.param(lambda k: 1.2 if k % 2 else 1.0, id="every second launch is slow"),
        pytest.param(lambda k: 1.5 if k < 9 else 1.0, id="a slow hour"),
    ],
)
def test_what_the_machine_does_by_itself_is_no_change(factor: Callable[[int], float]) -> None:
    alarms = sum(
        conduct([[0]], CompareDesign(CompareRules(rounds=3), 10, seed), Rhythm(factor)).judged[0].alarm
        for seed in range(40)
    )
    assert alarms <= 1


def test_upper_bound_of_a_rate() -> None:
    assert upper(0, 59) == pytest.approx(0.05, abs=0.001)
    assert upper(15, 3000) == pytest.approx(0.0077, abs=0.0001)
    assert upper(3, 3) == 1.0
