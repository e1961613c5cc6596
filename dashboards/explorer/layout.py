"""The explorer's page: tabs, controls, views with their figures, table of cells, drawer. Needs Dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.theme import Facts, Layout
from omb_py.dashboards.base.view import MOST_ITEMS, TABS, Item, View, plural
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import State, choices, query
from omb_py.dashboards.views import registry
from omb_py.results.units import listed, size_text

Component = Any
"""A component of Dash, which declares no types."""
dcc: Any = import_module("dash.dcc")
html: Any = import_module("dash.html")
SPOKEN: Mapping[str, str] = {
    "devices": "GPUs",
    "auto": "as printed",
    "time": "time",
    "algbw": "algorithm bandwidth",
    "busbw": "bus bandwidth",
    "ratio": "ratio to the first",
    "kept": "% of the fewest ranks or GPUs",
    "count": "counted over",
    "library_version": "version",
}
LEGEND_LINE = 24
"""Pixels."""
LOADING_MS = 400
"""Milliseconds after which the page says that figures are being made; what stands there stays to be read."""
MOST_TABLE_ROWS = 200
"""Rows of the table under a figure; the report has all."""
NARROW = "narrow"
"""A phone, and the drawer."""
ROOMS = (NARROW, "middle")
"""How much room figures have where it is little; a figure's layout has in its ``meta`` what it then shows otherwise."""
ABOVE, FIGURE, BELOW = "above", "figure", "below"
"""The three parts of a view on the page; with the number of the view they are the ids of Dash's components."""


def figure(view: View, theme: str, room: str, revision: tuple[str, str], number: int = -1) -> Component:
    """A view in a theme: title, caption, figure, notes, table, command.

    Args:
        room: one of :data:`ROOMS`, or empty where there is enough.
        revision: while the first is the same, zoom and isolated series stay as they are; heights, while both are.
        number: of the figure on the page, for clicks on its points and for :func:`drawn_again`; below 0 for none.
    """

    def named(name: str) -> dict[str, dict[str, int]]:
        return {"id": {name: number}} if number >= 0 else {}

    parts = [html.Div([html.H3(view.title), html.P(view.caption, className="soft")], **named(ABOVE))]
    if view.spec is not None:
        layout = _layout(view.spec, theme, room, revision)
        data = [
            {**trace, "customdata": view.cells[at]} if at in view.cells else trace
            for at, trace in enumerate(view.spec["data"])
        ]
        parts.append(
            dcc.Graph(
                **named(FIGURE),
                figure={"data": data, "layout": layout},
                config={"displaylogo": False, "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]]},
                responsive=True,
                style={"height": f"{layout['height']}px"},
            )
        )
    parts.append(html.Div(_make_notes(view), **named(BELOW)))
    return html.Section(parts, **{"data-kind": view.kind})


def _layout(spec: Facts, theme: str, room: str, revision: tuple[str, str]) -> Layout:
    layout = {**spec["layout"], "template": style.template(theme), "autosize": True, "uirevision": revision[0]}
    layout = _merge(layout, layout.get("meta", {}).get(room, {}))
    for name in [name for name in layout if name.startswith("yaxis")]:
        layout[name] = {**layout[name], "uirevision": "".join(revision)}
    entries = sum(bool(trace.get("name")) and trace.get("showlegend", True) for trace in spec["data"])
    if layout.get("showlegend", True):  # on a phone the entries stand one below the other
        layout["height"] += LEGEND_LINE * max(0, entries - 2)
    return layout


def _make_notes(view: View) -> list[Component]:
    parts = [html.P(note, className="label" if view.kind == "status" else "soft") for note in view.notes]
    if view.items:
        parts.append(html.Ol([_item(item) for item in view.items[:MOST_ITEMS]], className="changes"))
        if left := view.items[MOST_ITEMS:]:
            summary = html.Summary(f"{plural(len(left), 'line')} more")
            parts.append(html.Details([summary, html.Ol([_item(item) for item in left], className="changes")]))
    if not view.columns:
        return parts
    heading = html.Summary(f"table, {plural(len(view.rows), 'row')}")
    parts.append(html.Details([heading, _table(view)], open=view.spec is None))
    if view.commands:
        parts.append(html.Details([html.Summary("to measure this again"), html.Pre("\n".join(view.commands))]))
    return parts


def drawn_again(sections: Sequence[Component]) -> list[tuple[dict[str, int], dict[str, Any]]]:
    """(id, properties) of what changes where the page has these views (of :func:`figure`, with numbers) already.

    Dash makes new elements of whatever it is given as children, and a new figure knows nothing of a zoom or of a series
    that was isolated. A figure that is given its data keeps them.
    """
    return [
        (part.id, {"figure": part.figure, "style": part.style} if FIGURE in part.id else {"children": part.children})
        for section in sections
        for part in section.children
    ]


def _item(item: Item) -> Component:
    text = html.A(item.text, href=item.link) if item.link else html.Span(item.text)
    return html.Li([html.B(item.kind, className=f"kind {item.kind}"), html.Span(text)])


def _merge(layout: Layout, more: Layout) -> Layout:
    """A layout with what it shows otherwise where there is little room, as the report's script merges it."""
    known = dict(layout)
    for name, value in more.items():
        known[name] = {**known.get(name, {}), **value} if isinstance(value, Mapping) else value
    return known


def _table(view: View) -> Component:
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in view.columns]))
    lines = [html.Tr([_cell(value) for value in row]) for row in view.rows[:MOST_TABLE_ROWS]]
    left = len(view.rows) - MOST_TABLE_ROWS
    more = [html.P(f"and {plural(left, 'row')} more", className="soft")] if left > 0 else []
    return html.Div([html.Table([head, html.Tbody(lines)]), *more], className="scroll", tabIndex=0)


