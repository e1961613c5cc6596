"""The look of figures: colours, dashes and markers of a series, axes with units, the light and the dark template.

Colours have the hues of Okabe and Ito's (https://jfly.uni-koeln.de/color/), without black and yellow; orange, green and
purple are darker, sky blue is violet, so that each has a contrast of 3:1 or more on either background (WCAG 2.2,
1.4.11). A series differs from its neighbours by colour, dash *and* marker.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omb_py.results.units import amount as amount
from omb_py.results.units import size_text

Values = Sequence[Any]
"""Numbers, texts and nulls in a row."""
Facts = Mapping[str, Any]
"""Values by name."""
Record = Any
"""A row of a frame whose columns are attributes."""
Trace = dict[str, Any]
"""A trace as Plotly takes it."""
Layout = dict[str, Any]
"""A layout of Plotly, or a part of one: an axis, a shape, a line."""
COLOURS = ("#0072B2", "#00875F", "#B8578D", "#A66F00", "#7B61C9", "#D55E00")
"""Of series; orange is the last, since on maps of ratios and verdicts it means slower."""
DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot", "12px,3px,3px,3px,3px,3px")
"""Of series. :data:`TAIL` and :data:`BOUND` are no series and look like none of them."""
TAIL = "dot"
BOUND = "3px,6px"
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
GREY = "#7f8790"
VERDICT_LOOKS: Mapping[str, tuple[str, str]] = {
    "SLOWER": ("#D55E00", "triangle-up"),
    "FASTER": ("#0072B2", "triangle-down"),
    "SAME": ("#00875F", "circle"),
    "LIKELY SLOWER": ("#A66F00", "triangle-up-open"),
    "LIKELY FASTER": ("#A66F00", "triangle-down-open"),
    "UNCLEAR": ("#A66F00", "diamond-open"),
    "NOT COMPARABLE": (GREY, "x"),
    "FAIL": ("#D55E00", "triangle-up"),
    "ERROR": (GREY, "x"),
    "MARGINAL": ("#A66F00", "diamond-open"),
    "PASS": ("#00875F", "circle"),
}
"""Colour and marker of each verdict."""
DIVERGING = ((0.0, "#B35806"), (0.25, "#F1A340"), (0.5, "#F7F7F7"), (0.75, "#998EC3"), (1.0, "#542788"))
"""Orange to purple, ColorBrewer's PuOr: read alike by people who do not see red and green apart."""
THEMES = ("light", "dark")
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"
_INK = {
    "light": {"paper": "#ffffff", "text": "#1c2126", "grid": "#e3e6ea", "line": "#7f8790"},
    "dark": {"paper": "#15191e", "text": "#e6e9ec", "grid": "#30363d", "line": "#8b949e"},
}


def escape(text: object) -> str:
    """Text for a label: Plotly renders some HTML in labels, so what a user wrote is made text.

    >>> escape("<b>x</b> & y")
    '&lt;b&gt;x&lt;/b&gt; &amp; y'
    """
    return html.escape(str(text), quote=False)


def shortened(text: str, most: int = 40) -> str:
    """A long text without its middle.

    >>> shortened("abcdefghij", 7)
    'abc…hij'
    """
    head = most // 2
    return text if len(text) <= most else f"{text[:head]}…{text[-(most - 1 - head) :]}"


def label(text: str, most: int = 40) -> str:
    """Text for a legend, where a long one would not fit a phone: its middle is left out, the table has all of it."""
    return escape(shortened(text, most))


def colour(index: int) -> str:
    """Colour of the series with this number."""
    return COLOURS[index % len(COLOURS)]


