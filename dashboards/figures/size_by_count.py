"""One benchmark over message size and number of ranks or GPUs: who is fastest, bus bandwidth by size, and scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import Layout, Trace
from omb_py.dashboards.base.view import View, table
from omb_py.dashboards.figures.curves import Points, spread
from omb_py.dashboards.figures.panels import DrawnPanel, PanelPlaces, arrange, place_axis
from omb_py.results.analysis.crossover import ALPHA
from omb_py.results.units import size_text

KIND = "size by count"
"""Of the view."""
Fastest = Mapping[int, Mapping[int, str | None]]
"""Number of ranks or GPUs -> message size -> the fastest side; None where the launches do not tell."""
MOST_LINES = 6
"""Lines of a panel of one side: one for each count, or for each size; of several sides each has two."""
_MOST_TICKS = {"map": 14, "lines": 7, "labelled": 7}
_LABEL = 12
"""Pixels between the middles of two labels."""
_MOST_RUNS, _MOST_KEPT = 4, 3
"""Stretches of sizes that a title names, and sides of which a sentence says what they keep."""
_TIED, _LEVEL, _FULL_LEAD = 0.75, 1.0, 2.0
"""On the scale of colours: level with the second, ahead of it at all, and the lead from which on a colour is full."""
_SCALE = ((0.0, 0.13), (0.2, 0.35), (1.0, 1.0))
_HEIGHT, _MOST_HEIGHT, _ROW, _GAP = 150, 330, 21, 112
"""Pixels of a panel, at most, of a row of its map, and between two panels."""
_MARGIN = {"l": 52, "r": 16, "t": 26, "b": 44}
_MAP_SHARE = 1.8
"""Width of the map, that of a panel with lines being 1."""
_LEGEND_LETTERS, _SQUARE, _LINE = 50, 2, 16
"""Letters of a line of names above the map, those that a coloured square takes, and the pixels of the line."""
_MOST_WRITTEN = 20
"""Sizes up to which a cell has room for a number."""
_CERTAINTY = (
    "How sure is the map? Where sides are alike, the chance that a row of it calls one of them faster is at most "
    f"{100 * ALPHA:g} %."
)
"""The error rate of :func:`omb_py.results.analysis.crossover.fastest_of`, which judges a row at once."""
_WIDE = 20
"""Highest over lowest bandwidth from which on its axis is logarithmic: else the lower lines lie on the axis."""


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


Places = Mapping[str, Sequence[tuple[int, int]]]
"""Name of a line -> the counts and sizes that it goes through."""
Across = tuple[Sequence[int], Callable[[int], str], str]
"""Values on an x axis, their texts, and the title."""


def size_by_count(data: SizeByCount, title: str, method: str) -> View | None:
    """Panels of a benchmark: who is fastest, bus bandwidth by size and by count, and what of it is kept.

    None where there is one count or one size: a curve shows that. `title` is used where no map says who is fastest,
    `method` says how it was measured.
    """
    if len(data.counts) < 2 or len(data.sizes) < 2:
        return None
    several = len(data.sides) > 1
    panels = [*([_who_is_fastest(data)] if several else []), *_line_panels(data)]
    tall = min(_MOST_HEIGHT, max(_HEIGHT, _ROW * len(data.counts))) if several else _HEIGHT
    shares = (_MAP_SHARE if several else 1.0, *[1.0] * (len(panels) - 1))
    wide = PanelPlaces(len(panels), len(panels), tall, _GAP, 0.052, shares)
    fewer = {
        name: PanelPlaces(len(panels), columns, tall, _GAP, 0.09) for name, columns in (("middle", 2), ("narrow", 1))
    }
    lines = max(panel.heading.count("<br>") for panel in panels)
    margin = {**_MARGIN, "t": _MARGIN["t"] + _LINE * lines}
    traces, layout = arrange(panels, wide, fewer, margin)
    layout["meta"]["middle"]["xaxis"] |= theme.thinned(panels[0].x_axis, _MOST_TICKS["lines"])
    spec = {"data": traces, "layout": {**layout, "showlegend": False}}
    sentence = _finding(data) or title
    notes = (_CERTAINTY, method) if several else (method,)
    return View(KIND, sentence, _scaling(data), spec, **table(*_table(data)), notes=notes, choice=data.name)


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
    what = ["number: times faster than the second", "small square: the second"]
    marks = {_mark(data, count, size) for count in data.counts for size in data.sizes}
    what[1] += "; =: level, within the noise" if "=" in marks else ""
    what += ["?: one launch, no known noise"] if "?" in marks else []
    return "<br>".join(["<b>Who is fastest?</b>", *(_small(line.rstrip()) for line in (*lines, *what))])


def _small(text: str) -> str:
    return f'<span style="font-size:11px">{text}</span>'


def _node(data: SizeByCount) -> str:
    """What the share that is kept is held against: ``one node``, or ``8 GPUs``."""
    reference = _reference(data) or 0
    beyond = max(data.nodes.values(), default=1) > 1
    return "one node" if beyond and data.nodes.get(reference) == 1 else _count_text(data, reference)


def _line_names(data: SizeByCount, names: Sequence[str]) -> str:
    """A line that says whose lines there are, short enough for a phone; those of one side are named at their ends."""
    if len(data.sides) < 2:
        return f"<br>{_small(theme.label(data.sides[0], 24))}"
    dashes = ("dotted", "solid") if len(names) > 1 else ("solid",)
    return "<br>" + _small("; ".join(f"{dash}: {name}" for dash, name in zip(dashes, names, strict=True)))


def _unit(data: SizeByCount) -> str:
    return "GPUs" if data.times.grid.over == "devices" else "ranks"


def _count_text(data: SizeByCount, count: int) -> str:
    return data.times.grid.text(data.times.grid.over, count)


def short_size(size: int) -> str:
    """A size as a tick: ``64``, ``16K``, ``1M``.

    >>> [short_size(size) for size in (4, 65536, 1 << 20, 1 << 30, 1536)]
    ['4', '64K', '1M', '1G', '1536']
    """
    return size_text(size).replace(" B", "").replace(" KiB", "K").replace(" MiB", "M").replace(" GiB", "G")


def _axis_title(text: str) -> Layout:
    return {"text": text, "font": {"size": 12}, "standoff": 6}


def _make_axis(values: Sequence[int], texts: Callable[[int], str], title: str, kind: str) -> Layout:
    """An axis with one place for each value, and a tick at some of them."""
    axis = place_axis([*map(texts, values)], _MOST_TICKS[kind], 1.16 if kind == "labelled" else 1.0)
    return {"title": _axis_title(title), **axis}


def _who_is_fastest(data: SizeByCount) -> DrawnPanel:
    traces: list[Trace] = []
    places = [(at, row, size, count) for row, count in enumerate(data.counts) for at, size in enumerate(data.sizes)]
    texts = [[_hover(data, count, size) for size in data.sizes] for count in data.counts]
    across, up = list(range(len(data.sizes))), list(range(len(data.counts)))
    for number, side in enumerate(data.sides):
        shades = [[_shade_of(data, count, size, side) for size in data.sizes] for count in data.counts]
        scale = [[at, theme.faint(theme.colour(number), opacity)] for at, opacity in _SCALE]
        look = {"colorscale": scale, "zmin": _TIED, "zmax": _FULL_LEAD}
        hover = {"text": texts, "hovertemplate": "%{text}<extra></extra>"}
        traces.append(theme.heatmap(across, up, shades, 1, name=side, **look, **hover))
    seconds = [(at, row, order[1]) for at, row, size, count in places if len(order := _order(data, count, size)) > 1]
    colours = [theme.colour(data.sides.index(side)) for *_, side in seconds]
    if seconds and len(data.sizes) <= _MOST_WRITTEN:
        look = {"marker": {"symbol": "square", "size": 5, "color": colours}, "hoverinfo": "skip"}
        below = [row - 0.31 for _, row, _ in seconds]
        traces.append(theme.scatter("markers", [at for at, *_ in seconds], below, "the second", **look))
    x_axis = _make_axis(data.sizes, short_size, "message size (B)", "map")
    y_axis = _make_axis(data.counts, str, _unit(data), "map")
    written = []
    for at, row, size, count in places if len(data.sizes) <= _MOST_WRITTEN else ():
        if text := _mark(data, count, size):
            white = {"color": "#ffffff"} if (_lead(data, count, size) or 0.0) > 1.6 else {}
            font = {"size": 9 if len(text) < 4 else 8, **white}
            written.append({"text": text, "x": at, "y": row + 0.14, "showarrow": False, "font": font})
    return DrawnPanel(_fastest_heading(data), traces, x_axis, y_axis, written)


def _order(data: SizeByCount, count: int, size: int) -> list[str]:
    """The sides that were measured there, the fastest first."""
    middles = data.times.middles(count)
    return sorted((side for side in middles if size in middles[side]), key=lambda side: middles[side][size])


def _lead(data: SizeByCount, count: int, size: int) -> float | None:
    """How many times faster than the second the fastest side is; None where the launches do not tell who it is."""
    order, middles = _order(data, count, size), data.times.middles(count)
    is_known = len(order) > 1 and data.fastest.get(count, {}).get(size) == order[0]
    return middles[order[1]][size] / middles[order[0]][size] if is_known else None


def _mark(data: SizeByCount, count: int, size: int) -> str:
    """What a cell says: the lead, ``=`` where the first two are level, ``?`` where the noise is not known."""
    lead, first_two = _lead(data, count, size), _order(data, count, size)[:2]
    if lead is not None:
        return _factor(lead)
    if len(first_two) < 2:
        return ""
    return "?" if any(data.times.of(count)[side]["launches"][size] < 2 for side in first_two) else "="


def _factor(lead: float) -> str:
    """A lead with as many digits as tell it from none.

    >>> _factor(1.052), _factor(1.31), _factor(12.3)
    ('1.05', '1.3', '12')
    """
    return f"{lead:.{2 if lead < 1.095 else 1 if lead < 9.95 else 0}f}"


def _shade_of(data: SizeByCount, count: int, size: int, side: str) -> float | None:
    """Where the colour of a side lies on its scale; None where another one is faster."""
    if side not in _order(data, count, size)[:1]:
        return None
    lead = _lead(data, count, size)
    return _TIED if lead is None else min(max(lead, _LEVEL), _FULL_LEAD)


def _finding(data: SizeByCount) -> str:
    """Who is fastest where and by how much, at the most ranks or GPUs at which that is known; empty without such."""
    count = max((count for count in data.counts if any(data.fastest.get(count, {}).values())), default=None)
    if count is None:
        return ""
    sizes = [size for size in data.sizes if len(_order(data, count, size)) > 1]
    runs = [(first, list(run)) for first, run in groupby(sizes, key=data.fastest.get(count, {}).get)]
    if len(runs) > _MOST_RUNS:
        return ""
    ahead: list[str] = []
    for number, (first, run) in enumerate(runs):
        if first is None:
            continue
        leads = [lead for size in run if (lead := _lead(data, count, size)) is not None]
        by = " to ".join(dict.fromkeys(map(_factor, (min(leads), max(leads)))))
        seconds = " or ".join(dict.fromkeys(_order(data, count, size)[1] for size in run))
        over = f" over {seconds}" if len(data.sides) > 2 else ""
        ahead.append(f"{first} {_size_range_text(run, number == 0, number + 1 == len(runs))} ({by}×{over})")
    level = "; elsewhere no difference is shown" if any(first is None for first, _ in runs) else ""
    return f"{data.name} on {_count_text(data, count)}, fastest: {', '.join(ahead)}{level}"


def _size_range_text(run: Sequence[int], first: bool, last: bool) -> str:
    low, high = size_text(run[0]), size_text(run[-1])
    if first or last:
        return "at every size" if first and last else f"up to {high}" if first else f"from {low}"
    return f"at {low}" if len(run) == 1 else f"from {low} to {high}"


def _scaling(data: SizeByCount) -> str:
    """What the first sides keep of their bus bandwidth on most ranks or GPUs; empty without a bus bandwidth."""
    reference = _reference(data)
    if reference is None:
        return ""
    last, texts = data.counts[-1], []
    for side in data.sides[:_MOST_KEPT]:
        pairs = [
            (size, *(data.shown.middles(n).get(side, {}).get(size) for n in (last, reference)))
            for size in _choose_sizes(data)
        ]
        kept = [
            f"{100 * now / then:.0f} % at {size_text(size)} ({_value(data, now)})"
            for size, now, then in reversed(pairs)
            if now and then
        ]
        texts += [f"{side} keeps {', '.join(kept)}"] if kept else []
    node = _node(data)
    of = node if node == _count_text(data, reference) else f"{node} ({_count_text(data, reference)})"
    return f"Of the bus bandwidth of {of}, on {_count_text(data, last)} {'; '.join(texts)}" if texts else ""


def _hover(data: SizeByCount, count: int, size: int) -> str:
    there = sorted((values[size], name) for name, values in data.times.middles(count).items() if size in values)
    lines = [f"<b>{size_text(size)}, {_count_text(data, count)}</b>"]
    lines += [f"{theme.duration(time)}  {theme.escape(name)}" for time, name in there]
    if len(there) > 1 and data.fastest.get(count, {}).get(size) is None:
        lines.append("no difference beyond the noise of the launches")
    return "<br>".join(lines)


def _choose_counts(data: SizeByCount) -> list[int]:
    """Counts with a line: of several sides that on one node and the largest."""
    if len(data.sides) < 2:
        return spread(data.counts, MOST_LINES)
    return sorted({_reference(data) or data.counts[0], data.counts[-1]})


def _line_panels(data: SizeByCount) -> Iterator[DrawnPanel]:
    """The panels with lines: over message size, over the counts, and what is kept beyond the reference count."""
    sizes, counts = (data.sizes, short_size, "message size (B)"), (data.counts, str, _unit(data))
    of_counts = {_count_text(data, count): [(count, size) for size in data.sizes] for count in _choose_counts(data)}
    of_sizes = {size_text(size): [(count, size) for count in data.counts] for size in _choose_sizes(data)}
    is_rate = data.shown is data.rates
    quantity, unit = ("Bus bandwidth", "GB/s") if is_rate else ("Time", "µs")

    def panel(head: str, places: Places, across: Across, title: str, log: bool, kept: bool = False) -> DrawnPanel:
        traces, ends = _draw_lines(data, places, kept)
        values = [value for value in theme.list_values(traces) if value]
        log = log and (not is_rate or max(values, default=1) > _WIDE * min(values, default=1))
        axis = theme.value_axis("", log, values)
        text = f"{title} (log)" if log else title
        axis |= {**theme.thinned(axis, 6), "title": _axis_title(text), "tickfont": {"size": 10}}
        x_axis = _make_axis(*across, "lines" if len(data.sides) > 1 else "labelled")
        name = f"<b>{head}</b>{_line_names(data, [*places])}"
        return DrawnPanel(name, traces, x_axis, axis, _labels(ends, axis))

    yield panel(f"{quantity} by size", of_counts, sizes, unit, not is_rate)
    yield panel(f"{quantity} over {_unit(data)}", of_sizes, counts, unit, True)
    reference = _reference(data)
    if reference is not None:
        known = [count for count in data.counts if count >= reference]
        kept = {name: [place for place in places if place[0] >= reference] for name, places in of_sizes.items()}
        title = f"% of {_count_text(data, reference)}"
        yield panel(f"Kept beyond {_node(data)}", kept, (known, str, _unit(data)), title, False, kept=True)


def _draw_lines(data: SizeByCount, lines: Places, kept: bool) -> tuple[list[Trace], list[tuple[int, float, str]]]:
    """Lines in the colours of their sides: of several sides dotted and solid, of one from pale to full, with their
    ends; of values, or where they are `kept` of their percentage of the first."""
    traces, ends = [], []
    several = len(data.sides) > 1
    for number, (name, places) in enumerate(lines.items()):
        is_last = number + 1 == len(lines)
        opacity = 1.0 if several else 0.35 + 0.65 * number / max(1, len(lines) - 1)
        for index, side in enumerate(data.sides):
            values = [data.shown.middles(count).get(side, {}).get(size) for count, size in places]
            if all(value is None for value in values):
                continue
            texts = [_value(data, value) for value in values]
            if kept:
                values = [100 * v / values[0] if v is not None and values[0] else None for v in values]
                texts = ["" if share is None else f"{share:.0f} %" for share in values]
            look = {"color": theme.faint(theme.colour(index), round(opacity, 2)), "width": 2}
            look["dash"] = "solid" if is_last or not several else "dot"
            more = {"text": texts, "connectgaps": True, "hovertemplate": "%{text}  %{fullData.name}<extra></extra>"}
            label = theme.label(f"{name}, {side}", 60)
            traces.append(theme.scatter("lines", [*range(len(values))], values, label, **more, line=look))
            ends += [] if several else [(at, value, name) for at, value in enumerate(values) if value is not None][-1:]
    return traces, ends


def _reference(data: SizeByCount) -> int | None:
    """The count that others are held against: the largest of the fewest nodes; None where nothing is beyond it."""
    if data.shown is not data.rates:
        return None
    counts = [count for count in data.counts if data.rates.of(count)]  # one rank has no bus bandwidth
    fewest = min((data.nodes[count] for count in counts if count in data.nodes), default=1)
    within = [count for count in counts if data.nodes.get(count, 1) == fewest]
    reference = max(within) if within and max(within) < data.counts[-1] else min(counts, default=data.counts[-1])
    return reference if data.counts[-1] > reference else None


def _choose_sizes(data: SizeByCount) -> list[int]:
    """Sizes with a line: some that every count has, from small to large; where rates are shown, the upper half."""
    side = data.sides[min(1, len(data.sides) - 1)]  # of two versions the new one
    newest = [data.times.middles(count).get(side, {}) for count in data.counts]
    common = [size for size in data.sizes if all(size in middles for middles in newest)]
    large = common[len(common) // 2 :] if data.shown is data.rates else common
    return spread(large or data.sizes, 4) if len(data.sides) < 2 else spread(large or data.sizes, 3)[-2:]


def _value(data: SizeByCount, value: float | None) -> str:
    if value is None:
        return ""
    return f"{theme.amount(value)} GB/s" if data.shown is data.rates else theme.duration(value)


def _labels(ends: Sequence[tuple[int, float, str]], axis: Layout) -> list[Layout]:
    """Labels right of the ends of lines, so far from each other that each can be read."""
    logarithmic = axis.get("type") == "log"
    low, high = axis.get("range", (0.0, 1.0))
    labels: list[Layout] = []
    above = -math.inf
    for place, value, text in sorted(ends, key=lambda end: end[1]):
        height = math.log10(value) if logarithmic and value > 0 else value
        pixels = _HEIGHT * (height - low) / (high - low)
        above = max(pixels, above + _LABEL)
        where = {"x": place, "y": height, "xshift": 4, "yshift": round(above - pixels)}
        look = {"showarrow": False, "xanchor": "left", "yanchor": "middle", "font": {"size": 10}}
        labels.append({"text": text, **where, **look})
    return labels


def _table(data: SizeByCount) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    heads = ("size", _unit(data), "fastest", "times faster than the second", *(f"{side} µs" for side in data.sides))
    rows: list[tuple[object, ...]] = []
    for count in data.counts:
        middles = data.times.middles(count)
        for size in data.sizes:
            there = [middles.get(side, {}).get(size) for side in data.sides]
            first = data.fastest.get(count, {}).get(size)
            lead = _lead(data, count, size)
            if any(value is not None for value in there):
                rows.append((size_text(size), count, first or "", "" if lead is None else round(lead, 3), *there))
    return heads, rows
