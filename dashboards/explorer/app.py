"""The Dash application: controls, figures, table, downloads; all of it a function of the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards import style
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.guard import guard
from omb_py.dashboards.explorer.state import COUNTS, QUANTITIES, SIDE, VIEWS, State, parse, query
from omb_py.dashboards.explorer.views import views
from omb_py.dashboards.page import asset
from omb_py.dashboards.view import View, plural
from omb_py.errors import EnvironmentProblem
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd
    from dash import Dash

TWO_SIDED = ("beside", "beside_counts")
"""Views that take a second selection."""
REFRESH_MS = 5000
"""How often the store is looked at for new launches."""
_SPOKEN = {
    "curves": "over message size",
    "beside": "side by side over size",
    "scaling": "over ranks or GPUs",
    "beside_counts": "side by side over ranks or GPUs",
    "distribution": "spread of a cell",
    "trace": "calls of a launch",
    "stragglers": "late ranks",
    "steps": "step time by layout",
    "model": "fit and lower bound",
    "history": "over time",
    "verdicts": "stored verdicts",
    "environment": "what differs in environment",
    "devices": "GPUs",
    "auto": "as printed",
    "time": "time",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "library_version": "version",
}


def make(data: Data, token: str = "", refresh_ms: int = REFRESH_MS) -> Dash:
    """The application over some data; with a token only for whoever has it.

    Args:
        data: the cells.
        token: what a request must bring; empty for none.
        refresh_ms: how often the store is looked at.

    Raises EnvironmentProblem where Dash is not installed.
    """
    try:
        import dash_ag_grid
        from dash import Dash, Input, Output, ctx, dcc, html, no_update
        from dash import State as Held
    except ImportError as error:
        raise EnvironmentProblem(
            "the dashboard needs dash, which is not installed: pip install 'omb-py[dashboard]'"
        ) from error

    app = Dash(
        "omb_py_dashboard",
        title="omb-py",
        update_title="",
        serve_locally=True,
        assets_folder="no-assets",
        index_string=asset("explorer.html"),
        suppress_callback_exceptions=True,
    )
    guard(app.server, token)
    choosers = [*FILTERS, *(SIDE + name for name in FILTERS)]

    def select(name: str, prefix: str, values: list[str]) -> Any:
        known = data.choices()[name]
        label = _SPOKEN.get(name, name)
        return html.Div(
            [
                html.Label(label, htmlFor=_id(prefix + name)),
                dcc.Dropdown(
                    id=_id(prefix + name),
                    options=known,
                    value=values,
                    multi=True,
                    placeholder="all" if not prefix else "same",
                ),
            ],
            className="chooser",
        )

    @app.callback(Output("page", "children"), Input("url", "pathname"), Held("url", "search"))
    def page(path: str, search: str | None) -> Any:
        """The controls as the link that was opened says; from then on they say what the link is."""
        state = parse(search)
        sizes = sorted({int(s) for s in data.frame["size_bytes"].dropna().unique()})
        return html.Main(
            [
                dcc.Location(id="link", refresh=False),
                dcc.Interval(id="clock", interval=refresh_ms),
                dcc.Store(id="version", data=data.version),
                dcc.Store(id="shown"),
                dcc.Download(id="download"),
                html.H1("omb-py"),
                html.P(id="about"),
                html.Div(
                    [
                        _radio(dcc, html, "view", VIEWS, state.view),
                        _radio(dcc, html, "quantity", QUANTITIES, state.quantity),
                        _radio(dcc, html, "count", COUNTS, state.count),
                        html.Div(
                            [
                                html.Label("message size (views of one cell)", htmlFor="size"),
                                dcc.Dropdown(
                                    id="size",
                                    value=state.size or None,
                                    placeholder="the smallest",
                                    options=[{"label": size_text(s), "value": str(s)} for s in sizes],
                                ),
                            ],
                            className="chooser",
                        ),
                    ],
                    className="row",
                ),
                html.Div([select(name, "", state.filters.get(name, [])) for name in FILTERS], className="row"),
                html.Fieldset(
                    [
                        html.Legend("second selection: what it leaves open is as in the first"),
                        html.Div([select(name, SIDE, state.other.get(name, [])) for name in FILTERS], className="row"),
                    ],
                    id="second",
                    hidden=state.view not in TWO_SIDED,
                ),
                html.P(id="note", role="status"),
                html.Div(id="figures"),
                html.H2("Cells"),
                html.Div(
                    [html.Button("download CSV", id="csv"), html.Button("download Parquet", id="parquet")],
                    className="row",
                ),
                dash_ag_grid.AgGrid(
                    id="cells",
                    columnDefs=grid.columns(),
                    rowModelType="infinite",
                    defaultColDef={"sortable": True, "resizable": True},
                    dashGridOptions={"cacheBlockSize": grid.BLOCK, "maxBlocksInCache": 20, "rowBuffer": 0},
                ),
            ]
        )

    app.layout = html.Div([dcc.Location(id="url", refresh=False), html.Div(id="page")])
    names = ["view", "quantity", "count", "size", *map(_id, choosers)]
    controls = [Input(name, "value") for name in names]

    def stated(view: str, quantity: str, count: str, size: str | None, *chosen: list[str] | None) -> State:
        known = {name: [str(v) for v in values or []] for name, values in zip(choosers, chosen, strict=True)}
        return State(
            view if view in VIEWS else VIEWS[0],
            quantity if quantity in QUANTITIES else QUANTITIES[0],
            count if count in COUNTS else COUNTS[0],
            size if size and size.isdecimal() else "",
            {n: known[n] for n in FILTERS if known[n]},
            {n: known[SIDE + n] for n in FILTERS if known[SIDE + n]},
        )

    @app.callback(
        Output("link", "search"),
        *(Output(name, "value") for name in names),
        Output("figures", "children"),
        Output("note", "children"),
        Output("about", "children"),
        Output("shown", "data"),
        Output("second", "hidden"),
        Input("version", "data"),
        Input("link", "search"),
        *controls,
        Held("shown", "data"),
    )
    def show(version: str, link: str | None, *values: Any) -> Any:
        """The link follows the controls, and when the browser goes back the controls follow the link."""
        *chosen, shown = values
        kept: list[Any] = [no_update] * (1 + len(names))
        state = stated(*chosen)
        if ctx.triggered_id == "link":
            state = parse(link)
            if shown == [query(state), version]:
                return [*kept, *[no_update] * 5]
            kept = [no_update, state.view, state.quantity, state.count, state.size or None]
            kept += [chosen_of(state, name) for name in choosers]
        else:
            kept[0] = query(state)
        made, note = views(data, state)
        rows = data.select(state.filters)
        figures = [_figure(dcc, html, view) for view in made]
        return [*kept, figures, note, _about(data, rows), [query(state), version], state.view not in TWO_SIDED]

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
        """(shown) => {
          try { dash_ag_grid.getApi("cells").purgeInfiniteCache(); } catch { /* not drawn yet: it asks by itself */ }
          return dash_clientside.no_update;
        }""",
        Output("cells", "className"),
        Input("shown", "data"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("version", "data"),
        *(Output(_id(n), "options") for n in choosers),
        Input("clock", "n_intervals"),
        Held("version", "data"),
        prevent_initial_call=True,
    )
    def look(ticks: int, known: str) -> Any:
        data.refresh()
        if known == data.version:
            return [no_update] * (1 + len(choosers))
        choices = data.choices()
        return [data.version, *(choices[n.removeprefix(SIDE)] for n in choosers)]

    @app.callback(
        Output("download", "data"),
        Input("csv", "n_clicks"),
        Input("parquet", "n_clicks"),
        *(Held(c.component_id, "value") for c in controls),
        prevent_initial_call=True,
    )
    def download(csv: int | None, parquet: int | None, *values: Any) -> Any:
        from dash.dcc.express import send_bytes, send_data_frame

        rows = data.select(stated(*values).filters)
        if ctx.triggered_id == "csv":
            return send_data_frame(  # type: ignore[no-untyped-call]
                rows.to_csv, "omb-py.csv", index=False
            )
        return send_bytes(  # type: ignore[no-untyped-call]
            lambda out: rows.to_parquet(out, index=False), "omb-py.parquet"
        )

    return app


def chosen_of(state: State, name: str) -> list[str]:
    """The values of a filter by the name of its control."""
    if name.startswith(SIDE):
        return state.other.get(name.removeprefix(SIDE), [])
    return state.filters.get(name, [])


def _id(name: str) -> str:
    """Dash's names hold no dots."""
    return name.replace(".", "-")