def line(index: int) -> Layout:
    """Line of a series. Dashes move on faster than colours come round, so that no two of 36 series are alike."""
    return {"color": colour(index), "dash": DASHES[(index + index // len(COLOURS)) % len(DASHES)], "width": 2}


def marker(index: int) -> Layout:
    """Marker of a series."""
    return {"symbol": MARKERS[index % len(MARKERS)], "size": 7, "color": colour(index)}


def scatter(mode: str, x: Values, y: Values, name: str, **more: object) -> Trace:
    """A trace of markers, lines or both (Plotly's ``mode``); `more` are further properties of it."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": name, **more}


def heatmap(x: Values, y: Values, z: Sequence[Values], gap: int, **more: object) -> Trace:
    """A map without a colour bar, its cells `gap` pixels apart."""
    return {"type": "heatmap", "x": x, "y": y, "z": z, "xgap": gap, "ygap": gap, "showscale": False, **more}


def diverging(middle: float, reach: float, bar: Layout, hover: str) -> Trace:
    """A map in two colours about a middle, without its places and values; `bar` is its colour bar."""
    scale = {"zmin": middle - reach, "zmax": middle + reach, "colorscale": [list(step) for step in DIVERGING]}
    return {"type": "heatmap", **scale, "colorbar": bar, "hovertemplate": hover}


def series(index: int, name: str, x: Values, y: Values, hover: str, **more: object) -> Trace:
    """A trace with the line and the marker of series `index`; `hover` is the template of what is said of a point."""
    look = {"line": line(index), "marker": marker(index), "hovertemplate": f"{hover}<extra>%{{fullData.name}}</extra>"}
    return scatter("lines+markers", x, y, name, **look, **more)


def band(index: int, name: str, x: Values, low: Values, high: Values, **more: object) -> Trace:
    """The range of a series, filled with its colour."""
    look: Layout = {"fill": "toself", "fillcolor": faint(colour(index)), "line": {"width": 0}}
    around, ends = [*x, *reversed(x)], [*low, *reversed(high)]
    return scatter("lines", around, ends, name, **look, hoverinfo="skip", showlegend=False, **more)


def lower_bound(x: Values, y: Values) -> Trace:
    """The line of a lower bound in µs."""
    look = {"color": GREY, "dash": BOUND, "width": 1.5}
    hover = "at least %{y:.4g} µs<extra>lower bound</extra>"
    return scatter("lines", x, y, "lower bound", line=look, hovertemplate=hover)


def error_bars(values: Sequence[float | None], low: Iterable[object], high: Iterable[object], width: float) -> Layout:
    """The bars from `low` to `high` around some values; none where one of them is null."""

    def lengths(longer: Iterable[float | None], shorter: Iterable[float | None]) -> list[float | None]:
        return [None if a is None or b is None else a - b for a, b in zip(longer, shorter, strict=True)]

    ends = {"array": lengths(numbers(high), values), "arrayminus": lengths(values, numbers(low))}
    return {"type": "data", "symmetric": False, "thickness": width, **ends}


def line_at(at: float | str, **look: object) -> Layout:
    """A grey line from top to bottom of the whole figure at a place on its x axis."""
    ends = {"xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1}
    return {"type": "line", **ends, "line": {"width": 1, "color": GREY, **look}}


def faint(hex_colour: str, alpha: float = 0.18) -> str:
    """The colour as a translucent fill."""
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def absent(value: object) -> bool:
    """A null of any kind (None, NaN, pandas' NA and NaT), or empty text."""
    return value is None or str(value) in ("", "<NA>", "nan", "NaT")


def finite(value: Any) -> float | None:
    """A number as JSON can hold it: None for nulls of any kind and for what is not finite."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def numbers(values: Iterable[object]) -> list[float | None]:
    """:func:`finite` of each."""
    return [finite(value) for value in values]


def sizes_on_axis(sizes: Sequence[int]) -> dict[int, float]:
    """Place of each size in bytes on a logarithmic axis: the size itself, and for 0 a place left of the smallest."""
    positive = [size for size in sizes if size > 0]
    gutter = min(positive) / 4 if positive else 1.0
    return {size: float(size) if size > 0 else gutter for size in sizes}


def ticks(values: Iterable[object], texts: Iterable[str]) -> Layout:
    """An axis with these ticks."""
    return {"tickmode": "array", "tickvals": list(values), "ticktext": list(texts)}


def thinned(axis: Facts, most: int) -> Layout:
    """The ticks of an axis, at most so many of them; of an axis without ticks nothing."""
    names = [name for name in ("tickvals", "ticktext") if name in axis]
    return {name: axis[name][:: -(-len(axis[name]) // most) or 1] for name in names}


def category_axis(title: str = "", **more: object) -> Layout:
    """An axis of names, without a grid; `more` are further properties of it."""
    return {"type": "category", **({"title": {"text": title}} if title else {}), "showgrid": False, **more}


def size_axis(sizes: Iterable[int]) -> Layout:
    """A logarithmic axis with IEC ticks at most six of them; 0 B has a gutter of its own."""
    places = sizes_on_axis(sorted(set(sizes)))
    positive = [size for size in places if size > 0]
    known: list[tuple[float, str]] = [(places[0], "0 B")] if 0 in places else []
    if positive:
        low, high = math.floor(math.log2(min(positive))), math.ceil(math.log2(max(positive)))
        step = next(s for s in (1, 2, 4, 6, 10, 20, 60) if (high - low) / s <= 4.5)
        powers = [power for power in range(low - low % step, high + 1, step) if power >= low]
        known += [(2.0**power, size_text(2**power)) for power in powers]
    span = [math.log10(v) for v in (min(places.values()), max(places.values()))] if places else [0.0, 1.0]
    pad = max(0.04 * (span[1] - span[0]), 0.08)
    ends = [span[0] - pad, span[1] + pad]
    return {
        "type": "log",
        "title": {"text": "message size"},
        "range": ends,
        **ticks([t for t, _ in known], [t for _, t in known]),
    }


def value_axis(title: str, log: bool = True, values: Iterable[object] = ()) -> Layout:
    """The axis of what was measured; the unit belongs into the title.

    With `values` a logarithmic axis gets ticks that are written out, at 1, 2, 5 or at powers of ten.
    """
    axis: Layout = {"title": {"text": title}, "exponentformat": "none", "separatethousands": True}
    positive = [v for v in numbers(values) if v is not None and v > 0]
    if not log:
        return {**axis, "rangemode": "tozero", **({"range": [0, 1.06 * max(positive)]} if positive else {})}
    if not positive:
        return {**axis, "type": "log", "dtick": 1}
    low, high = math.log10(min(positive)), math.log10(max(positive))
    pad = max(0.05 * (high - low), 0.04)
    digits = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if high - low < 0.5 else (1, 2, 5) if high - low < 2.2 else (1,)
    every = max(1, math.ceil((high - low) / 7))
    powers = [p for p in range(math.floor(low) - 1, math.ceil(high) + 1) if p % every == 0]
    places = [d * 10.0**p for p in powers for d in digits if low - pad <= math.log10(d * 10.0**p) <= high + pad]
    if len(places) < 3 or high - low + 2 * pad < math.log10(NARROW):
        places = _choose_even(10 ** (low - pad), 10 ** (high + pad))
    texts = [amount(place) for place in places]
    texts = texts if len({*texts}) == len(texts) else [f"{place:.6g}" for place in places]
    return {**axis, "type": "log", "range": [low - pad, high + pad], **ticks(places, texts)}


LONG_US = 1e4
"""From here on a time is said in ms."""
NARROW = 2.0
"""Highest over lowest place of an axis up to which its ticks stand at even distances."""
MOST_EVEN = 6


def _choose_even(low: float, high: float) -> list[float]:
    """Three to six round numbers at even distances between two positive ends."""
    for share in (2, 1, 0.5, 0.25, 0.2, 0.1, 0.05):
        step = 10.0 ** math.floor(math.log10(high - low)) * share
        places = [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        if 3 <= len(places) <= MOST_EVEN:
            return places
    return [low, high]


def duration(us: float) -> str:
    """A time in the unit that a reader would say: three digits.

    >>> duration(12.34), duration(20971.5), duration(3.2e6)
    ('12.3 µs', '21 ms', '3.2 s')
    """
    if abs(us) < LONG_US:
        return f"{amount(us)} µs"
    return f"{us / 1e3:.3g} ms" if abs(us) < 1e6 else f"{amount(us / 1e6)} s"


def list_values(data: Iterable[Facts], axis: str = "y") -> list[float]:
    """All values of the traces along `axis`, for :func:`value_axis`."""
    names = ("y", "q1", "q3", "lowerfence", "upperfence") if axis == "y" else (axis,)
    return [v for trace in data for name in names for v in trace.get(name) or () if not isinstance(v, str)]


def layout(**more: object) -> Layout:
    """A layout with the settings of all figures: the legend is below; a click on an entry isolates it, a double click
    toggles it."""
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top", "groupclick": "togglegroup"}
    legend |= {"itemclick": "toggleothers", "itemdoubleclick": "toggle"}
    margin = {"l": 64, "r": 16, "t": 36, "b": 52}  # the bar of buttons lies above the figure
    base = {"margin": margin, "height": 380, "hovermode": "closest", "separators": ". ", "legend": legend}
    return {**base, **more}


def template(theme: str) -> Layout:
    """Plotly template ``light`` or ``dark``. Raises KeyError on another name."""
    ink = _INK[theme]
    lines = {"gridcolor": ink["grid"], "linecolor": ink["line"], "zerolinecolor": ink["grid"], "tickcolor": ink["line"]}
    axis = {**lines, "automargin": True, "ticks": "outside", "showline": True, "title": {"standoff": 8}}
    return {
        "layout": {
            "paper_bgcolor": ink["paper"],
            "plot_bgcolor": ink["paper"],
            "colorway": list(COLOURS),
            "font": {"family": FONT, "size": 13, "color": ink["text"]},
            "xaxis": axis,
            "yaxis": axis,
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": ink["line"], "activecolor": ink["text"]},
            "hoverlabel": {"font": {"family": FONT}, "align": "left", "namelength": -1},
        }
    }
