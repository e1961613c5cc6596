"""Text has a contrast of 4.5:1 and graphics of 3:1 (WCAG 2.2, success criteria 1.4.3 and 1.4.11), light and dark."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omb_py.dashboards
import omb_py.printing.writers
from omb_py.dashboards.base import theme
from omb_py.dashboards.figures import maps
from omb_py.dashboards.figures.maps import contrast, ink_on, on_scale

TEXT, GRAPHICS = 4.5, 3.0
PAGES = (
    Path(omb_py.dashboards.__path__[0]) / "assets" / "explorer.html",
    Path(omb_py.printing.writers.__path__[0]) / "page.css",
)
COLOURS = st.integers(0, 2**24 - 1).map(lambda number: f"#{number:06x}")


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [("#ffffff", "#000000", 21), ("#777777", "#ffffff", 4.48), ("#ff0000", "#ffffff", 4.0), ("#123456", "#123456", 1)],
)
def test_known_ratios(a: str, b: str, ratio: float) -> None:
    """Those of WebAIM's contrast checker."""
    assert contrast(a, b) == contrast(b, a) == pytest.approx(ratio, abs=0.005)


@given(COLOURS)
def test_there_is_an_ink_for_every_colour(colour: str) -> None:
    assert contrast(ink_on(colour), colour) >= TEXT


def test_a_scale_is_mixed_between_its_steps() -> None:
    scale = ((0.0, "#000000"), (0.5, "#808080"), (1.0, "#ff8000"))
    assert [on_scale(scale, at) for at in (-1, 0, 0.25, 0.5, 1, 2)] == [
        "#000000",
        "#000000",
        "#404040",
        "#808080",
        "#ff8000",
        "#ff8000",
    ]


@given(st.floats(0.05, 20))
def test_the_ratios_on_the_map_are_read(ratio: float) -> None:
    import pandas as pd

    row = {"benchmark": "b", "comparability_key": "k", "ranks": 4, "size_bytes": 8, "ratio": ratio, "verdict": "slower"}
    more = {"base_us": 1.0, "new_us": ratio, "launches_base": 5, "launches_new": 5}
    view = maps.ratio_map(pd.DataFrame([row | more]), ("old", "new"))
    assert view.spec is not None
    (written,) = view.spec["layout"]["annotations"]
    (((value,),),) = (view.spec["data"][1]["z"],)
    cell = on_scale([tuple(step) for step in view.spec["data"][1]["colorscale"]], (value + 1) / 2)
    assert contrast(written["font"]["color"], cell) >= TEXT


@pytest.mark.parametrize("name", theme.THEMES)
def test_figures(name: str) -> None:
    layout = theme.template(name)["layout"]
    paper = layout["paper_bgcolor"]
    assert contrast(layout["font"]["color"], paper) >= TEXT
    for colour in (*theme.COLOURS, *theme.VERDICT_COLOURS.values(), theme.GREY, layout["xaxis"]["linecolor"]):
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
