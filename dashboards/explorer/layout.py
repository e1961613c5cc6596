"""The explorer's page: tabs, controls, views with their figures, table of cells, drawer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.theme import sparkline
from omb_py.dashboards.base.view import Item, View, listed, plural
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import FILTER_CONTROLS, SECOND, State, choices, query
from omb_py.dashboards.views import registry
from omb_py.results.units import size_text

LEGEND_LINE = 24
"""Pixels."""
MOST_TABLE_ROWS = 200
"""Rows of the table under a figure; the report has all."""


ABOVE, FIGURE, BELOW = "above", "figure", "below"
"""The three parts of a view on the page; with the number of the view they are the ids of Dash's components."""


def figure(
    dcc: Any, html: Any, view: View, theme: str, narrow: bool, revision: tuple[str, str], number: int = -1
) -> Any:
    """A view: title, caption, figure, notes, table, command.

    Args:
        dcc: Dash's core components.
        html: Dash's HTML components.
        view: what is shown.
        theme: one of :data:`omb_py.dashboards.base.theme.THEMES`.
        narrow: on a phone.
        revision: while the first is the same, zoom and isolated series stay as they are; heights, while both are.
        number: of the figure on the page, for clicks on its points and for :func:`drawn_again`; below 0 for none.
    """

    def named(part: str) -> dict[str, Any]:
        return {"id": {part: number}} if number >= 0 else {}

    parts: list[Any] = [html.Div([html.H3(view.title), html.P(view.caption, className="soft")], **named(ABOVE))]
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
        entries = sum(bool(trace.get("name")) and trace.get("showlegend", True) for trace in view.spec["data"])
        if layout.get("showlegend", True):  # on a phone the entries stand one below the other
            layout["height"] += LEGEND_LINE * max(0, entries - 2)
        parts.append(
            dcc.Graph(
                **named(FIGURE),
                figure={"data": _clickable(view), "layout": layout},
                config={"displaylogo": False, "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]]},
                responsive=True,
                style={"height": f"{layout['height']}px"},
            )
        )
    parts.append(html.Div(_below(html, view), **named(BELOW)))
    return html.Section(parts, **{"data-kind": view.kind})


def _below(html: Any, view: View) -> list[Any]:
    """What stands under the figure: notes, list, table, command."""
    parts = [html.P(note, className="label" if view.kind == "status" else "soft") for note in view.notes]
    if view.items:
        parts.append(html.Ol([_item(html, item) for item in view.items], className="changes"))
    if not view.columns:
        return parts
    table = html.Summary(f"table, {plural(len(view.rows), 'row')}")
    parts.append(html.Details([table, _table(html, view)], open=view.spec is None))
    if view.commands:
        parts.append(html.Details([html.Summary("to measure this again"), html.Pre("\n".join(view.commands))]))
    return parts


def drawn_again(sections: Sequence[Any]) -> list[tuple[dict[str, int], dict[str, Any]]]:
    """(id, properties) of what changes where the page has these views already.

    Dash makes new elements of whatever it is given as children, and a new figure knows nothing of a zoom or of a series
    that was isolated. A figure that is given its data keeps them.

    Args:
        sections: what :func:`figure` made, each with a number.
    """
    changed: list[tuple[dict[str, int], dict[str, Any]]] = []
    for part in (part for section in sections for part in section.children):
        properties = {"figure": part.figure, "style": part.style} if FIGURE in part.id else {"children": part.children}
        changed.append((part.id, properties))
    return changed


def _clickable(view: View) -> list[Any]:
    """The traces, their points with the cells that they are."""
    data = [*view.spec["data"]] if view.spec else []
    for number, cells in view.cells.items():
        data[number] = {**data[number], "customdata": cells}
    return data


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


SPOKEN: Mapping[str, str] = {
    "devices": "GPUs",
    "auto": "as printed",
    "time": "time",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "ratio": "ratio to the first",
    "library_version": "version",
}


def control(name: str) -> str:
    """The name of a filter's control: Dash's names hold no dots."""
    return name.replace(".", "-")


def tabs(dcc: Any, state: State) -> list[Any]:
    """A link to the first view of each tab, with the filters as they are."""
    known = registry.offered()
    chosen = known[state.view].tab
    links = []
    for tab in registry.TABS:
        view = state.view if tab == chosen else next(iter(registry.offered_in(tab)))
        name = "question chosen" if tab == chosen else "question"
        links.append(dcc.Link(tab, href=query(replace(state, view=view, cell="")) or "?", className=name))
    return links


def views_of(state: State) -> list[dict[str, str]]:
    """The choices of the views: those of the tab."""
    entries = registry.offered_in(registry.offered()[state.view].tab)
    return [{"label": entry.title, "value": name} for name, entry in entries.items()]


def filters(data: Data, state: State) -> list[list[str]]:
    """The choices of each of :data:`FILTER_CONTROLS`: what the other filters of its selection leave."""
    first, second = data.choices(state.filters), data.choices(state.second())
    known = {**first, **{SECOND + name: values for name, values in second.items()}}
    return [offered(known[name], state.chosen(name)) for name in FILTER_CONTROLS]


def size_choices(data: Data, state: State) -> list[dict[str, str]]:
    """The message sizes among what the filters leave, and the one that is chosen."""
    sizes = sorted({*data.sizes(state.filters), *([int(state.size)] if state.size else [])})
    return [{"label": size_text(size), "value": str(size)} for size in sizes]


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
    known = dict(zip(FILTER_CONTROLS, filters(data, state), strict=True))

    def select(name: str, prefix: str, values: list[str]) -> Any:
        chooser = dcc.Dropdown(
            id=control(prefix + name),
            options=known[prefix + name],
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
        options=size_choices(data, state),
    )
    controls = [
        html.Div([select(name, "", state.filters.get(name, [])) for name in FILTERS], className="row"),
        html.Div([html.Label("message size (views of one cell)", htmlFor="size"), size], className="chooser"),
        *(
            _radio(dcc, html, name, values, getattr(state, name))
            for name, values in choices().items()
            if name != "view"
        ),
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
            html.Div(dcc.Input(id="cell", type="hidden", value=state.cell), hidden=True),
            html.Header(
                [
                    html.H1("omb-py"),
                    html.Nav(tabs(dcc, state), id="tabs", **{"aria-label": "questions"}),
                    html.P(id="about"),
                ]
            ),
            html.Div(
                [
                    html.Button(
                        [html.Span("shown: "), html.Span(id="chosen")], id="fold", **{"aria-controls": "choices"}
                    ),
                    html.Div(controls, id="choices"),
                ],
                id="sidebar",
            ),
            html.Div(
                [
                    html.Fieldset(
                        [
                            html.Legend("view"),
                            dcc.RadioItems(id="view", options=views_of(state), value=state.view, inline=True),
                        ]
                    ),
                    html.P(id="note", role="status"),
                    html.Div(id="figures"),
                    *_table_of_cells(html, ag_grid),
                ],
                id="content",
            ),
            html.Aside(
                [
                    html.Button("close", id="close", title="Escape closes it too"),
                    html.Div(id="drawn", tabIndex=0),
                ],
                id="drawer",
                hidden=True,
                **{"aria-label": "one cell"},
            ),
        ]
    )


def _table_of_cells(html: Any, ag_grid: Any) -> list[Any]:
    return [
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
            dashGridOptions={
                "cacheBlockSize": grid.BLOCK,
                "maxBlocksInCache": 20,
                "rowBuffer": 0,
                "rowSelection": {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True},
            },
        ),
    ]


def in_drawer(html: Any, name: str, figures: Sequence[Any]) -> list[Any]:
    """What the drawer holds: the name of the cell and its figures, or that it is not there."""
    if not name:
        return [html.H2("The store has no such cell."), html.P("It was removed, or the link is of another store.")]
    nothing = [] if figures else [html.P("It has no sample and no fit.")]
    return [html.H2(name), *nothing, *figures]


def _radio(dcc: Any, html: Any, name: str, values: Sequence[str], chosen: str) -> Any:
    words = {**SPOKEN, **({"auto": "as the browser"} if name == "theme" else {})}
    options = [{"label": words.get(value, value), "value": value} for value in values]
    return html.Fieldset([html.Legend(name), dcc.RadioItems(id=name, options=options, value=chosen, inline=True)])


def one_selection(state: State) -> bool:
    """True where the view takes no second selection, so that its filters are hidden."""
    return "second" not in registry.offered()[state.view].inputs
