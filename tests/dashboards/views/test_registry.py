"""One entry is all that a view needs to stand in the report and in the explorer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.view import TABS, InReport, Shown, View, ViewEntry, table
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import choices, parse, query, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.views import registry
from omb_py.dashboards.views.cells import Cells
from tests.dashboards.stores import write


@pytest.fixture
def store(tmp_path: Path, frame) -> Path:
    return write(tmp_path / "s", frame)


def counted(cells: Cells, count: str = "ranks") -> Iterator[Shown]:
    """A view as a contributor would write it: how many cells each benchmark has."""
    for benchmark, rows in cells.rows.groupby("benchmark", observed=True):
        cell_count = View("counted", f"{benchmark} by {count}: {len(rows)} cells", "", None, **table(("cells",), []))
        yield Shown(cell_count, rows)


COUNTED = ViewEntry("counted", "Compare", "cells of each", counted, "No cell.", inputs=("count",), report=InReport(61))


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> ViewEntry:
    monkeypatch.setattr(registry, "ENTRIES", [*registry.ENTRIES, COUNTED])
    return COUNTED


def texts(part: Any) -> Iterator[str]:
    """All texts of what Dash has sent."""
    if isinstance(part, str):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from texts(inner)


def called(data: Data, output: str, values: dict[str, Any], changed: str) -> dict[str, Any]:
    """Call the callback with this output as a browser does; inputs without a value are null."""
    client = make(data).server.test_client()
    host = {"Host": "127.0.0.1:8050"}
    dependencies = client.get("/_dash-dependencies", headers=host).get_json()
    (callback,) = (known for known in dependencies if output in known["output"] and not known["clientside_function"])
    several = callback["output"].strip(".").split("...")
    outputs = [dict(zip(("id", "property"), name.split("."), strict=True)) for name in several]
    fill = [
        [{**part, "value": values.get(f"{part['id']}.{part['property']}")} for part in callback[kind]]
        for kind in ("inputs", "state")
    ]
    body = {
        "output": callback["output"],
        "outputs": outputs if len(outputs) > 1 else outputs[0],
        "inputs": fill[0],
        "state": fill[1],
        "changedPropIds": [changed],
    }
    answer = client.post("/_dash-update-component", json=body, headers=host)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    response: dict[str, Any] = answer.get_json()["response"]
    return response


@pytest.mark.slow
def test_a_new_entry_is_in_the_report_at_its_place(store: Path, entry: ViewEntry) -> None:
    made = report(store, StoreSelection())
    assert [view.kind for view in made.tabs["Compare"].views][-1] == "counted"
    assert made.tabs["Compare"].views[-1].commands[0].startswith("omb-py allreduce -n 4")
    assert "<h3>allreduce by ranks: 18 cells</h3>" in page(made)


@pytest.mark.slow
def test_a_new_entry_is_in_the_explorer(store: Path, entry: ViewEntry) -> None:
    assert parse("?view=counted").view == "counted" and query(parse("?view=counted")) == "?view=counted"
    data = Data(store)
    opened = called(data, "page.children", {"url.pathname": "/", "url.search": "?view=counted"}, "url.pathname")
    assert "cells of each" in set(texts(opened))
    values = {"view.value": "counted", "count.value": "devices", "version.data": data.version}
    shown = called(data, "figures.children", values, "view.value")
    assert shown["link"]["search"] == "?view=counted&count=devices"
    assert "allreduce by devices: 18 cells" in set(texts(shown["figures"]["children"]))
    assert shown["chosen"]["children"] == "cells of each · over GPUs"


@pytest.mark.slow
def test_without_its_entry_it_is_nowhere(store: Path) -> None:
    assert "counted" not in choices()["view"] and parse("?view=counted").view == "first"
    assert all(view.kind != "counted" for view in report(store, StoreSelection()).views)


@pytest.mark.slow
def test_what_a_view_needs_and_calls_odd(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def alarm(cells: Cells) -> Iterator[Shown]:
        yield Shown(View("alarm", "It burns", "", None, (), ()), None, "Smoke on n1.")

    entries = [
        ViewEntry("alarm", "Health", "alarm", alarm, report=InReport(1)),
        ViewEntry("fire", "Health", "fire", alarm, "No fire.", needs=("links",)),
    ]
    monkeypatch.setattr(registry, "ENTRIES", [*registry.ENTRIES, *entries])
    made = report(store, StoreSelection())
    assert (
        made.odd[0] == "Smoke on n1."
        and made.tabs["Health"].views[0].title == "It burns"
        and not made.tabs["Health"].views[0].commands
    )
    assert views(Data(store), parse("?view=fire")) == ([], "No fire.")


def test_names_and_places_are_single_and_each_function_takes_its_inputs() -> None:
    names = [entry.name for entry in registry.ENTRIES]
    places = [part.place for _, part in registry.in_report()]
    assert len({*names}) == len(names) and len({*places}) == len(places)
    for entry in registry.ENTRIES:
        assert bool(entry.views) == bool(entry.title and entry.empty)
        if entry.views is not None:
            _, *taken = inspect.signature(entry.views).parameters
            assert taken == [*entry.inputs], entry.name


def test_each_view_stands_in_one_of_five_tabs_and_none_is_empty() -> None:
    assert TABS == ("Compare", "Health", "History", "Cell", "Workloads")
    assert {entry.tab for entry in registry.ENTRIES} == {*TABS}
    by_tab = [registry.offered_in(tab) for tab in TABS]
    assert all(by_tab) and sorted(name for views in by_tab for name in views) == sorted(registry.offered())
    assert next(iter(registry.offered())) == "first" and "first" in by_tab[0]
