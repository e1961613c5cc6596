"""What the explorer answers to its browser: each callback is a method. Needs Dash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from dash import ALL, ClientsideFunction, Dash, Input, Output, ctx, no_update, set_props
from dash import State as Held

from omb_py.dashboards.base import series
from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.theme import Facts, Values
from omb_py.dashboards.base.view import View, plural
from omb_py.dashboards.explorer import grid, layout
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.layout import NARROW, ROOMS, Component, drawn_again, figure
from omb_py.dashboards.explorer.state import CONTROLS, State, drawer, parse, query, state_of, views

Window = Facts
"""What the browser is like: ``room`` (:data:`omb_py.dashboards.explorer.layout.ROOMS`), ``theme``."""
Answer = Any
"""Values of the properties of components, in the order of the outputs."""
_NAMES = [*CONTROLS, *FILTERS]


class ExplorerCallbacks:
    """The callbacks over some data."""

    def __init__(self, data: Data, refresh_ms: int) -> None:
        """Look for new launches every `refresh_ms` milliseconds."""
        self.data = data
        self.refresh_ms = refresh_ms

    def register(self, app: Dash) -> None:
        """Give the application its layout and all callbacks."""
        app.layout = layout.html.Div([layout.dcc.Location(id="url", refresh=False), layout.html.Div(id="page")])
        controls = [Input(name, "value") for name in _NAMES]
        held = [Held(name, "value") for name in _NAMES]
        version, window = Input("version", "data"), Input("window", "data")
        on: Any = app.callback
        on(Output("page", "children"), Input("url", "pathname"), Held("url", "search"))(self.page)
        on(
            Output("link", "search"),
            *(Output(name, "value") for name in _NAMES),
            Output("figures", "children"),
            Output("note", "children"),
            Output("about", "children"),
            Output("shown", "data"),
            Output("chosen", "children"),
            Output("tabs", "children"),
            Output("view", "options"),
            Output("size", "options"),
            *(Output(name, "options") for name in FILTERS),
            version,
            window,
            Input("link", "search"),
            *controls,
            Held("shown", "data"),
        )(self.show)
        opened = [Input("cell", "value"), version, Input("theme", "value"), window]
        on(Output("drawn", "children"), Output("drawer", "hidden"), *opened)(self.one_cell)
        request = [Input("cells", "getRowsRequest"), Held("shown", "data")]
        on(Output("cells", "getRowsResponse"), *request, prevent_initial_call=True)(self.rows)
        tick = [Input("clock", "n_intervals"), Held("version", "data")]
        on(Output("version", "data"), *tick, prevent_initial_call=True)(self.look)
        buttons = [Input("csv", "n_clicks"), Input("parquet", "n_clicks")]
        on(Output("download", "data"), *buttons, *held, prevent_initial_call=True)(self.download)
        _register_scripts(app)

    def page(self, path: str, search: str | None) -> Component:
        """The controls as the link that was opened says; from then on they say what the link is."""
        return layout.page(self.data, parse(search), self.refresh_ms)

    def show(self, version: str, window: Window | None, link: str | None, *values: Any) -> Answer:
        """The link follows the controls, and when the browser goes back the controls follow the link."""
        *chosen, shown = values
        state = _stated(chosen)
        kept: list[Answer] = [query(state), *[no_update] * len(_NAMES)]
        nothing: list[Answer] = [no_update] * (8 + len(FILTERS))
        if ctx.triggered_id == "link":
            state = parse(link)
            if shown and shown[:2] == [query(state), version]:
                return [no_update, *kept[1:], *nothing]
            kept = [no_update, *(getattr(state, name) or None for name in CONTROLS)]
            kept += [state.filters.get(name, []) for name in FILTERS]
        if ctx.triggered_id == "cell":  # the drawer opens or closes, and all else stays
            nothing[3] = [query(state), version, *shown[2:]] if shown else no_update
            return [*kept, *nothing]
        drawn, note = views(self.data, state)
        theme, room = looks(state.theme, window)
        fixed = query(replace(state, quantity=State().quantity, theme=State().theme, cell=""))
        page_has = [fixed, room, *(f"{view.kind} {view.spec is not None}" for view in drawn)]
        return [
            *kept,
            _figures(drawn, theme, room, (fixed, state.quantity), bool(shown) and shown[3:] == page_has),
            note,
            _describe_rows(self.data, self.data.select(state.filters)),
            [query(state), version, theme, *page_has],
            layout.summary(state),
            layout.tabs(state),
            layout.views_of(state),
            layout.size_choices(self.data, state),
            *layout.filters(self.data, state),
        ]

    def one_cell(self, name: str | None, version: str, wanted: str, window: Window | None) -> Answer:
        """The drawer: its contents, and whether it is hidden."""
        if not name:
            return [], True
        theme, _ = looks(wanted, window)
        title, drawn = drawer(self.data, name)
        return layout.in_drawer(title, [figure(view, theme, NARROW, (name, ""), -1) for view in drawn]), False

    def rows(self, request: Facts | None, shown: list[str] | None) -> Answer:
        """The rows that the grid asks for."""
        if not request:
            return no_update
        return grid.answer(self.data.select(parse(shown[0] if shown else "").filters), request)

    def look(self, ticks: int, known: str) -> Answer:
        """The version of the data, where files have changed."""
        self.data.refresh()
        return no_update if known == self.data.version else self.data.version

    def download(self, csv: int | None, parquet: int | None, *values: Any) -> Answer:
        """The chosen cells as a file."""
        rows = series.as_stored(self.data.select(_stated(values).filters))
        if ctx.triggered_id == "csv":
            return layout.dcc.send_data_frame(grid.without_formulas(rows).to_csv, "omb-py.csv", index=False)
        return layout.dcc.send_bytes(lambda out: rows.to_parquet(out, index=False), "omb-py.parquet")


def _register_scripts(app: Dash) -> None:
    def script(name: str, *properties: object, **more: object) -> None:
        on: Any = app.clientside_callback
        on(ClientsideFunction("explorer", name), *properties, **more)

    cell = Output("cell", "value", allow_duplicate=True)
    clicks = [Input({"figure": ALL}, "clickData"), Input("cells", "selectedRows"), Input("close", "n_clicks")]
    script("click", cell, *clicks, prevent_initial_call=True)
    script("focus", Output("drawn", "className"), Input("drawn", "children"), prevent_initial_call=True)
    script("theme", Output("cells", "className"), Input("shown", "data"), prevent_initial_call=True)
    folded = [Output("choices", "hidden"), Output("window", "data")]
    script("fold", *folded, Input("fold", "n_clicks"), Held("choices", "hidden"))


def _stated(values: Values) -> State:
    single, several = values[: len(CONTROLS)], values[len(CONTROLS) :]
    filters = {name: [str(v) for v in chosen or []] for name, chosen in zip(FILTERS, several, strict=True)}
    return state_of(dict(zip(CONTROLS, single, strict=True)), filters)


def _figures(drawn: Sequence[View], theme: str, room: str, revision: tuple[str, str], same: bool) -> Answer:
    """The figures; where the page has the same ones already, they only get their new data."""
    sections = [figure(view, theme, room, revision, number) for number, view in enumerate(drawn)]
    if not same:
        return sections
    for name, properties in drawn_again(sections):
        set_props(name, properties)
    return no_update


def looks(wanted: str, window: Window | None) -> tuple[str, str]:
    """The theme, as the control says, else as the browser is; and how much room there is."""
    seen = window or {}
    theme = next((name for name in (wanted, seen.get("theme")) if name in style.THEMES), style.THEMES[0])
    return theme, next((room for room in ROOMS if room == seen.get("room")), "")


def _describe_rows(data: Data, rows: pd.DataFrame) -> str:
    text = f"{data.store}: {plural(len(rows), 'row')} of {plural(len(data.frame), 'row')} chosen"
    if data.skipped:
        text += f"; {plural(len(data.skipped), 'file')} could not be read: {data.skipped[0][0]}: {data.skipped[0][1]}"
    return f"{text}; its folder is not there any more: this is what was read last" if data.gone else text
