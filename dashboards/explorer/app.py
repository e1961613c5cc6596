"""The Dash application: controls, figures, table, downloads; all of it a function of the URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards import style
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.guard import guard
from omb_py.dashboards.explorer.state import QUANTITIES, SIDE, VIEWS, State, parse, query
from omb_py.dashboards.explorer.views import views
from omb_py.dashboards.page import asset
from omb_py.dashboards.view import View, plural
from omb_py.errors import EnvironmentProblem
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd
    from dash import Dash

REFRESH_MS = 5000
"""How often the store is looked at for new launches."""
SHOWN = (
    "benchmark",
    "backend",
    "library",
    "library_version",
    "binding",
    "device",
    "dtype",
    "op",
    "ranks",
    "size_bytes",
    "value",
    "unit",
    "median_us",
    "p99_us",
    "busbw_gbps",
    "iterations",
    "validated",
    "tags",
    "started_at",
    "launch_id",
)
MOST_ROWS = 20_000
"""Rows that the grid gets; the downloads have all."""
_SPOKEN = {
    "curves": "over message size",
    "beside": "two selections side by side",
    "scaling": "over ranks",
    "distribution": "spread of a cell",
    "history": "over time",
    "auto": "as printed",
    "time": "time",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "library_version": "version",
}


def make(data: Data, token: str = "") -> Dash:
    """The application over some data; with a token only for whoever has it.

    Raises EnvironmentProblem where Dash is not installed.
    """
    try:
        import dash_ag_grid as grid
        from dash import Dash, Input, Output, dcc, html, no_update
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
                html.Label(label, htmlFor=prefix + name),
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
                dcc.Interval(id="clock", interval=REFRESH_MS),
                dcc.Store(id="version", data=data.version),
                dcc.Download(id="download"),
                html.H1("omb-py"),
                html.P(id="about"),
                html.Div(
                    [
                        _radio(dcc, html, "view", VIEWS, state.view),
                        _radio(dcc, html, "quantity", QUANTITIES, state.quantity),
                        html.Div(
                            [
                                html.Label("message size (one cell)"),
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
                html.Details(
                    [
                        html.Summary("second selection, for side by side"),
                        html.Div([select(name, SIDE, state.other.get(name, [])) for name in FILTERS], className="row"),
                    ],
                    open=bool(state.other),
                ),
                html.P(id="note", role="status"),
                html.Div(id="figures"),
                html.H2("Cells"),
                html.Div(
                    [html.Button("download CSV", id="csv"), html.Button("download Parquet", id="parquet")],
                    className="row",
                ),
                grid.AgGrid(
                    id="cells",
                    columnDefs=_column_defs(),
                    rowData=[],
                    defaultColDef={"sortable": True, "filter": True, "resizable": True},
                    dashGridOptions={"pagination": True, "paginationPageSize": 20},
                ),
            ]
        )

    app.layout = html.Div([dcc.Location(id="url", refresh=False), html.Div(id="page")])
    controls = [
        Input("view", "value"),
        Input("quantity", "value"),
        Input("size", "value"),
        *(Input(_id(n), "value") for n in choosers),
    ]

    def stated(view: str, quantity: str, size: str | None, *chosen: list[str] | None) -> State:
        known = {name: [str(v) for v in values or []] for name, values in zip(choosers, chosen, strict=True)}
        return State(
            view if view in VIEWS else VIEWS[0],
            quantity if quantity in QUANTITIES else QUANTITIES[0],
            size if size and size.isdigit() else "",
            {n: known[n] for n in FILTERS if known[n]},
            {n: known[SIDE + n] for n in FILTERS if known[SIDE + n]},
        )

    @app.callback(
        Output("url", "search"),
        Output("figures", "children"),
        Output("note", "children"),
        Output("cells", "rowData"),
        Output("about", "children"),
        Input("version", "data"),
        *controls,
    )
    def show(version: str, *values: Any) -> Any:
        state = stated(*values)
        made, note = views(data, state)
        rows = data.select(state.filters)
        return query(state), [_figure(dcc, html, view) for view in made], note, _records(rows), _about(data, rows)

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
        from dash import ctx
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
        parts.append(
            dcc.Graph(
                figure={"data": view.spec["data"], "layout": layout},
                config={"displaylogo": False},
                responsive=True,
                style={"height": f"{layout['height']}px"},
            )
        )
    parts += [html.P(note, className="soft") for note in view.notes]
    if view.commands:
        parts.append(html.Details([html.Summary("to measure this again"), html.Pre("\n".join(view.commands))]))
    return html.Section(parts, **{"data-kind": view.kind})


def _column_defs() -> list[dict[str, Any]]:
    numeric = {"ranks", "size_bytes", "value", "median_us", "p99_us", "busbw_gbps", "iterations"}
    return [
        {"field": n, **({"type": "numericColumn", "filter": "agNumberColumnFilter"} if n in numeric else {})}
        for n in SHOWN
    ]


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    shown = rows[list(SHOWN)].head(MOST_ROWS)
    shown = shown.assign(started_at=shown["started_at"].astype(str)).astype(object)
    return [{str(k): None if style.absent(v) else v for k, v in row.items()} for row in shown.to_dict("records")]


def _about(data: Data, rows: pd.DataFrame) -> str:
    skipped = (
        f"; {plural(len(data.skipped), 'file')} could not be read: {data.skipped[0][0]}: {data.skipped[0][1]}"
        if data.skipped
        else ""
    )
    more = f"; the grid shows the first {MOST_ROWS}" if len(rows) > MOST_ROWS else ""
    return f"{data.store}: {plural(len(rows), 'cell')} of {plural(len(data.frame), 'cell')} chosen{more}{skipped}"
