from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from omb_py.results.compare.judge import CompareRules
from omb_py.results.compare.match import (
    COLUMNS,
    PROGRAM,
    Matched,
    declared_rules_of,
    differing,
    from_row,
    match,
    round_of,
    rounds_of,
    rule_tags,
)
from omb_py.results.compare.tags import COMPARE_PAIR, COMPARE_ROUND, COMPARE_ROUNDS
from omb_py.results.store.keys import COMPARED, comparability_key

Row = dict[str, Any]
Make = Callable[..., Row]


@pytest.fixture
def row(make_row: Make) -> Make:
    def make(minute: int = 0, program: str = "p", **values: Any) -> Row:
        made = make_row(
            **{
                "launch_id": f"r-{minute}",
                "launch_index": minute,
                "started_at": f"2026-11-21T10:{minute:02}:00",
                "size_bytes": 8,
                "ranks": 2,
                "binding": "native",
                "timing": "local_max",
                "median_us": 10.0,
                "mean_us": 11.0,
                "p99_us": 20.0,
                "tags": {},
                **values,
            }
        )
        made["comparability_key"] = comparability_key(made, program)
        return made

    return make


def test_cells_of_both_sides_by_size_and_launches_by_time(row: Make) -> None:
    base = [row(m, size_bytes=s, median_us=10.0 + m) for m in (4, 0) for s in (64, 8)]
    new = [row(m, size_bytes=s) for m in (1, 5) for s in (64, 8)]
    cells = match(base, new).cells
    assert [cell.base["size_bytes"] for cell in cells] == [8, 64]
    assert [launch.median_us for launch in cells[0].rounds[0].base] == [10.0, 14.0]


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        ((0, 3), (1, 2), True),  # ABBA
        ((0, 2), (1, 3), True),  # ABAB
        ((0, 1), (2, 3), False),  # AABB
        ((0, 3, 4), (1, 2), False),
    ],
)
def test_pairs_where_launches_took_turns(row: Make, base: tuple[int], new: tuple[int], expected: bool) -> None:
    (cell,) = match([row(m) for m in base], [row(m) for m in new]).cells
    assert cell.rounds[0].paired is expected


def test_stored_pairs_are_kept_whatever_their_order(row: Make) -> None:
    def of(m: int, pair: int, **more: Any) -> Row:
        return row(m, tags={COMPARE_ROUND: "1", COMPARE_PAIR: str(pair)}, **more)

    # drawn: BASE NEW, BASE NEW, NEW BASE; in time two launches of NEW stand side by side
    base = [of(0, 0, median_us=10.0), of(2, 1, median_us=11.0), of(5, 2, median_us=12.0)]
    new = [of(1, 0, median_us=20.0), of(3, 1, median_us=21.0), of(4, 2, median_us=22.0)]
    (cell,) = match(base, new).cells
    (measured,) = cell.rounds
    assert measured.paired and measured.pairs == ("r1:0", "r1:1", "r1:2")
    assert [launch.median_us for launch in (*measured.base, *measured.new)] == [10, 11, 12, 20, 21, 22]
    # a launch that broke leaves half a pair
    (cell,) = match(base, [new[0], new[2]]).cells
    assert cell.rounds[0].pairs == ("r1:0", "r1:2") and len(cell.rounds[0].base) == 2
    # sides of two comparisons have no pair in common
    (cell,) = match(base[:2], [of(7, 0, run_id="q"), of(8, 1, run_id="q")]).cells
    assert not cell.rounds[0].paired and cell.rounds[0].nights[0]


def test_nights_are_told_where_the_sides_did_not_take_turns(row: Make) -> None:
    base = [row(m, run_id=f"a{day}", started_at=f"2026-11-{day}T10:0{m}:00") for day in (20, 21) for m in (0, 1)]
    new = [row(m, run_id="b", started_at=f"2026-11-21T11:0{m}:00") for m in (0, 1)]
    measured = match(base, new).cells[0].rounds[0]
    one, two = sorted(set(measured.nights[0]))
    assert not measured.paired and two == pytest.approx(one + 1)
    assert measured.nights == ((one, one, two, two), (two, two)), "an hour apart is the same night"
    unknown = [{**each, "started_at": "then"} for each in new]
    assert match(base, unknown).cells[0].rounds[0].nights == ((), ())
    imported = [[{**row, "source": "OMB", "value": 9.0, "median_us": None} for row in side] for side in (base, new)]
    assert match(*imported).cells[0].rounds[0].nights == measured.nights, "the night of a file is known"


def test_a_strange_part_of_the_error_rate_is_not_believed(row: Make) -> None:
    def alpha(text: str) -> float:
        return declared_rules_of([row(tags={"compare_alpha": text})], CompareRules()).alpha

    assert alpha("0.005") == 0.005 and alpha("1e-3") == 0.01 and alpha("0.0005") == 0.0005
    assert {alpha(text) for text in ("", "nan", "0.0", "1.5", "-0.1", "x", "1e400")} == {0.01}


