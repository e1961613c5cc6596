"""Rows of a name and its numbers."""

from __future__ import annotations

import pytest

from omb_py.results.dialects.reading import BadTable
from omb_py.results.dialects.sampled import LOWER, sampled_row
from omb_py.results.statistics.launch_time import printed_text, time_of
from omb_py.results.store.row import Row


def row(unit: str, better: str, value: float) -> Row:
    made: Row = sampled_row("tool", "x", unit, better, [value])  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(("unit", "better"), [("W", "lower"), ("s", "lower"), ("req/s", "higher"), ("s", "higher")])
def test_more_of_what_is_compared_is_always_worse(unit: str, better: str) -> None:
    one, two = (time_of(row(unit, better, value)) for value in (1.0, 2.0))
    assert one is not None and two is not None
    assert (two > one) is (better == "lower")


def test_a_number_is_printed_as_the_tool_does() -> None:
    rate = row("req/s", "higher", 250.0)
    assert printed_text(rate, time_of(rate) or 0.0) == "250.00 req/s"
    watt = row("W", "lower", 300.0)
    assert printed_text(watt, time_of(watt) or 0.0) == "300.00 W"
    assert printed_text(row("ms", "lower", 1.5), 1500.0, " us") == "1500.00 us"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_what_has_no_ratio_is_refused(value: float) -> None:
    with pytest.raises(BadTable, match="only numbers above 0"):
        sampled_row("tool", "x", "s", LOWER, [value])
