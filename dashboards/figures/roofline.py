"""Times over their lower bound, which no algorithm of messages can beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import Line
from omb_py.dashboards.base.view import View, table
from omb_py.results.analysis.cost_model import OFFLOAD
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd


def roofline(rows: pd.DataFrame, bound: pd.DataFrame, name: str, lines: Sequence[Line]) -> View | None:
    """Measured time over its lower bound, a line a series; None where no size has a bound.

    Args:
        rows: cells of one panel with one number of ranks.
        bound: ``size_bytes``, ``lower_us``.
        name: what the panel is called.
        lines: its series.
    """
    lower = {int(size): float(us) for size, us in zip(bound["size_bytes"], bound["lower_us"], strict=True) if us > 0}
    drawn: list[tuple[str, list[tuple[int, float, float]]]] = []
    for line in lines:
        over = line.over[line.over["size_bytes"].fillna(0) > 0]
        pairs = [(int(s), float(t)) for s, t in zip(over["size_bytes"], over["median_us"], strict=True) if t and t > 0]
        points = [(size, time, time / lower[size]) for size, time in pairs if size in lower]
        if points:
            drawn.append((line.label or "measured", points))
    if not drawn:
        return None
    sizes = sorted({size for _, points in drawn for size, _, _ in points})
    places = theme.sizes_on_axis(sizes)
    data: list[dict[str, Any]] = [
        theme.series(
            i,
            theme.label(label),
            [places[size] for size, _, _ in points],
            [ratio for _, _, ratio in points],
            "%{text}: %{y:.3g}× the lower bound",
            text=[size_text(size) for size, _, _ in points],
        )
        for i, (label, points) in enumerate(drawn)
    ]
    every = [(ratio, size, label) for label, points in drawn for size, _, ratio in points]
    near, far = min(every), max(every)

    def who(label: str) -> str:
        return f" with {label}" if len(drawn) > 1 else ""

    title = f"{name}: nearest to its lower bound at {size_text(near[1])}{who(near[2])}, {_times(near[0])}×"
    title += f"; farthest at {size_text(far[1])}{who(far[2])}, {_times(far[0])}×" if far[1:] != near[1:] else ""
    beaten = any(ratio < 1 / OFFLOAD for ratio, _, _ in every)
    at_one = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "layer": "below"}
    axis = theme.value_axis("measured / lower bound (ratio)", values=[*theme.drawn(data), 1.0])
    return View(
        "roofline",
        title,
        series.caption(rows),
        {
            "data": data,
            "layout": theme.layout(
                xaxis=theme.size_axis(sizes),
                yaxis=axis,
                shapes=[{**at_one, "line": {"width": 1, "color": theme.GREY}}],
                showlegend=len(drawn) > 1,
            ),
        },
        notes=(
            "At 1 nothing could be faster that sends messages between ranks as fast as latency in this store does.",
            *(["Below 1: the network or shared memory did the work (offload)."] if beaten else []),
        ),
        **table(
            ("series", "size", "measured µs", "lower bound µs", "ratio"),
            [
                (label, size_text(size), time, lower[size], ratio)
                for label, points in drawn
                for size, time, ratio in points
            ],
        ),
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else theme.amount(ratio)
