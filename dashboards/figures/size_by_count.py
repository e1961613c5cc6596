"""One benchmark over message size and number of ranks or GPUs: who is fastest, bus bandwidth by size, and scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Trace
from omb_py.dashboards.base.view import View, table
from omb_py.dashboards.figures.curves import Points, spread
from omb_py.results.units import size_text

KIND = "size by count"
"""Of the view."""
Fastest = Mapping[int, Mapping[int, str | None]]
"""Number of ranks or GPUs -> message size -> the fastest side; None where the launches do not tell."""
MOST_LINES = 6
"""Lines of a panel: one for each count, or for each size."""
_MOST_TICKS = 7
_LEAST_LEAD = 1.08
"""Leads below it are not written into the map: the colour says who it is."""
_FULL_LEAD = 2.0
"""The lead from which on a colour is full."""
_HEIGHT, _GAP = 240, 106
"""Pixels of a panel, and between two."""
_MARGIN = {"l": 64, "r": 24, "t": 40, "b": 48}
_LEGEND_LETTERS, _SQUARE, _LINE = 42, 4, 18
"""Letters of a line of names above the map, those that a coloured square takes, and the pixels of the line."""


@dataclass(frozen=True)
class SizeByCount:
    """What the figure shows of one benchmark."""

    name: str
    times: Points
    """Of each side: a panel for each count, over message size."""
    rates: Points
    """The same in bus bandwidth; without a point for benchmarks that have none."""
    fastest: Fastest
    nodes: Mapping[int, int]
    """Count -> nodes."""

    @property
    def sides(self) -> list[str]:
        """The sides, in the order of their colours."""
        return list(dict.fromkeys(side for side, _ in self.times.known))

    @property
    def counts(self) -> list[int]:
        """All numbers of ranks or GPUs."""
        return sorted({count for _, count in self.times.known})

    @property
    def sizes(self) -> list[int]:
        """All message sizes."""
        return sorted({int(size) for rows in self.times.known.values() for size in rows.index})

    @property
    def shown(self) -> Points:
        """What the panels with lines show: bus bandwidth where there is one, else time."""
        return self.rates if any(len(rows) for rows in self.rates.known.values()) else self.times

    @property
    def newest(self) -> str:
        """The side of the panels with lines: of two versions the new one, which is the second."""
        return self.sides[min(1, len(self.sides) - 1)]


Draw = Callable[[SizeByCount, str, str], tuple[list[Trace], Layout, Layout, list[Layout]]]
"""Draws a panel on the axes of these names: traces, x axis, y axis, and annotations."""


def size_by_count(data: SizeByCount, title: str, caption: str) -> View | None:
    """Panels of a benchmark: who is fastest, bus bandwidth by size and by count, and what of it is kept.

    None where there is one count or one size: a curve shows that.
    """
    if len(data.counts) < 2 or len(data.sizes) < 2:
        return None
    of_lines = [("by_size", _by_size), ("by_count", _by_count)]
    several = len(data.sides) > 1
    panels: list[tuple[str, Draw]] = [*([("fastest", _who_is_fastest)] if several else []), *of_lines]
    if _reference(data) is not None:
        panels.append(("kept", _kept))
    beside, below = (PanelPlaces(len(panels), columns, _HEIGHT, _GAP, 0.09) for columns in (2, 1))
    traces: list[Trace] = []
    layout: Layout = {}
    notes: list[Layout] = []
    narrow: Layout = {}
    for number, (name, draw) in enumerate(panels):
        x, y = (f"{letter}{number + 1 if number else ''}" for letter in "xy")
        drawn, x_axis, y_axis, written = draw(data, x, y)
        traces += [{**trace, "xaxis": x, "yaxis": y} for trace in drawn]
        wide, tall = beside.domains(number), below.domains(number)
        x_name, y_name = f"xaxis{x[1:]}", f"yaxis{y[1:]}"
        layout[x_name] = {**x_axis, "anchor": y, "domain": wide[0]}
        layout[y_name] = {**y_axis, "anchor": x, "domain": wide[1]}
        narrow[x_name], narrow[y_name] = {"domain": tall[0]}, {"domain": tall[1]}
        notes += [*written, heading(_HEADINGS[name](data), x, y)]
    lines = max(_HEADINGS[name](data).count("<br>") for name, _ in panels[:2])
    margin = {**_MARGIN, "t": _MARGIN["t"] + _LINE * lines}
    spec = {
        "data": traces,
        "layout": theme.layout(
            height=beside.pixels + margin["t"] + margin["b"],
            showlegend=False,
            margin=margin,
            annotations=notes,
            shapes=_crossovers(data) if several else [],
            meta={"narrow": {**narrow, "height": below.pixels + margin["t"] + margin["b"]}},
            **layout,
        ),
    }
    return View(KIND, title, caption, spec, **table(*_table(data)), choice=data.name)


@dataclass(frozen=True)
class PanelPlaces:
    """Where the panels of a figure stand."""

    panels: int
    columns: int
    tall: int
    """Pixels of a panel."""
    between: int
    """Pixels between two rows of panels."""
    gap: float
    """Share of the width between two columns."""

    @property
    def pixels(self) -> int:
        """Pixels of all rows of panels, without the margins of the figure."""
        rows = max(1, math.ceil(self.panels / self.columns))
        return rows * self.tall + (rows - 1) * self.between

    def domains(self, number: int) -> tuple[list[float], list[float]]:
        """The part of the figure that a panel takes, from left to right and from below."""
        row, column = divmod(number, self.columns)
        width = (1 - self.gap * (self.columns - 1)) / self.columns
        left = column * (width + self.gap)
        top = 1 - row * (self.tall + self.between) / self.pixels
        return [left, min(1.0, left + width)], [max(0.0, top - self.tall / self.pixels), top]


def heading(text: str, x: str, y: str) -> Layout:
    """A line above the panel on these axes."""
    return {
        "text": text,
        "showarrow": False,
        "xref": f"{x} domain",
        "yref": f"{y} domain",
        "x": 0,
        "y": 1,
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 6,
        "align": "left",
        "font": {"size": 13},
    }


def _fastest_heading(data: SizeByCount) -> str:
    """The question and, below it, the sides in their colours, in lines that a phone has room for."""
    lines, length = [""], 0
    for number, side in enumerate(data.sides):
        name = theme.label(side, 24)
        if length and length + len(name) + _SQUARE > _LEGEND_LETTERS:
            lines.append("")
            length = 0
        lines[-1] += f'<span style="color:{theme.colour(number)}">■</span> {name} '
        length += len(name) + _SQUARE
    return "<br>".join(["<b>Who is fastest?</b>", *(line.rstrip() for line in lines)])


def _size_heading(data: SizeByCount) -> str:
    what = "Bus bandwidth" if data.shown is data.rates else "Time"
    return f"<b>{what} by size</b>{_name_lines(data)}"


def _count_heading(data: SizeByCount) -> str:
    what = "Bus bandwidth" if data.shown is data.rates else "Time"
    return f"<b>{what} over {_unit(data)}</b>{_name_lines(data)}"


def _kept_heading(data: SizeByCount) -> str:
    reference = _reference(data)
    return f"<b>What is kept beyond {_counted(data, reference or 0)}?</b>{_name_lines(data)}"


_HEADINGS: Mapping[str, Callable[[SizeByCount], str]] = {
    "fastest": _fastest_heading,
    "by_size": _size_heading,
    "by_count": _count_heading,
    "kept": _kept_heading,
}


def _name_lines(data: SizeByCount) -> str:
    """A line that says whose lines there are, short enough for a phone."""
    names = [theme.label(name, 18) for name in _drawn_sides(data)]
    return f"<br>dotted: {names[0]}; solid: {names[-1]}" if len(names) > 1 else f", {names[0]}"


def _unit(data: SizeByCount) -> str:
    return "GPUs" if data.times.grid.over == "devices" else "ranks"


def _counted(data: SizeByCount, count: int) -> str:
    return data.times.grid.text(data.times.grid.over, count)


def short_size(size: int) -> str:
    """A size as a tick: ``64``, ``16K``, ``1M``.

    >>> short_size(4), short_size(65536)
    ('4', '64K')
    """
    return size_text(size).replace(" B", "").replace(" KiB", "K").replace(" MiB", "M").replace(" GiB", "G")


def _axis_title(text: str) -> Layout:
    return {"text": text, "font": {"size": 12}, "standoff": 6}


def _make_axis(values: Sequence[int], texts: Callable[[int], str], title: str) -> Layout:
    """An axis with one place for each value, and a tick at some of them."""
    step = -(-len(values) // _MOST_TICKS)
    ticks = theme.ticks(range(0, len(values), step), [texts(values[place]) for place in range(0, len(values), step)])
    ends = {"range": [-0.5, len(values) - 0.5], "showgrid": False, "zeroline": False}
    return {"title": _axis_title(title), "tickangle": 0, **ticks, **ends}


def _who_is_fastest(data: SizeByCount, x: str, y: str) -> tuple[list[Trace], Layout, Layout, list[Layout]]:
    traces: list[Trace] = []
    notes: list[Layout] = []
    for number, side in enumerate(data.sides):
        shades = [[None if lead is None else min(lead, _FULL_LEAD) for lead in row] for row in _leads(data, side)]
        texts = [[_hover(data, count, size) for size in data.sizes] for count in data.counts]
        colour = theme.colour(number)
        scale = [[0, f"rgba({_rgb(colour)},0.18)"], [1, colour]]
        traces.append(
            theme.heatmap(
                list(range(len(data.sizes))),
                list(range(len(data.counts))),
                shades,
                1,
                name=side,
                colorscale=scale,
                zmin=1.0,
                zmax=_FULL_LEAD,
                text=texts,
                hovertemplate="%{text}<extra></extra>",
            )
        )
        notes += _written_leads(data, side, x, y)
    x_axis, y_axis = _make_axis(data.sizes, short_size, "message size (B)"), _make_axis(data.counts, str, _unit(data))
    return traces, x_axis, y_axis, notes


def _leads(data: SizeByCount, side: str) -> list[list[float | None]]:
    """How many times faster than the next a side is, where it is the fastest; 1 where the launches do not tell."""
    return [[_lead(data, count, size, side) for size in data.sizes] for count in data.counts]


def _lead(data: SizeByCount, count: int, size: int, side: str) -> float | None:
    there = sorted((values[size], name) for name, values in data.times.middles(count).items() if size in values)
    if not there or there[0][1] != side:
        return None
    return there[1][0] / there[0][0] if len(there) > 1 and data.fastest.get(count, {}).get(size) == side else 1.0


def _written_leads(data: SizeByCount, side: str, x: str, y: str) -> Iterator[Layout]:
    if len(data.sizes) > 30:
        return
    for row, leads in enumerate(_leads(data, side)):
        for place, lead in enumerate(leads):
            if lead is not None and lead >= _LEAST_LEAD:
                colour = {"color": "#ffffff"} if lead > 1.6 else {}
                yield {
                    "text": f"{lead:.1f}" if lead < 9.95 else f"{lead:.0f}",
                    "x": place,
                    "y": row,
                    "xref": x,
                    "yref": y,
                    "showarrow": False,
                    "font": {"size": 9, **colour},
                }


def _hover(data: SizeByCount, count: int, size: int) -> str:
    there = sorted((values[size], name) for name, values in data.times.middles(count).items() if size in values)
    lines = [f"<b>{size_text(size)}, {_counted(data, count)}</b>"]
    lines += [f"{theme.duration(time)}  {theme.escape(name)}" for time, name in there]
    if len(there) > 1 and data.fastest.get(count, {}).get(size) is None:
        lines.append("no difference beyond the noise of the launches")
    return "<br>".join(lines)


def _crossovers(data: SizeByCount) -> list[Layout]:
    """A line between two sizes where the fastest side changes, in the first panel."""
    shapes: list[Layout] = []
    for row, count in enumerate(data.counts):
        decided = [(place, data.fastest.get(count, {}).get(size)) for place, size in enumerate(data.sizes)]
        known = [(place, side) for place, side in decided if side is not None]
        for (_, before), (place, after) in pairwise(known):
            if before != after:
                line = {"width": 3, "color": theme.GREY}
                ends = {"x0": place - 0.5, "x1": place - 0.5, "y0": row - 0.5, "y1": row + 0.5}
                shapes.append({"type": "line", "xref": "x", "yref": "y", "line": line, **ends})
    return shapes


def _rgb(colour: str) -> str:
    return ",".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))


def _shade(number: int, of: int) -> str:
    """The colour of a line among several in order: from pale to full."""
    return f"rgba({_rgb(theme.COLOURS[0])},{0.35 + 0.65 * number / max(1, of - 1):.2f})"


def _styled(side: str, data: SizeByCount, colour: str) -> Layout:
    old = side != data.newest
    return {"color": colour, "width": 1.3 if old else 2.2, "dash": "dot" if old else "solid"}


def _drawn_sides(data: SizeByCount) -> list[str]:
    return list(dict.fromkeys([data.sides[0], data.newest]))


def _by_size(data: SizeByCount, x: str, y: str) -> tuple[list[Trace], Layout, Layout, list[Layout]]:
    """A line for each count, over message size."""
    counts = spread(data.counts, MOST_LINES)
    lines = {_counted(data, count): [(count, size) for size in data.sizes] for count in counts}
    traces, ends = _draw_lines(data, lines, lambda value, _: (value, _value(data, value)))
    return traces, _make_axis(data.sizes, short_size, "message size (B)"), _value_axis(data), _labels(ends, data, x, y)


def _by_count(data: SizeByCount, x: str, y: str) -> tuple[list[Trace], Layout, Layout, list[Layout]]:
    """A line for some sizes, over the counts."""
    lines = {size_text(size): [(count, size) for count in data.counts] for size in _some_sizes(data)}
    traces, ends = _draw_lines(data, lines, lambda value, _: (value, _value(data, value)))
    return traces, _make_axis(data.counts, str, _unit(data)), _value_axis(data), _labels(ends, data, x, y)


def _kept(data: SizeByCount, x: str, y: str) -> tuple[list[Trace], Layout, Layout, list[Layout]]:
    """Bus bandwidth over that of the reference count, in per cent, from there on."""
    reference = _reference(data) or 0
    counts = [count for count in data.counts if count >= reference]
    lines = {size_text(size): [(count, size) for count in counts] for size in _some_sizes(data)}
    traces, ends = _draw_lines(data, lines, _share_of_first)
    axis = {"title": _axis_title(f"% of {_counted(data, reference)}"), "rangemode": "tozero"}
    return traces, _make_axis(counts, str, _unit(data)), axis, _labels(ends, data, x, y, 100.0)


def _share_of_first(value: float | None, first: float | None) -> tuple[float | None, str]:
    share = 100 * value / first if value is not None and first else None
    return share, "" if share is None else f"{share:.0f} %"


ValueText = Callable[[float | None, float | None], tuple[float | None, str]]
"""What is drawn and said of a value, from it and the first one of its line."""
Places = Mapping[str, Sequence[tuple[int, int]]]
"""Name of a line -> the counts and sizes that it goes through."""


def _draw_lines(data: SizeByCount, lines: Places, show: ValueText) -> tuple[list[Trace], list[tuple[int, float, str]]]:
    """Lines from pale to full, dotted for BASE and solid for the newest side, and the ends of the solid ones."""
    traces, ends = [], []
    for number, (name, places) in enumerate(lines.items()):
        for side in _drawn_sides(data):
            known = [data.shown.middles(count).get(side, {}).get(size) for count, size in places]
            values, texts = zip(*(show(value, known[0]) for value in known), strict=True)
            traces.append(_line(range(len(values)), values, texts, f"{name}, {side}"))
            traces[-1]["line"] = _styled(side, data, _shade(number, len(lines)))
            if side == data.newest:
                ends += _end(values, name)
    return traces, ends


def _reference(data: SizeByCount) -> int | None:
    """The count that others are held against: the largest of the fewest nodes; None where nothing is beyond it."""
    if data.shown is not data.rates:
        return None
    fewest = min(data.nodes.values(), default=1)
    within = [count for count in data.counts if data.nodes.get(count, 1) == fewest]
    reference = max(within) if within and max(within) < data.counts[-1] else data.counts[0]
    return reference if data.counts[-1] > reference else None


def _some_sizes(data: SizeByCount) -> list[int]:
    """Sizes with a line: some that every count has, from small to large; where rates are shown, the upper half."""
    common = [size for size in data.sizes if all(_has(data, count, size) for count in data.counts)]
    large = common[len(common) // 2 :] if data.shown is data.rates else common
    return spread(large or data.sizes, 4)


def _has(data: SizeByCount, count: int, size: int) -> bool:
    return size in data.times.middles(count).get(data.newest, {})


def _line(x: Sequence[int], y: Sequence[float | None], text: Sequence[str], name: str) -> Trace:
    return theme.scatter(
        "lines",
        list(x),
        list(y),
        theme.label(name, 60),
        text=list(text),
        connectgaps=True,
        hovertemplate="%{text}  %{fullData.name}<extra></extra>",
    )


def _value(data: SizeByCount, value: float | None) -> str:
    if value is None:
        return ""
    return f"{theme.amount(value)} GB/s" if data.shown is data.rates else theme.duration(value)


def _value_axis(data: SizeByCount) -> Layout:
    if data.shown is data.rates:
        return {"title": _axis_title("GB/s"), "rangemode": "tozero"}
    return {"title": _axis_title("µs"), "type": "log"}


def _end(values: Sequence[float | None], text: str) -> list[tuple[int, float, str]]:
    """(place, value, text) of the last point of a line; nothing where it has none."""
    known = [(place, value) for place, value in enumerate(values) if value is not None]
    return [(*known[-1], text)] if known else []


def _labels(
    ends: Sequence[tuple[int, float, str]], data: SizeByCount, x: str, y: str, top: float | None = None
) -> list[Layout]:
    """Labels at the ends of lines; lines that end near each other have one, above the highest, that names them all.

    `top` is the largest value of the panel; None: that of all that is shown.
    """
    logarithmic = top is None and _value_axis(data).get("type") == "log"
    top = top or max((max(rows["middle"]) for rows in data.shown.known.values() if len(rows)), default=1.0) or 1.0
    groups: list[list[tuple[int, float, str]]] = []
    for end in sorted(ends, key=lambda one: one[1]):
        near = groups and (
            end[1] / max(groups[-1][0][1], 1e-12) < 1.3 if logarithmic else end[1] - groups[-1][0][1] < 0.09 * top
        )
        if near:
            groups[-1].append(end)
        else:
            groups.append([end])
    labels: list[Layout] = []
    for group in groups:
        place, value, _ = group[-1]
        labels.append(
            {
                "text": _in_order([text for *_, text in group], [text for *_, text in ends]),
                "x": place,
                "y": math.log10(value) if logarithmic and value > 0 else value,
                "xref": x,
                "yref": y,
                "showarrow": False,
                "xanchor": "right",
                "yanchor": "bottom",
                "font": {"size": 11},
            }
        )
    return labels


def _in_order(texts: Sequence[str], every: Sequence[str]) -> str:
    """Some names in the order of all: the first and the last where none between them is missing, else each.

    >>> _in_order(["64K", "4K", "16K"], ["4K", "16K", "64K", "256K"]), _in_order(["64K", "4K"], ["4K", "16K", "64K"])
    ('4K … 64K', '4K, 64K')
    """
    places = sorted(every.index(text) for text in texts)
    several = [every[place] for place in places]
    following = places[-1] - places[0] == len(places) - 1
    return f"{several[0]} … {several[-1]}" if following and len(several) > 2 else ", ".join(several)


def _table(data: SizeByCount) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    heads = ("size", _unit(data), "fastest", "times faster than the next", *(f"{side} µs" for side in data.sides))
    rows: list[tuple[object, ...]] = []
    for count in data.counts:
        middles = data.times.middles(count)
        for size in data.sizes:
            there = [middles.get(side, {}).get(size) for side in data.sides]
            first = data.fastest.get(count, {}).get(size)
            lead = _lead(data, count, size, first) if first else None
            if any(value is not None for value in there):
                rows.append((size_text(size), count, first or "", "" if lead is None else round(lead, 3), *there))
    return heads, rows
