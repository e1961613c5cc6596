"""A view on the explorer's page, as Dash's components: what is drawn, and what a phone shows otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dash import dcc

from omb_py.dashboards.base.view import View
from omb_py.dashboards.explorer.layout import figure

LEFT = {"data": [{"type": "scatter", "x": [8], "y": [1.0]}], "layout": {"height": 400, "legend": {"y": -0.2}}}


def shown(view: View, room: str = "") -> dict[str, list[Any]]:
    """The components of a view by their kind."""
    found: dict[str, list[Any]] = {}
    for part in parts(figure(view, "light", room, ("", ""))):
        found.setdefault(type(part).__name__, []).append(part)
    return found


def parts(component: Any) -> Iterator[Any]:
    yield component
    children = getattr(component, "children", None)
    for child in children if isinstance(children, list) else [children]:
        if hasattr(child, "children") or isinstance(child, dcc.Graph):
            yield from parts(child)


def view(spec: Any, kind: str = "curves", notes: tuple[str, ...] = ()) -> View:
    return View(kind, "a finding", "2 launches", spec, ("size",), ((8,),), notes=notes)


def test_what_has_a_figure_is_drawn_and_what_has_only_a_table_opens_it() -> None:
    drawn, table = shown(view(LEFT)), shown(view(None))
    assert drawn["Graph"][0].figure["data"] == LEFT["data"] and not drawn["Details"][0].open
    assert "Graph" not in table and table["Details"][0].open
    assert drawn["H3"][0].children == table["H3"][0].children == "a finding"


@pytest.mark.parametrize(("kind", "style"), [("status", "label"), ("curves", "soft")])
def test_what_the_page_of_an_empty_store_says_is_no_footnote(kind: str, style: str) -> None:
    said = shown(view(None, kind, ("press Reload",)))["P"][-1]
    assert (said.children, said.className) == ("press Reload", style)


def test_a_phone_gets_what_the_figure_says_for_it() -> None:
    narrow_layout = {"xaxis": {"domain": [0, 1]}, "height": 600}
    layout = {**LEFT["layout"], "xaxis": {"domain": [0, 0.45], "type": "log"}, "meta": {"narrow": narrow_layout}}
    beside = view({**LEFT, "layout": layout})
    (wide,), (narrow,) = shown(beside)["Graph"], shown(beside, "narrow")["Graph"]
    assert wide.figure["layout"]["xaxis"]["domain"] == [0, 0.45]
    drawn = narrow.figure["layout"]
    assert drawn["xaxis"] == {"domain": [0, 1], "type": "log"} and drawn["height"] == 600
