"""The timeline of a step: computing, communication, and what of it is exposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, table

Span = tuple[float, float, str]


def step_timeline(lanes: Mapping[str, Sequence[Span]], busy: Mapping[str, float], end: float) -> View:
    """A bar a span, a line for each kind: `lanes` has for each (begin and end in µs, what it was), `busy` its time with
    what overlaps counted once; `end` is the time of the step. All in µs."""
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": lane,
            "y": [lane] * len(spans),
            "base": [begin / 1000 for begin, _, _ in spans],
            "x": [(last - begin) / 1000 for begin, last, _ in spans],
            "text": [name for *_, name in spans],
            "textposition": "none",
            "marker": {"color": theme.COLOURS[number]},
            "hovertemplate": "%{text}: %{x:.4g} ms from %{base:.4g} ms<extra></extra>",
        }
        for number, (lane, spans) in enumerate(lanes.items())
    ]
    layout = theme.layout(
        height=300,
        barmode="overlay",
        xaxis={"title": {"text": "time of the step (ms)"}, "range": [0, end / 1000]},
        yaxis={"autorange": "reversed", "automargin": True},
        showlegend=False,
    )
    title = f"a step of {end / 1000:.4g} ms: {busy['exposed'] / end:.0%} of it is exposed communication"
    rows = [(lane, len(spans), busy[lane] / 1000) for lane, spans in lanes.items()]
    return View("timeline", title, "", {"data": data, "layout": layout}, **table(("", "spans", "ms"), rows))
