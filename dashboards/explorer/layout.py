"""The explorer's page: controls, and each view as figure, table and command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.sparkline import sparkline
from omb_py.dashboards.base.view import Item, View, listed, plural
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import SECOND, State, choices
from omb_py.dashboards.views import registry
from omb_py.results.formats.units import size_text

LEGEND_LINE = 24
"""Pixels."""
MOST_TABLE_ROWS = 200
"""Rows of the table under a figure; the report has all."""
SPOKEN: Mapping[str, str] = {
    "devices": "GPUs",
    "auto": "as printed",
    "time": "time",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "library_version": "version",
}


def control(name: str) -> str:
    """The name of a filter's control: Dash's names hold no dots."""
    return name.replace(".", "-")


def summary(state: State) -> str:
    """One line with the values of the controls, shown while they are folded.

    >>> summary(State("curves", "busbw", filters={"ranks": ["2", "4"]}))
    'over message size · bus bandwidth · ranks 2, 4'
    """
    default = State()
    words = [registry.offered()[state.view].title]
    words += [SPOKEN[state.quantity]] if state.quantity != default.quantity else []
    words += [f"over {SPOKEN.get(state.count, state.count)}"] if state.count != default.count else []
    words += [size_text(int(state.size))] if state.size else []
    words += _chosen(state.filters)
    against = _chosen(state.other)
    return " · ".join(words + ([f"against {', '.join(against)}"] if against else []))


def _chosen(filters: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{SPOKEN.get(name, name)} {listed(filters[name])}" for name in FILTERS if filters.get(name)]


def offered(known: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Choices of a control: what there is, and what a link has chosen although there is none, which a dropdown would
    leave out, and so show everything."""
    return [*known, *(value for value in chosen if value not in known)]


def page(dcc: Any, html: Any, ag_grid: Any, data: Data, state: State, refresh_ms: int) -> Any:
    """The whole page, its controls as the state says. A clientside callback folds them where there is little room."""
    sizes = sorted({int(s) for s in data.frame["size_bytes"].dropna().unique()})
    known = data.choices()

    def select(name: str, prefix: str, values: list[str]) -> Any:
        chooser = dcc.Dropdown(
            id=control(prefix + name),
            options=offered(known[name], values),
            value=values,
            multi=True,
            placeholder="all" if not prefix else "same",
        )
        label = html.Label(SPOKEN.get(name, name), htmlFor=control(prefix + name))
        return html.Div([label, chooser], className="chooser")

    size = dcc.Dropdown(
        id="size",
        value=state.size or None,
        placeholder="the smallest",
        options=[{"label": size_text(s), "value": str(s)} for s in sizes],
    )
    controls = [
        html.Div(
            [
                *(_radio(dcc, html, name, values, getattr(state, name)) for name, values in choices().items()),
                html.Div(
                    [html.Label("message size (views of one cell)", htmlFor="size"), size], className="chooser one"
                ),
            ],
            className="row",
        ),
        html.Div([select(name, "", state.filters.get(name, [])) for name in FILTERS], className="row"),
        html.Fieldset(
            [
                html.Legend("second selection: what it leaves open is as in the first"),
                html.Div([select(name, SECOND, state.other.get(name, [])) for name in FILTERS], className="row"),
            ],
            id="second",
            hidden=one_selection(state),
        ),
    ]
    return html.Main(
        [
            dcc.Location(id="link", refresh=False),
            dcc.Interval(id="clock", interval=refresh_ms),
            dcc.Store(id="version", data=data.version),
            dcc.Store(id="shown"),
            dcc.Store(id="window"),
            dcc.Download(id="download"),
            html.H1("omb-py"),
            html.P(id="about"),
            html.Button([html.Span("shown: "), html.Span(id="chosen")], id="fold", **{"aria-controls": "choices"}),
            html.Div(controls, id="choices"),
            html.P(id="note", role="status"),
            html.Div(id="figures"),
            html.H2("Cells"),
            html.Div(
                [html.Button("download CSV", id="csv"), html.Button("download Parquet", id="parquet")],
                className="row",
            ),
            ag_grid(
                id="cells",
                columnDefs=grid.columns(),
                rowModelType="infinite",
                defaultColDef={"sortable": True, "resizable": True},
                dashGridOptions={"cacheBlockSize": grid.BLOCK, "maxBlocksInCache": 20, "rowBuffer": 0},
            ),
        ]
    )


def _radio(dcc: Any, html: Any, name: str, values: Sequence[str], chosen: str) -> Any:
    titles = {entry.name: entry.title for entry in registry.offered().values()} if name == "view" else {}
    words = {**SPOKEN, **titles, **({"auto": "as the browser"} if name == "theme" else {})}
    options = [{"label": words.get(value, value), "value": value} for value in values]
    return html.Fieldset([html.Legend(name), dcc.RadioItems(id=name, options=options, value=chosen, inline=True)])


