"""The order of launches, what is measured again, and the rates of false alarms and of changes found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omb_py.orchestrate.compare.interleaving import Design, conduct, shuffled, sides_of
from omb_py.results.compare.judge import Launched, Rules
from omb_py.results.compare.match import Side
from tests.support.synthetic import KINDS, simulate, upper


class Script:
    """Launches with a planted factor in some cells; notes what it was asked for."""

    def __init__(self, slower: dict[int, float] | None = None, missing: set[int] | None = None) -> None:
        self.asked: list[tuple[Side, list[int], int]] = []
        self.slower, self.missing = slower or {}, missing or set()

    def __call__(self, side: Side, cells: Sequence[int], number: int) -> dict[int, Launched]:
        self.asked.append((side, list(cells), number))
        wobble = 1 + 0.001 * (len(self.asked) % 5)
        values = {cell: wobble * (self.slower.get(cell, 1.0) if side == "NEW" else 1.0) for cell in cells}
        return {c: Launched(v, v, v) for c, v in values.items() if c not in self.missing}


def test_launches_read_abba() -> None:
    script = Script()
    conduct([[0]], Design(Rules(), 4, 1), script)
    assert [side for side, _, _ in script.asked] == ["BASE", "NEW", "NEW", "BASE"] * 2
    assert sides_of(3) == ("NEW", "BASE")


def test_cells_are_shuffled_alike_for_both_of_a_pair_and_anew_for_each() -> None:
    script = Script()
    conduct([range(20)], Design(Rules(), 3, 7), script)
    orders = [cells for _, cells, _ in script.asked]
    assert orders[0] == orders[1] and orders[2] == orders[3] and orders[0] != orders[2]
    assert all(sorted(cells) == list(range(20)) for cells in orders)
    assert orders[0] == shuffled(range(20), 7, 0), "by the seed alone"


def test_cells_of_other_needs_have_launches_of_their_own_side_next_to_side() -> None:
    script = Script()
    conduct([[0, 1], [2]], Design(Rules(), 1, 1), script)
    assert [(side, sorted(cells)) for side, cells, _ in script.asked] == [
        ("BASE", [0, 1]),
        ("NEW", [0, 1]),
        ("BASE", [2]),
        ("NEW", [2]),
    ]


def test_flagged_cells_alone_are_measured_again_and_a_change_is_then_said() -> None:
    script, told = Script({1: 1.2}), []
    found = conduct([range(3)], Design(Rules(rounds=3), 5, 1), script, lambda n, cells: told.append((n, list(cells))))
    assert told == [(1, [0, 1, 2]), (2, [1])]
    assert [one.verdict for one in found.judged] == ["SAME", "SLOWER", "SAME"]
    assert [len(rounds) for rounds in found.cells] == [1, 2, 1]
    assert all(cells == [1] for _, cells, number in script.asked if number == 2)
    assert len(found.order) == len(script.asked) == 20


def test_the_order_goes_on_alternating_in_the_next_look() -> None:
    script = Script({0: 1.2})
    conduct([[0]], Design(Rules(rounds=2), 3, 1), script)
    assert [side for side, _, _ in script.asked] == ["BASE", "NEW", "NEW", "BASE"] * 3


def test_a_cell_that_no_launch_has_is_no_look() -> None:
    found = conduct([range(2)], Design(Rules(), 2, 1), Script(missing={0}))
    assert found.cells[0] == [] and found.judged[0].answers == {}
    assert found.judged[1].verdict == "SAME"


def test_half_a_pair_is_left_out() -> None:
    class Half(Script):
        def __call__(self, side: Side, cells: Sequence[int], number: int) -> dict[int, Launched]:
            found = super().__call__(side, cells, number)
            return {} if len(self.asked) == 2 else found

    found = conduct([[0]], Design(Rules(), 3, 1), Half())
    assert len(found.cells[0][0].base) == len(found.cells[0][0].new) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [1, 10, 60])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_against_a_is_silent(kind: str, family: int, rounds: int) -> None:
    rates = simulate(kind, family, 300, Rules(rounds=rounds), seed=11)
    assert rates.alarms <= 0.01 * rates.cells
    assert rates.false_reports <= 0.05 * rates.reports


def test_ten_percent_are_found_at_a_spread_of_two() -> None:
    for family in (1, 10, 60):
        for rounds in (1, 3):
            found = simulate("normal", family, 60, Rules(rounds=rounds), seed=5, change=1.10).words["SLOWER"]
            assert found >= 54, (family, rounds)


def test_drift_alone_is_no_change() -> None:
    class Drifting(Script):
        def __call__(self, side: Side, cells: Sequence[int], number: int) -> dict[int, Launched]:
            self.asked.append((side, list(cells), number))
            value = 1.02 ** len(self.asked)
            return {cell: Launched(value, value, value) for cell in cells}

    found = conduct([[0]], Design(Rules(rounds=3), 10, 1), Drifting())
    assert found.judged[0].answers["median"].ratio == pytest.approx(1.0)
    assert not found.judged[0].alarm


def test_upper_bound_of_a_rate() -> None:
    assert upper(0, 59) == pytest.approx(0.05, abs=0.001)
    assert upper(15, 3000) == pytest.approx(0.0077, abs=0.0001)
    assert upper(3, 3) == 1.0
