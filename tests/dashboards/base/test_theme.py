"""Colours that are seen, dashes that say what they are, axes with ticks enough, times in their unit."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.dashboards.base import theme
from omb_py.dashboards.figures.maps import contrast

LEAST_CONTRAST = 3.0
"""Of graphical objects: WCAG 2.2, success criterion 1.4.11."""


@pytest.mark.parametrize("name", theme.THEMES)
def test_every_colour_is_seen_on_either_background(name: str) -> None:
    paper = theme.template(name)["layout"]["paper_bgcolor"]
    for colour in (*theme.COLOURS, *theme.VERDICT_COLOURS.values(), theme.GREY):
        assert contrast(colour, paper) >= LEAST_CONTRAST, colour


def test_what_is_no_series_has_a_dash_of_its_own() -> None:
    assert len({*theme.DASHES, theme.TAIL, theme.BOUND}) == len(theme.DASHES) + 2
    assert {theme.line(index)["dash"] for index in range(36)} == {*theme.DASHES}


@given(st.floats(1e-2, 1e8), st.floats(1.0001, 1e4))
def test_an_axis_has_three_ticks_or_more_inside_it(low: float, factor: float) -> None:
    axis = theme.value_axis("time (µs)", values=[low, low * factor])
    ends = [10**end for end in axis["range"]]
    assert len(axis["tickvals"]) >= 3 and len({*axis["ticktext"]}) == len(axis["tickvals"])
    assert all(ends[0] * 0.999 <= tick <= ends[1] * 1.001 for tick in axis["tickvals"])


@given(st.floats(1e-3, 1e6), st.floats(1.05, theme.NARROW * 0.85))
def test_a_narrow_axis_has_ticks_all_along(low: float, factor: float) -> None:
    axis = theme.value_axis("ratio", values=[low, low * factor])
    ends = [10**end for end in axis["range"]]
    places = [ends[0], *axis["tickvals"], ends[1]]
    assert max(b - a for a, b in pairwise(places)) <= 0.5 * (ends[1] - ends[0])


def test_long_times_have_their_unit_at_the_ticks() -> None:
    long = theme.value_axis("time (µs)", values=[8, 3e6])
    assert (
        long["title"]["text"] == "time" and long["ticktext"][0].endswith(" µs") and long["ticktext"][-1].endswith(" s")
    )
    assert any(text.endswith(" ms") for text in long["ticktext"])
    short = theme.value_axis("time (µs)", values=[8, 300])
    assert short["title"]["text"] == "time (µs)" and not any(text.endswith("s") for text in short["ticktext"])


@given(st.floats(1e-3, 1e12))
def test_a_duration_is_what_it_says(us: float) -> None:
    number, unit = theme.duration(us).rsplit(" ", 1)
    value = float(number.replace(" ", "")) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
    assert math.isclose(value, us, rel_tol=0.006)
