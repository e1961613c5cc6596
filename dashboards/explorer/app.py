"""The Dash application: controls, figures, table, downloads; all of it a function of the URL."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series
from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.view import plural
from omb_py.dashboards.explorer import grid, layout
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.guard import content_policy, guard
from omb_py.dashboards.explorer.layout import control, drawn_again, figure
from omb_py.dashboards.explorer.state import CONTROLS, FILTER_CONTROLS, State, drawer, parse, query, state_of, views
from omb_py.dashboards.report.html_page import asset
from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    import pandas as pd
    from dash import Dash

SHARED = ("legend.js", "linked_hover.js")
"""Scripts of report and explorer."""
REFRESH_MS = 5000
"""Milliseconds between two looks for new launches in the store."""
GZIP_LEVEL = 3
"""Level 6 takes twice the processor time of the first page for a tenth less to send."""
_WINDOW = """(clicks, hidden) => {
  const wide = window.innerWidth >= 700;
  const fold = clicks ? !hidden : window.innerWidth < 1000;
  document.getElementById("fold").setAttribute("aria-expanded", String(!fold));
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  return [fold, clicks ? dash_clientside.no_update : { narrow: !wide, theme: dark ? "dark" : "light" }];
}"""
"""Whether the controls are folded: at first where there is no room for them beside the figure;
and what the browser is like. No <details>: out of one with so many controls the keyboard does not come in every
browser."""
_CLICKED = """(clicks, rows, closed) => {
  const plain = dash_clientside.callback_context.triggered.filter((one) => one.value);
  const of = (one) => one.prop_id.slice(0, one.prop_id.lastIndexOf("."));
  for (const one of plain) {
    if (of(one) === "close") return "";
    if (of(one) === "cells" && one.value[0]) return `${one.value[0].launch_id}/${one.value[0].comparability_key}`;
    const near = (point) => Math.abs((point.bbox?.y0 ?? 0) - (window.pointer?.y ?? 0));
    const points = (one.value.points ?? []).filter((point) => typeof point.customdata === "string" && point.customdata);
    if (points.length) return points.reduce((a, b) => (near(b) < near(a) ? b : a)).customdata;
  }
  return dash_clientside.no_update;
}"""
"""The cell of the point or row that was clicked on; of several points under one label the one nearest in height."""
_OPENED = """(drawn) => {
  if (drawn && drawn.length && window.pointer) document.getElementById("close").focus({ preventScroll: true });
  return dash_clientside.no_update;
}"""
"""The keyboard goes on in the drawer that a click has opened."""
_SHOWN = """(shown) => {
  document.documentElement.dataset.theme = document.body.dataset.agThemeMode = shown[2];
  try { dash_ag_grid.getApi("cells").purgeInfiniteCache(); } catch { /* not drawn yet: it asks by itself */ }
  return dash_clientside.no_update;
}"""
"""The page in the theme of its figures; the grid asks for its rows again."""


def make(data: Data, token: str = "", refresh_ms: int = REFRESH_MS) -> Dash:
    """The application over some data; with a token only for whoever has it.

    Args:
        data: the cells.
        token: what a request must bring; empty for none.
        refresh_ms: milliseconds between two looks for new launches.

    Raises EnvironmentProblem where Dash is not installed.
    """
    try:
        import dash_ag_grid
        from dash import ALL, Dash, Input, Output, ctx, dcc, html, no_update, set_props
        from dash import State as Held
    except ImportError as error:
        raise EnvironmentProblem(
            f"the dashboard needs dash, which is not installed: {pip_install('dashboard')}"
        ) from error

    import_module("scipy.special")  # else the first who looks at what changed waits for it

    app = Dash(
        "omb_py_dashboard",
        title="omb-py",
        update_title="",
        serve_locally=True,
        assets_folder="no-assets",
        index_string=_page(),
        suppress_callback_exceptions=True,
        compress=find_spec("flask_compress") is not None,  # comes with the optional dashboard packages
    )
    app.server.config["COMPRESS_LEVEL"] = GZIP_LEVEL
    guard(app.server, token, lambda: content_policy(app))

    @app.callback(Output("page", "children"), Input("url", "pathname"), Held("url", "search"))
    def page(path: str, search: str | None) -> Any:
        """The controls as the link that was opened says; from then on they say what the link is."""
        return layout.page(dcc, html, dash_ag_grid.AgGrid, data, parse(search), refresh_ms)

    app.layout = html.Div([dcc.Location(id="url", refresh=False), html.Div(id="page")])
    names = [*CONTROLS, *map(control, FILTER_CONTROLS)]
    controls = [Input(name, "value") for name in names]

    def stated(*values: Any) -> State:
        single, several = values[: len(CONTROLS)], values[len(CONTROLS) :]
        filters = {name: [str(v) for v in chosen or []] for name, chosen in zip(FILTER_CONTROLS, several, strict=True)}
        return state_of(dict(zip(CONTROLS, single, strict=True)), filters)

    @app.callback(
        Output("link", "search"),
        *(Output(name, "value") for name in names),
        Output("figures", "children"),
        Output("note", "children"),
        Output("about", "children"),
        Output("shown", "data"),
        Output("second", "hidden"),
        Output("chosen", "children"),
        Output("tabs", "children"),
        Output("view", "options"),
        Output("size", "options"),
        *(Output(control(name), "options") for name in FILTER_CONTROLS),
        Input("version", "data"),
        Input("window", "data"),
        Input("link", "search"),
        *controls,
        Held("shown", "data"),
    )
    def show(version: str, window: dict[str, Any] | None, link: str | None, *values: Any) -> Any:
        """The link follows the controls, and when the browser goes back the controls follow the link."""
        *chosen, shown = values
        kept: list[Any] = [no_update] * (1 + len(names))
        rest: list[Any] = [no_update] * (9 + len(FILTER_CONTROLS))
        state = stated(*chosen)
        if ctx.triggered_id == "link":
            state = parse(link)
            if shown and shown[:2] == [query(state), version]:
                return [*kept, *rest]
            kept = [no_update, *(getattr(state, name) or None for name in CONTROLS)]
            kept += [state.chosen(name) for name in FILTER_CONTROLS]
        else:
            kept[0] = query(state)
        if ctx.triggered_id == "cell":  # the drawer opens or closes, and all else stays
            rest[3] = [query(state), version, *shown[2:]] if shown else no_update
            return [*kept, *rest]
        drawn, note = views(data, state)
        rows = data.select(state.filters)
        fixed = query(replace(state, quantity=State().quantity, theme=State().theme, cell=""))
        theme, narrow = looks(state.theme, window)
        figures = [
            figure(dcc, html, view, theme, narrow, (fixed, state.quantity), number) for number, view in enumerate(drawn)
        ]
        page_has = [fixed, narrow, *(f"{view.kind} {view.spec is not None}" for view in drawn)]
        same = bool(shown) and shown[3:] == page_has
        if same:
            for name, properties in drawn_again(figures):
                set_props(name, properties)
        return [
            *kept,
            no_update if same else figures,
            note,
            _about(data, rows),
            [query(state), version, theme, *page_has],
            layout.one_selection(state),
            layout.summary(state),
            layout.tabs(dcc, state),
            layout.views_of(state),
            layout.size_choices(data, state),
            *layout.filters(data, state),
        ]

    app.clientside_callback(  # type: ignore[no-untyped-call]
        _CLICKED,
        Output("cell", "value", allow_duplicate=True),
        Input({"figure": ALL}, "clickData"),
        Input("cells", "selectedRows"),
        Input("close", "n_clicks"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("drawn", "children"),
        Output("drawer", "hidden"),
        Input("cell", "value"),
        Input("version", "data"),
        Input("theme", "value"),
        Input("window", "data"),
    )
    def one_cell(name: str | None, version: str, wanted: str, window: dict[str, Any] | None) -> Any:
        if not name:
            return [], True
        theme, _ = looks(wanted, window)
        title, drawn = drawer(data, name)
        figures = [figure(dcc, html, view, theme, True, (name, ""), -1) for view in drawn]
        return layout.in_drawer(html, title, figures), False

    app.clientside_callback(  # type: ignore[no-untyped-call]
        _OPENED, Output("drawn", "className"), Input("drawn", "children"), prevent_initial_call=True
    )

    @app.callback(
        Output("cells", "getRowsResponse"),
        Input("cells", "getRowsRequest"),
        Held("shown", "data"),
        prevent_initial_call=True,
    )
    def rows_of(request: dict[str, Any] | None, shown: list[str] | None) -> Any:
        if not request:
            return no_update
        return grid.answer(data.select(parse(shown[0] if shown else "").filters), request)

    app.clientside_callback(  # type: ignore[no-untyped-call]
        _SHOWN, Output("cells", "className"), Input("shown", "data"), prevent_initial_call=True
    )
    app.clientside_callback(  # type: ignore[no-untyped-call]
        _WINDOW,
        Output("choices", "hidden"),
        Output("window", "data"),
        Input("fold", "n_clicks"),
        Held("choices", "hidden"),
    )

    @app.callback(
        Output("version", "data"),
        Input("clock", "n_intervals"),
        Held("version", "data"),
        prevent_initial_call=True,
    )
    def look(ticks: int, known: str) -> Any:
        data.refresh()
        return no_update if known == data.version else data.version

    @app.callback(
        Output("download", "data"),
        Input("csv", "n_clicks"),
        Input("parquet", "n_clicks"),
        *(Held(c.component_id, "value") for c in controls),
        prevent_initial_call=True,
    )
    def download(csv: int | None, parquet: int | None, *values: Any) -> Any:
        from dash.dcc.express import send_bytes, send_data_frame

        rows = series.as_stored(data.select(stated(*values).filters))
        if ctx.triggered_id == "csv":
            rows = grid.without_formulas(rows)
            return send_data_frame(  # type: ignore[no-untyped-call]
                rows.to_csv, "omb-py.csv", index=False
            )
        return send_bytes(  # type: ignore[no-untyped-call]
            lambda out: rows.to_parquet(out, index=False), "omb-py.parquet"
        )

    return app


def _page() -> str:
    """The page's HTML with the scripts that it shares with the report."""
    text = asset("explorer.html")
    for name in SHARED:
        text = text.replace(f"/* {name} */", asset(name))
    return text


def looks(wanted: str, window: dict[str, Any] | None) -> tuple[str, bool]:
    """The theme, and whether there is little room: as the control says, else as the browser is."""
    seen = window or {}
    theme = next((name for name in (wanted, seen.get("theme")) if name in style.THEMES), style.THEMES[0])
    return theme, bool(seen.get("narrow"))


def _about(data: Data, rows: pd.DataFrame) -> str:
    skipped = (
        f"; {plural(len(data.skipped), 'file')} could not be read: {data.skipped[0][0]}: {data.skipped[0][1]}"
        if data.skipped
        else ""
    )
    gone = "; its folder is not there any more: this is what was read last" if data.gone else ""
    return f"{data.store}: {plural(len(rows), 'cell')} of {plural(len(data.frame), 'cell')} chosen{skipped}{gone}"
