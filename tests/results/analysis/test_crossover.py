"""Which side is fastest at which size: known rows, known marks and sentences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.results.analysis.crossover import CROSSOVER, FASTEST, fastest, marks, sentences, stretches


def row(backend: str, size: int, value: float | None, **more: Any) -> dict[str, Any]:
    usual = {"benchmark": "allreduce", "unit": "us", "binding": "x", "device": "cpu", "dtype": "int32", "op": "sum"}
    return {**usual, "backend": backend, "size_bytes": size, "value": value, **more}


def sweep(**values: list[float]) -> list[dict[str, Any]]:
    return [row(name, 8 << i, v) for name, each in values.items() for i, v in enumerate(each)]


def test_the_size_at_which_it_changes_is_marked() -> None:
    rows = sweep(mpi=[1, 2, 9], gloo=[5, 5, 5])
    assert marks(rows) == [FASTEST, FASTEST, "", "", "", CROSSOVER]
    assert sentences(rows) == ["allreduce: mpi is fastest up to 16 B, gloo from 32 B"]


def test_there_and_back() -> None:
    rows = sweep(mpi=[1, 9, 1], gloo=[5, 5, 5])
    assert sentences(rows) == ["allreduce: mpi is fastest up to 8 B, gloo at 16 B, mpi from 32 B"]


def test_one_side_has_no_rival_and_one_winner_no_crossover() -> None:
    assert marks(sweep(mpi=[1, 2])) == ["", ""] and sentences(sweep(mpi=[1, 2])) == []
    assert sentences(sweep(mpi=[1, 2], gloo=[3, 3])) == ["allreduce: mpi is fastest at every size"]


def test_bandwidth_is_the_other_way_round() -> None:
    rows = [row("mpi", 8, 10.0, unit="MB/s"), row("gloo", 8, 20.0, unit="MB/s")]
    assert marks(rows) == ["", FASTEST]


def test_the_median_over_launches_decides() -> None:
    rows = [row("mpi", 8, v) for v in (1, 9, 9)] + [row("gloo", 8, v) for v in (5, 5, 5)]
    assert marks(rows) == [""] * 6, "the fastest launch of the one is faster than any of the other"
    assert sentences(rows) == ["allreduce: at no size is a side faster beyond the spread"]
    rows = [row("mpi", 8, v) for v in (9.1, 9, 9.2)] + [row("gloo", 8, v) for v in (5, 5.1, 5.2)]
    assert marks(rows) == ["", "", "", FASTEST, FASTEST, FASTEST]


def test_two_launches_apart_by_chance_name_nobody() -> None:
    """Of two launches a side without a difference, the one range lies below the other at each third size."""
    rows = [row("mpi", 8, v) for v in (1.00, 1.03)] + [row("gloo", 8, v) for v in (1.05, 1.09)]
    assert marks(rows) == [""] * 4


def test_one_launch_against_several_names_nobody() -> None:
    rows = [row("mpi", 8, 1.0)] + [row("gloo", 8, v) for v in (5, 5.1, 5.2)]
    assert marks(rows) == [""] * 4


def test_medians_decide_where_a_mean_says_otherwise() -> None:
    """A few late calls make mpi's mean five times its median."""
    rows = [
        row("mpi", 8, 5.81, median_us=0.61, ci_low_us=0.60, ci_high_us=0.62),
        row("gloo", 8, 1.12, median_us=1.11, ci_low_us=1.10, ci_high_us=1.13),
    ]
    assert marks(rows) == [FASTEST, ""] and sentences(rows) == ["allreduce: mpi is fastest at every size"]


def test_intervals_that_overlap_name_nobody() -> None:
    rows = [
        row("mpi", size, 1.0, median_us=1.0, ci_low_us=0.9, ci_high_us=1.0 + reach)
        for size, reach in ((8, 0.2), (16, 0))
    ] + [row("gloo", size, 1.1, median_us=1.1, ci_low_us=1.05, ci_high_us=1.2) for size in (8, 16)]
    assert marks(rows) == ["", FASTEST, "", ""]
    assert sentences(rows) == ["allreduce: mpi is fastest at 16 B; at 1 of 2 sizes no side is faster beyond the spread"]


def test_a_printed_mean_is_not_held_against_a_median() -> None:
    rows = [row("mpi", 8, 1.0, median_us=1.0), row("gloo", 8, 9.0, source="OMB")]
    assert marks(rows) == ["", ""]


def test_bindings_of_one_backend_are_told_apart_and_types_are_apart() -> None:
    rows = [row("mpi", 8, 1, binding="native"), row("mpi", 8, 2, binding="mpi4py"), row("gloo", 8, 3)]
    assert sentences(rows) == ["allreduce: mpi native is fastest at every size"]
    rows += [row("gloo", 8, 1, dtype="float32"), row("mpi", 8, 2, dtype="float32", binding="native")]
    assert sentences(rows) == [
        "allreduce float32: gloo is fastest at every size",
        "allreduce int32: mpi native is fastest at every size",
    ]


def test_a_row_without_a_value_is_nobodys_rival() -> None:
    assert marks([row("mpi", 8, None), row("gloo", 8, 3)]) == ["", ""]


@given(st.lists(st.tuples(st.floats(0.1, 99), st.floats(0.1, 99)), min_size=1, max_size=8))
def test_as_many_winners_as_sizes_and_one_crossover_for_each_change(values: list[tuple[float, float]]) -> None:
    rows = sweep(mpi=[a for a, _ in values], gloo=[b for _, b in values])
    order = [side[0] for side in fastest(rows).values() if side is not None]
    told = marks(rows)
    assert len(order) == sum(a != b for a, b in values) == sum(map(bool, told))
    assert told.count(CROSSOVER) == sum(a != b for a, b in pairwise(order))


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ("aa", "a is fastest at every size"),
        ("ab", "a is fastest up to 1 B, b from 2 B"),
        ("-aab", "a is fastest from 2 B to 4 B, b from 8 B"),
        ("aab-", "a is fastest up to 2 B, b at 4 B"),
        ("-a-", "a is fastest at 2 B"),
        ("a-a", "a is fastest from 1 B to 4 B"),
    ],
)
def test_stretches_begin_and_end_where_somebody_is_fastest(places: str, text: str) -> None:
    named = [(f"{1 << number} B", None if side == "-" else side) for number, side in enumerate(places)]
    assert stretches(named) == text
