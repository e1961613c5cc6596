"""Performance guidelines by message size: which are violated, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, plural, records, table
from omb_py.results.units import size_text

if TYPE_CHECKING:
    import pandas as pd


def guidelines(ratios: pd.DataFrame, delta: float = 0.1) -> View:
    """Guidelines by message size: the cell is how many times longer the left side took; blank where it is no longer.

    Args:
        ratios: ``guideline``, ``size_bytes``, ``ratio``, ``violated`` (decided), and where known ``advice``.
        delta: ratios up to 1 + delta are no violation.

    Guidelines whose left side is nowhere longer are only in the table; where there is no other, that is all.
    """
    names = list(dict.fromkeys(ratios["guideline"]))
    broken = ratios[ratios["violated"].astype(bool)]
    title = f"{plural(len(broken), 'violation')} of {plural(len(names), 'guideline')}"
    if len(broken):
        worst = broken.iloc[int(broken["ratio"].to_numpy().argmax())]
        title += f"; the worst: {worst['guideline']}, {worst['ratio']:.2f}× at {size_text(worst['size_bytes'])}"
    longer = ratios[ratios["ratio"] > 1 + delta]
    drawn = [name for name in names if name in set(longer["guideline"])]
    notes = ["A question mark: longer, but not decided."] if len(longer) > len(broken) else []
    if len(names) > len(drawn):
        held = plural(len(names) - len(drawn), "guideline")
        notes.append(f"{'Not drawn: ' if drawn else ''}{held} with no longer left side at any size; the table has all.")
    if "advice" in ratios:
        notes += [f"{r.guideline}: {r.advice}" for r in records(broken) if isinstance(r.advice, str)][:8]
    return View(
        "guidelines",
        title,
        f"{plural(len(ratios), 'cell')}: how many times longer the left side took; over {1 + delta:g}× counts",
        _matrix(ratios, drawn, delta) if drawn else None,
        notes=tuple(dict.fromkeys(notes)),
        **table(
            ("guideline", "size", "ratio", "violated"),
            [
                (str(r.guideline), size_text(r.size_bytes), float(r.ratio), "yes" if r.violated else "no")
                for r in records(ratios)
            ],
        ),
    )


def _matrix(ratios: pd.DataFrame, names: Sequence[str], delta: float) -> dict[str, Any]:
    """The figure of some guidelines, each at every size."""
    sizes = sorted({int(s) for s in ratios["size_bytes"]})
    cell = {(r.guideline, int(r.size_bytes)): r for r in records(ratios)}
    z, text = [], []
    for name in names:
        row = [cell.get((name, size)) for size in sizes]
        z.append([float(r.ratio) if r is not None and r.ratio > 1 + delta else None for r in row])
        text.append(
            ["" if r is None or r.ratio <= 1 + delta else f"{r.ratio:.2f}" + ("" if r.violated else "?") for r in row]
        )
    data = [
        {
            "type": "heatmap",
            "x": [size_text(s) for s in sizes],
            # both sides under each other: a name takes half of a phone
            "y": [theme.escape(n).replace(" ≤ ", "<br>≤ ") for n in names],
            "z": z,
            "text": text,
            "texttemplate": "%{text}",
            "colorscale": [[0, "#FEE6CE"], [1, "#D55E00"]],
            "zmin": 1,
            "zmax": max([2.0, *(v for row in z for v in row if v is not None)]),
            "xgap": 2,
            "ygap": 2,
            "showscale": False,
            "hovertemplate": "%{y}, %{x}: %{z:.2f}×<extra></extra>",
        }
    ]
    layout = theme.layout(
        height=90 + 44 * len(names),
        xaxis={"type": "category", "title": {"text": "message size"}, "showgrid": False},
        yaxis={"type": "category", "autorange": "reversed", "showgrid": False},
    )
    return {"data": data, "layout": layout}
