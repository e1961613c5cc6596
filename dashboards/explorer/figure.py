"""A view on the explorer's page: title, caption, figure, notes, table, command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.sparkline import sparkline
from omb_py.dashboards.base.view import Item, View, plural

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
