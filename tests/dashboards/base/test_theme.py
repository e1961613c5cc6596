"""Colours, dashes and axes; contrasts of WCAG 2.2: 4.5:1 for text (1.4.3), 3:1 for graphics (1.4.11)."""

from __future__ import annotations

import itertools
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omb_py.dashboards
import omb_py.printing.writers
from omb_py.dashboards.base import theme

"""Of graphical objects: WCAG 2.2, success criterion 1.4.11."""


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


def test_an_axis_has_one_unit_and_a_linear_one_begins_at_zero() -> None:
    long = theme.value_axis("time (µs)", values=[8, 3e6])
    assert long["title"]["text"] == "time (µs)" and not any("s" in text for text in long["ticktext"])
    linear = theme.value_axis("GB/s", log=False, values=[1, 50, None])
    assert linear["range"][0] == 0 and 50 < linear["range"][1] < 60


@given(st.floats(1e-3, 1e12))
def test_a_duration_is_what_it_says(us: float) -> None:
    number, unit = theme.duration(us).rsplit(" ", 1)
    value = float(number.replace(" ", "")) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit]
    assert math.isclose(value, us, rel_tol=0.006)


TEXT, GRAPHICS = 4.5, 3.0
PAGES = (
    Path(omb_py.dashboards.__path__[0]) / "assets" / "explorer.html",
    Path(omb_py.printing.writers.__path__[0]) / "page.css",
)


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 to 1 (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance)."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours as WCAG 2.2 defines it, 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [("#ffffff", "#000000", 21), ("#777777", "#ffffff", 4.48), ("#ff0000", "#ffffff", 4.0), ("#123456", "#123456", 1)],
)
def test_known_ratios(a: str, b: str, ratio: float) -> None:
    """Those of WebAIM's contrast checker."""
    assert contrast(a, b) == contrast(b, a) == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize("name", theme.THEMES)
def test_figures(name: str) -> None:
    layout = theme.template(name)["layout"]
    paper = layout["paper_bgcolor"]
    assert contrast(layout["font"]["color"], paper) >= TEXT
    for colour in (
        *theme.COLOURS,
        *(colour for colour, _ in theme.VERDICT_LOOKS.values()),
        theme.GREY,
        layout["xaxis"]["linecolor"],
    ):
        assert contrast(colour, paper) >= GRAPHICS, colour
    for colour in (layout["modebar"]["color"], layout["modebar"]["activecolor"]):
        assert contrast(colour, paper) >= GRAPHICS, colour


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_texts_of_pages(page: Path) -> None:
    """Every colour that a page has for text, on both colours that it has for backgrounds."""
    blocks = re.findall(r"(:root[^{]*)\{([^}]*)\}", page.read_text())
    known = [dict(re.findall(r"--(\w+): (#[0-9a-fA-F]{6})", block)) for _, block in blocks]
    assert len([colours for colours in known if "paper" in colours]) >= 2, "light and dark"
    for colours in known:
        names = [name for name in ("text", "soft", "accent", "bad", "good", "odd") if name in colours]
        for name, behind in itertools.product(names, ("paper", "code")):
            assert contrast(colours[name], colours[behind]) >= TEXT, f"{name} on {behind}"


def test_the_colour_of_what_is_slower_is_that_of_the_last_side_alone() -> None:
    slower, _ = theme.VERDICT_LOOKS["SLOWER"]
    assert theme.COLOURS.index(slower) == len(theme.COLOURS) - 1
