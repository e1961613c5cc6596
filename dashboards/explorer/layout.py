"""The explorer's page: tabs, controls, table of cells, drawer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from omb_py.dashboards.base.view import listed
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import FILTERS, Data
from omb_py.dashboards.explorer.state import FILTER_CONTROLS, SECOND, State, choices, query
from omb_py.dashboards.views import registry
from omb_py.results.units import size_text

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
