"""Tabs, filters that narrow each other, and the drawer of one cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import TABS
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import State, drawer, parse, query, views
from omb_py.dashboards.views import registry
from tests.dashboards.stores import write
from tests.dashboards.views.test_registry import called, texts


@pytest.fixture(scope="module")
def data(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Data:
    """Allreduce of two libraries on 4 ranks, and bcast of one of them on 8."""
    other = frame[frame["library"] == "MPICH"].assign(benchmark="bcast", ranks=8, run_id="b")
    other["launch_id"] += "-b"
    other["comparability_key"] += "-b"
    return Data(write(tmp_path_factory.mktemp("s") / "s", pd.concat([frame, other])))


def test_filters_leave_what_fits_the_others(data: Data) -> None:
    every = data.choices()
    assert every["library"] == ["MPICH", "Open MPI"] and every["ranks"] == ["4", "8"]
    left = data.choices({"benchmark": ["bcast"]})
    assert (left["library"], left["ranks"]) == (["MPICH"], ["8"])
    assert left["benchmark"] == ["allreduce", "bcast"], "its own values stay, so that another can be chosen"
    both = data.choices({"benchmark": ["bcast"], "library": ["Open MPI"]})
    assert (both["benchmark"], both["library"], both["ranks"]) == (["allreduce"], ["MPICH"], [])
    assert data.sizes({"library": ["none"]}) == [] and data.sizes({"ranks": ["8"]}) == [8, 1024, 65536]


CHOSEN = st.dictionaries(
    st.sampled_from(FILTERS),
    st.lists(st.sampled_from(["allreduce", "bcast", "MPICH", "Open MPI", "4", "8", "cpu", "x", "-1"]), max_size=2),
    max_size=3,
)


@pytest.mark.slow
@given(CHOSEN)
def test_a_choice_is_offered_where_it_would_leave_a_cell(data: Data, wanted: dict[str, list[str]]) -> None:
    offered = data.choices(wanted)
    for name in FILTERS:
        for value in data.choices()[name]:
            assert (value in offered[name]) == bool(len(data.select({**wanted, name: [value]})))


def shown(data: Data, view: str, changed: str = "view.value", **values: Any) -> dict[str, Any]:
    known = {"view.value": view, "version.data": data.version, **values}
    return called(data, "figures.children", known, changed)


@pytest.mark.slow
def test_each_tab_is_a_link_that_keeps_the_filters(data: Data) -> None:
    answer = shown(data, "history", **{"library.value": ["MPICH"]})
    links = {link["props"]["children"]: link["props"] for link in answer["tabs"]["children"]}
    assert tuple(links) == TABS
    assert [name for name, link in links.items() if "chosen" in link["className"]] == ["History"]
    for tab, link in links.items():
        state = parse(link["href"])
        assert registry.offered()[state.view].tab == tab and state.filters == {"library": ["MPICH"]}
    assert [choice["value"] for choice in answer["view"]["options"]] == [*registry.offered_in("History")]
    assert answer["benchmark"]["options"] == ["allreduce", "bcast"] and answer["ranks"]["options"] == ["4", "8"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "anew"),
    [
        ({"theme.value": "dark"}, False),
        ({"version.data": "later"}, False),
        ({"view.value": "history"}, True),
        ({"library.value": ["MPICH"]}, True),
    ],
    ids=["theme", "new launches", "view", "filter"],
)
def test_the_same_view_gets_new_data_and_no_new_elements(data: Data, changed: dict[str, Any], anew: bool) -> None:
    """New elements would lose a zoom, and a series that the legend isolated."""
    page = shown(data, "curves")["shown"]["data"]
    answer = shown(data, "curves", next(iter(changed)), **{"shown.data": page, **changed})
    assert ("figures" in answer) == anew and answer["about"]["children"]


def points(view: Any) -> Iterator[tuple[Any, str]]:
    for number, cells in view.cells.items():
        trace = view.spec["data"][number]
        assert len(trace["x"]) == len(cells)
        yield from zip(trace["x"], cells, strict=True)


@pytest.mark.slow
def test_every_point_of_a_series_leads_to_its_cell(data: Data) -> None:
    drawn, _ = views(data, State("curves", filters={"benchmark": ["allreduce"]}))
    names = [(x, name) for one in drawn for x, name in points(one)]
    assert len(names) >= 3
    for x, name in names:
        title, figures = drawer(data, name)
        size = series.of_cell(data.frame, name)["size_bytes"].iloc[-1]
        assert title.startswith("allreduce") and size == x
        assert figures[0].kind == "distribution" and any(figure.kind == "trace" for figure in figures)


@pytest.mark.slow
def test_a_click_on_the_map_and_the_small_multiples_leads_to_the_cell(data: Data) -> None:
    drawn = {view.kind: view for view in views(data, State("first"))[0]}
    rows = [name for row in drawn["map"].cells[0] for name in row if name]
    assert rows and all(len(series.of_cell(data.frame, name)) for name in rows)
    libraries = {series.of_cell(data.frame, name)["library"].iloc[-1] for _, name in points(drawn["multiples"])}
    assert libraries == {"MPICH", "Open MPI"}


@pytest.mark.slow
def test_the_first_screen_shows_the_quantity_that_is_chosen(data: Data) -> None:
    def axis(quantity: str) -> str:
        (curves,) = [view for view in views(data, State("first", quantity))[0] if view.kind == "multiples"]
        return str(curves.spec["layout"]["yaxis"]["title"]["text"])

    assert (axis("auto"), axis("time"), axis("busbw")) == ("time (µs)", "time (µs)", "bus bandwidth (GB/s)")
    assert axis("ratio") == "time over MPICH 5.0.2's"


@pytest.mark.slow
def test_curves_have_a_ratio_where_there_are_two(data: Data) -> None:
    (view,) = views(data, State("curves", "ratio"))[0]
    first, second = [trace["y"] for trace in view.spec["data"] if trace["mode"] == "lines+markers"]
    assert first == pytest.approx([1, 1, 1], rel=1e-3) and second == pytest.approx([1, 1, 2], rel=1e-3)
    assert view.title.startswith("allreduce, 4 ranks: ") and "up to 2× apart, at 64 KiB" in view.title
    alone = State("curves", "ratio", filters={"library": ["MPICH"]})
    assert views(data, alone) == ([], registry.offered()["curves"].empty)


@pytest.mark.parametrize("name", ["", "/", "none/k8", "r-0/none", "<script>", "r-0/k8/x" * 500])
def test_a_cell_that_is_not_there(data: Data, name: str) -> None:
    assert drawer(data, name) == ("", [])
    assert parse(query(State(cell=name))).cell == name


@pytest.mark.slow
def test_the_drawer_follows_the_link_and_leaves_the_figures(data: Data) -> None:
    cell = next(name for _, name in points(views(data, State("curves"))[0][0]))
    opened = called(data, "drawn.children", {"cell.value": cell, "version.data": data.version}, "cell.value")
    assert opened["drawer"]["hidden"] is False
    assert any("the medians of 3 launches" in text for text in texts(opened["drawn"]["children"]))
    answer = shown(data, "curves", "cell.value", **{"cell.value": cell, "shown.data": ["?view=curves", "0", "dark"]})
    assert answer["link"]["search"] == query(State("curves", cell=cell)) and "figures" not in answer
    closed = called(data, "drawn.children", {"cell.value": "", "version.data": data.version}, "cell.value")
    assert closed["drawer"]["hidden"] is True and closed["drawn"]["children"] == []
    gone = called(data, "drawn.children", {"cell.value": "x/y", "version.data": data.version}, "cell.value")
    assert "The store has no such cell." in set(texts(gone["drawn"]["children"]))


def test_a_store_without_a_cell_has_tabs(tmp_path: Path) -> None:
    empty = Data(tmp_path)
    assert all(values == [] for values in empty.choices({"library": ["x"]}).values()) and empty.sizes({}) == []
    assert len(shown(empty, "curves")["tabs"]["children"]) == len(TABS)