def _radio(dcc: Any, html: Any, name: str, values: tuple[str, ...], chosen: str) -> Any:
    options = [{"label": _SPOKEN.get(v, v), "value": v} for v in values]
    return html.Fieldset([html.Legend(name), dcc.RadioItems(id=name, options=options, value=chosen, inline=True)])


def _figure(dcc: Any, html: Any, view: View) -> Any:
    parts: list[Any] = [html.H3(view.title), html.P(view.caption, className="soft")]
    if view.spec is not None:
        layout = {**view.spec["layout"], "template": style.template("light"), "autosize": True}
        named = sum(bool(trace.get("name")) and trace.get("showlegend", True) for trace in view.spec["data"])
        if layout.get("showlegend", True):  # on a phone the entries stand one below the other
            layout["height"] += LEGEND_LINE * max(0, named - 2)
        parts.append(
            dcc.Graph(
                figure={"data": view.spec["data"], "layout": layout},
                config={"displaylogo": False},
                responsive=True,
                style={"height": f"{layout['height']}px"},
            )
        )
    parts += [html.P(note, className="soft") for note in view.notes]
    parts.append(
        html.Details(
            [html.Summary(f"table, {plural(len(view.rows), 'row')}"), _table(html, view)], open=view.spec is None
        )
    )
    if view.commands:
        parts.append(html.Details([html.Summary("to measure this again"), html.Pre("\n".join(view.commands))]))
    return html.Section(parts, **{"data-kind": view.kind})


LEGEND_LINE = 24
"""Pixels."""
MOST_TABLE_ROWS = 200
"""Rows of the table under a figure; the report has all."""


def _table(html: Any, view: View) -> Any:
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in view.columns]))
    lines = [html.Tr([html.Td(_cell(value)) for value in row]) for row in view.rows[:MOST_TABLE_ROWS]]
    left = len(view.rows) - MOST_TABLE_ROWS
    more = [html.P(f"and {plural(left, 'row')} more", className="soft")] if left > 0 else []
    return html.Div([html.Table([head, html.Tbody(lines)]), *more], className="scroll", tabIndex=0)


def _cell(value: Any) -> str:
    if style.absent(value):
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _about(data: Data, rows: pd.DataFrame) -> str:
    skipped = (
        f"; {plural(len(data.skipped), 'file')} could not be read: {data.skipped[0][0]}: {data.skipped[0][1]}"
        if data.skipped
        else ""
    )
    return f"{data.store}: {plural(len(rows), 'cell')} of {plural(len(data.frame), 'cell')} chosen{skipped}"