def _cell(value: object) -> Component:
    if style.absent(value):
        return html.Td("-")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return html.Td(f"{value:.6g}" if isinstance(value, float) else str(value), className="number")
    return html.Td(str(value))


def tabs(state: State) -> list[Component]:
    """A link to the first view of each tab, with the filters as they are."""
    chosen = registry.offered()[state.view].tab
    links = []
    for tab in TABS:
        view = state.view if tab == chosen else next(iter(registry.offered_in(tab)))
        name = "question chosen" if tab == chosen else "question"
        links.append(dcc.Link(tab, href=query(replace(state, view=view, cell="")) or "?", className=name))
    return links


def views_of(state: State) -> list[dict[str, str]]:
    """The choices of the views: those of the tab."""
    entries = registry.offered_in(registry.offered()[state.view].tab)
    return [{"label": entry.title, "value": name} for name, entry in entries.items()]


def filters(data: Data, state: State) -> list[list[str]]:
    """The choices of each filter: what the other filters leave.

    What a link has chosen although there is none stays among them: a dropdown would leave it out, and show everything.
    """
    known = data.choices(state.filters)
    return [[*dict.fromkeys([*known[name], *state.filters.get(name, ())])] for name in FILTERS]


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
    chosen = [name for name in FILTERS if state.filters.get(name)]
    return " · ".join([*words, *(f"{SPOKEN.get(name, name)} {listed(state.filters[name])}" for name in chosen)])


def page(data: Data, state: State, refresh_ms: int) -> Component:
    """The whole page, its controls as the state says. A clientside callback folds them where there is little room."""
    title = [html.H1("omb-py"), html.Nav(tabs(state), id="tabs", **{"aria-label": "questions"}), html.P(id="about")]
    shown = [html.Span("shown: "), html.Span(id="chosen")]
    fold = html.Button(shown, id="fold", **{"aria-controls": "choices"})
    content = [
        radio("view", views_of(state), state.view),
        html.P(id="note", role="status"),
        dcc.Loading(
            html.Div(id="figures"),
            delay_show=LOADING_MS,
            target_components={"figures": "children"},
            overlay_style={"visibility": "visible", "opacity": 0.4},
        ),
        *_table_of_cells(),
    ]
    drawer = [html.Button("close", id="close", title="Escape closes it too"), html.Div(id="drawn", tabIndex=0)]
    return html.Main(
        [
            dcc.Location(id="link", refresh=False),
            dcc.Interval(id="clock", interval=refresh_ms),
            dcc.Store(id="version", data=data.version),
            dcc.Store(id="shown"),
            dcc.Store(id="window"),
            dcc.Download(id="download"),
            html.Div(dcc.Input(id="cell", type="hidden", value=state.cell), hidden=True),
            html.Header(title),
            html.Div([fold, html.Div(_controls(data, state), id="choices")], id="sidebar"),
            html.Div(content, id="content"),
            html.Aside(drawer, id="drawer", hidden=True, **{"aria-label": "one cell"}),
        ]
    )


def _controls(data: Data, state: State) -> list[Component]:
    choosers = []
    for name, options in zip(FILTERS, filters(data, state), strict=True):
        label = html.Label(SPOKEN.get(name, name), htmlFor=name)
        own = {"options": options, "value": state.filters.get(name, [])}
        chooser = dcc.Dropdown(id=name, **own, multi=True, placeholder="all")
        choosers.append(html.Div([label, chooser], className="chooser"))
    sizes = {"options": size_choices(data, state), "value": state.size or None}
    size = dcc.Dropdown(id="size", **sizes, placeholder="the smallest")
    radios = {}
    for name, values in choices().items():
        if name != "view":
            words = SPOKEN if name != "theme" else {"auto": "as the browser"}
            radios[name] = [{"label": words.get(value, value), "value": value} for value in values]
    return [
        html.Div(choosers, className="row"),
        html.Div([html.Label("message size (views of one cell)", htmlFor="size"), size], className="chooser"),
        *(radio(name, options, getattr(state, name)) for name, options in radios.items()),
    ]


def _table_of_cells() -> list[Component]:
    buttons = [html.Button("download CSV", id="csv"), html.Button("download Parquet", id="parquet")]
    selection = {"mode": "singleRow", "checkboxes": False, "enableClickSelection": True}
    table = import_module("dash_ag_grid").AgGrid(
        id="cells",
        columnDefs=grid.columns(),
        rowModelType="infinite",
        defaultColDef={"sortable": True, "resizable": True},
        dashGridOptions={
            "cacheBlockSize": grid.BLOCK,
            "maxBlocksInCache": 20,
            "rowBuffer": 0,
            "rowSelection": selection,
        },
    )
    return [html.H2("Cells"), html.Div(buttons, className="row"), table]


def in_drawer(name: str, figures: Sequence[Component]) -> list[Component]:
    """What the drawer holds: the name of the cell and its figures, or that it is not there."""
    if not name:
        return [html.H2("The store has no such cell."), html.P("It was removed, or the link is of another store.")]
    nothing = [] if figures else [html.P("It has no sample and no fit.")]
    return [html.H2(name), *nothing, *figures]


def radio(name: str, options: Sequence[Facts], chosen: str) -> Component:
    """A control of one value among a few."""
    return html.Fieldset(
        [html.Legend(SPOKEN.get(name, name)), dcc.RadioItems(id=name, options=options, value=chosen, inline=True)]
    )