def one_selection(state: State) -> bool:
    """True where the view takes no second selection, so that its filters are hidden."""
    return "second" not in registry.offered()[state.view].inputs


def figure(dcc: Any, html: Any, view: View, theme: str, narrow: bool, revision: tuple[str, str]) -> Any:
    """A view: title, caption, figure, notes, table, command.

    Args:
        dcc: Dash's core components.
        html: Dash's HTML components.
        view: what is shown.
        theme: one of :data:`omb_py.dashboards.base.theme.THEMES`.
        narrow: on a phone.
        revision: while the first is the same, zoom and isolated series stay as they are; heights, while both are.
    """
    parts: list[Any] = [html.H3(view.title), html.P(view.caption, className="soft")]
    if view.spec is not None:
        layout = {
            **view.spec["layout"],
            "template": style.template(theme),
            "autosize": True,
            "uirevision": revision[0],
        }
        layout = _merged(_stacked(layout), layout.get("meta", {}).get("narrow", {})) if narrow else layout
        for name in [name for name in layout if name.startswith("yaxis")]:
            layout[name] = {**layout[name], "uirevision": "".join(revision)}
        named = sum(bool(trace.get("name")) and trace.get("showlegend", True) for trace in view.spec["data"])
        if layout.get("showlegend", True):  # on a phone the entries stand one below the other
            layout["height"] += LEGEND_LINE * max(0, named - 2)
        parts.append(
            dcc.Graph(
                figure={"data": view.spec["data"], "layout": layout},
                config={"displaylogo": False, "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]]},
                responsive=True,
                style={"height": f"{layout['height']}px"},
            )
        )
    parts += [html.P(note, className="label" if view.kind == "status" else "soft") for note in view.notes]
    if view.items:
        parts.append(html.Ol([_item(html, item) for item in view.items], className="changes"))
    if not view.columns:
        return html.Section(parts, **{"data-kind": view.kind})
    table = html.Summary(f"table, {plural(len(view.rows), 'row')}")
    parts.append(html.Details([table, _table(html, view)], open=view.spec is None))
    if view.commands:
        parts.append(html.Details([html.Summary("to measure this again"), html.Pre("\n".join(view.commands))]))
    return html.Section(parts, **{"data-kind": view.kind})


def _item(html: Any, item: Item) -> Any:
    """A line of a list: its kind, its text as a link to the view that shows it, its sparkline."""
    text = html.A(item.text, href=item.link) if item.link else html.Span(item.text)
    picture = sparkline(item.values, item.mark)
    spark = [html.Img(src=picture, alt="", width=120, height=22)] if picture else []
    return html.Li([html.B(item.kind, className=f"kind {item.kind}"), html.Span(text), *spark])


def _merged(layout: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """A layout with what a phone shows otherwise, as the report's script merges it."""
    known = dict(layout)
    for name, value in more.items():
        known[name] = {**known.get(name, {}), **value} if isinstance(value, Mapping) else value
    return known


def _stacked(layout: Mapping[str, Any]) -> dict[str, Any]:
    """Panels side by side become panels one above the other, as the report's script does it on a phone."""
    stacked = dict(layout)
    left, right = stacked.get("xaxis", {}), stacked.get("xaxis2", {})
    if "domain" not in left or "domain" not in right or left["domain"][1] > right["domain"][0]:
        return stacked
    for number, upright in (("", [0.6, 1]), ("2", [0, 0.4])):
        stacked[f"xaxis{number}"] = {**stacked[f"xaxis{number}"], "domain": [0, 1], "anchor": f"y{number}"}
        stacked[f"yaxis{number}"] = {**stacked[f"yaxis{number}"], "domain": upright}
    return {**stacked, "height": round(1.5 * stacked["height"]), "legend": {**stacked["legend"], "y": -0.14}}


def _table(html: Any, view: View) -> Any:
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in view.columns]))
    lines = [html.Tr([_cell(html, value) for value in row]) for row in view.rows[:MOST_TABLE_ROWS]]
    left = len(view.rows) - MOST_TABLE_ROWS
    more = [html.P(f"and {plural(left, 'row')} more", className="soft")] if left > 0 else []
    return html.Div([html.Table([head, html.Tbody(lines)]), *more], className="scroll", tabIndex=0)


def _cell(html: Any, value: Any) -> Any:
    if style.absent(value):
        return html.Td("-")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return html.Td(f"{value:.6g}" if isinstance(value, float) else str(value), className="number")
    return html.Td(str(value))