def test_a_stored_comparison_keeps_the_rules_it_was_judged_by_unless_others_are_asked_for(row: Make) -> None:
    rules = CompareRules(alpha=0.005, delta=0.2, tail_delta=0.5)
    rows = [row(tags=rule_tags(rules))]
    assert declared_rules_of(rows, CompareRules()) == rules
    assert declared_rules_of(rows, CompareRules(delta=0.03), asked=["delta"]) == replace(rules, delta=0.03)
    assert rule_tags(CompareRules()) == {}


def test_rounds_are_kept_apart(row: Make) -> None:
    def of(m: int, number: int) -> Row:
        return row(m, tags={COMPARE_ROUND: str(number), COMPARE_ROUNDS: "3"})

    base, new = [of(0, 1), of(2, 2)], [of(1, 1), of(3, 2)]
    (cell,) = match(base, new).cells
    assert [len(number.base) for number in cell.rounds] == [1, 1]
    assert rounds_of(base) == 3 and rounds_of([row()]) == 1
    assert round_of(row(tags={COMPARE_ROUND: "nonsense"})) == 1


def test_what_is_compared_may_be_the_binding(row: Make) -> None:
    found = match([row(0)], [row(1, binding="mpi4py")])
    assert len(found.cells) == 1


def test_where_a_side_has_several_bindings_each_is_a_cell(row: Make) -> None:
    both = [[row(m, binding=b) for b in ("native", "mpi4py")] for m in (0, 1)]
    found = match(*both)
    assert [(c.base["binding"], c.new["binding"]) for c in found.cells] == [("mpi4py",) * 2, ("native",) * 2]
    one = match(both[0], [row(1)])
    assert [c.base["binding"] for c in one.cells] == ["native"]
    assert [r["binding"] for r in one.only["BASE"]] == ["mpi4py"]


def test_other_keys_are_not_compared_and_the_fields_are_named(row: Make) -> None:
    found = match([row(0), row(0, size_bytes=64)], [row(1, ranks=4, timing="global_span"), row(1, size_bytes=128)])
    assert found.cells == []
    (one,) = found.incomparable
    assert one.fields == ("timing", "ranks")
    assert [r["size_bytes"] for side in ("BASE", "NEW") for r in found.only[side]] == [64, 128]  # type: ignore[index]


def test_another_program_is_named(row: Make) -> None:
    assert differing(row(0), row(1, program="q")) == (PROGRAM,)
    assert differing(row(0), row(1)) == ()


def test_nothing(row: Make) -> None:
    found = match([], [row()])
    assert found.cells == [] and len(found.only["NEW"]) == 1
    assert match([], []) == Matched()


def test_imported_rows_have_values_only(row: Make) -> None:
    imported = {"median_us": None, "mean_us": None, "p99_us": None, "source": "OMB"}
    (cell,) = match([row(0, value=9.0, **imported)], [row(1, value=12.0, **imported)]).cells
    assert cell.statistic == "mean" and not cell.rounds[0].paired
    assert [(one.median_us, one.mean_us) for one in (*cell.rounds[0].base, *cell.rounds[0].new)] == [
        (None, 9.0),
        (None, 12.0),
    ]
    bandwidth = from_row(row(0, value=4.0, unit="MB/s", **imported))
    assert bandwidth is not None and bandwidth.mean_us == 2.0, "8 bytes at 4 MB/s: more bandwidth is less time"
    assert from_row(row(0, **imported | {"value": None})) is None
    assert from_row(row(0, median_us=None)) is None, "a row of ours without samples timed nothing"


def test_medians_and_means_are_never_mixed(row: Make) -> None:
    imported = {"median_us": None, "mean_us": None, "p99_us": None, "source": "OMB", "value": 9.0}
    found = match([row(0), row(2)], [row(m, **imported) for m in (1, 3)])
    (one,) = found.incomparable
    assert not found.cells and one.fields == ("statistic",)
    assert (one.base["statistic"], one.new["statistic"]) == ("median", "mean")
    # also within a side
    found = match([row(0), row(2, **imported)], [row(1), row(3)])
    assert not found.cells and found.incomparable[0].base["statistic"] == "mean and median"
    # and where the keys differ too, the reasons that a reader understands are named
    assert differing(row(0), row(1, program="q", **imported)) == ("source", "statistic")


def test_the_thread_level_may_differ_in_some_cells_only(row: Make) -> None:
    base = [row(m, size_bytes=s, thread_level="single" if s == 8 else "multiple") for m in (0, 3) for s in (8, 64)]
    new = [row(m, size_bytes=s, thread_level="multiple", binding="mpi4py") for m in (1, 2) for s in (8, 64)]
    assert len(match(base, new).cells) == 2


def test_limited_by_synchronisation(row: Make) -> None:
    (cell,) = match([row(0, sync_limited=True)], [row(1, sync_limited=False)]).cells
    assert cell.limited


def test_the_columns_that_are_read_hold_the_key() -> None:
    assert set(COMPARED) <= set(COLUMNS) and len(set(COLUMNS)) == len(COLUMNS)
