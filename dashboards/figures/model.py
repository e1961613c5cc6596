"""The fitted curve alpha + beta · size beside the measured times, and its residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, listed, plural, records, table
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd


def model(measured: pd.DataFrame, segments: pd.DataFrame, name: str) -> View:
    """Measured times and the fit alpha + beta·size of each segment, and below how far they lie apart.

    Args:
        measured: ``size_bytes``, ``median_us``, and where known ``lower_us``, the lower bound.
        segments: ``low_bytes``, ``high_bytes``, ``alpha_us``, ``beta_us_per_byte``; both ends belong to a segment.
        name: what was fitted.
    """
    measured = measured[measured["size_bytes"] > 0].sort_values("size_bytes")
    sizes = [int(s) for s in measured["size_bytes"]]
    values = theme.numbers(measured["median_us"])
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": sizes,
            "y": values,
            "marker": theme.marker(0),
            "name": "measured",
            "text": [size_text(s) for s in sizes],
            "hovertemplate": "%{text}: %{y:.4g} µs<extra></extra>",
        }
    ]
    residual: list[float | None] = [None] * len(sizes)
    for index, part in enumerate(records(segments), start=1):
        inside = [i for i, s in enumerate(sizes) if part.low_bytes <= s <= part.high_bytes]
        fit = [float(part.alpha_us + part.beta_us_per_byte * sizes[i]) for i in inside]
        for i, expected in zip(inside, fit, strict=True):
            value = values[i]
            residual[i] = None if value is None or expected <= 0 else 100 * (value / expected - 1)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [sizes[i] for i in inside],
                "y": fit,
                "line": theme.line(index),
                "name": _segment(part),
            }
        )
    lower = theme.numbers(measured["lower_us"]) if "lower_us" in measured else [None] * len(sizes)
    if any(v is not None for v in lower):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": sizes,
                "y": lower,
                "line": {"color": theme.GREY, "dash": theme.BOUND, "width": 1.5},
                "name": "lower bound",
                "hovertemplate": "at least %{y:.4g} µs<extra>lower bound</extra>",
            }
        )
    efficiency = [None if v is None or not m else 100 * v / m for v, m in zip(lower, values, strict=True)]
    data.append(
        {
            # stems: a bar on a logarithmic axis has another width at each size
            "type": "scatter",
            "mode": "lines+markers",
            "x": [place for size in sizes for place in (size, size, None)],
            "y": [value for off in residual for value in (None if off is None else 0, off, None)],
            "line": {"color": theme.GREY, "width": 3},
            "marker": {"color": theme.GREY, "size": [0, 7, 0] * len(sizes), "opacity": 1},  # of sizes in a list: 0.7
            "xaxis": "x2",
            "yaxis": "y2",
            "showlegend": False,
            "name": "residual",
            "hovertemplate": "%{y:.1f} %<extra></extra>",
        }
    )
    axis = theme.size_axis(sizes or [1])
    layout = theme.layout(
        height=480,
        xaxis={**axis, "anchor": "y", "showticklabels": False, "title": {"text": ""}},
        yaxis={**theme.value_axis("time (µs)", values=theme.drawn(data[:-1])), "domain": [0.4, 1]},
        xaxis2={**axis, "anchor": "y2"},
        yaxis2={"domain": [0, 0.28], "title": {"text": "off the fit (%)"}},
    )
    off = [abs(r) for r in residual if r is not None]
    title = f"{name}: {plural(len(segments), 'segment')}" + (f", at most {max(off):.1f} % off the fit" if off else "")
    known = [e for e in efficiency if e is not None]
    title += f"; {min(known):.0f} to {max(known):.0f} % of what the lower bound allows" if known else ""
    return View(
        "model",
        title,
        f"{plural(len(sizes), 'size')}; {listed(_segment(p) for p in records(segments))}",
        {"data": data, "layout": layout},
        **table(
            ("size", "measured µs", "off the fit, %", *(("lower bound µs", "efficiency, %") if known else ())),
            [
                (size_text(s), v, r, *((b, e) if known else ()))
                for s, v, r, b, e in zip(sizes, values, residual, lower, efficiency, strict=True)
            ],
        ),
    )


def _segment(part: Any) -> str:
    rate = f"{1e-3 / part.beta_us_per_byte:.3g} GB/s" if part.beta_us_per_byte > 0 else "no bandwidth term"
    return f"from {size_text(part.low_bytes)}: {part.alpha_us:.3g} µs, {rate}"
