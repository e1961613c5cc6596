"""Steps of workloads: what each layout takes, its computing, and how much of its communication shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.view import View, plural, records, table

if TYPE_CHECKING:
    import pandas as pd

FAMILY = "workload"
"""The ``family`` of their rows."""
COLUMNS = ("family", "launch_id", "parameters", "metrics", "ranks", "nodes", "backend", "library", "binding", "device")
"""Columns of the store that :func:`layouts` needs."""
_SIDE = ("ranks", "nodes", "backend", "library", "binding", "device")
_TIMES = ("compute_us", "exposed_us", "serial_us", "flight_us")
MOST = 24
"""Steps drawn in a figure; the table has all."""


def layouts(rows: pd.DataFrame) -> Iterator[tuple[View, pd.DataFrame]]:
    """A figure for each number of ranks and library: step time by layout, with the rows that it shows.

    Args:
        rows: cells of steps, :data:`COLUMNS`; maps as dicts.
    """
    for values, part in tidy(rows).groupby(list(_SIDE), dropna=False, sort=True, observed=True):
        side: dict[str, Any] = dict(zip(_SIDE, values, strict=True))
        known = {name: value for name, value in side.items() if not theme.absent(value)}
        who = ", ".join(str(known[name]) for name in ("backend", "library", "binding") if name in known)
        yield by_layout(part, f"{plural(int(known['ranks']), 'rank')}, {who}"), rows.loc[part["at"]]


def rows_of(cells: pd.DataFrame) -> dict[str, Any]:
    """Filters for :func:`omb_py.results.load` that read these cells again, with :data:`COLUMNS`."""
    names = ("launch_id", "comparability_key")
    return {"family": FAMILY, **{name: list(dict.fromkeys(map(str, cells[name]))) for name in names}}


def tidy(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a cell that has its times: ``workload``, ``compute_us`` and so on as columns; ``at``: its index."""
    import pandas as pd

    cells = []
    for at, row in zip(rows.index, records(rows), strict=True):
        metrics, parameters = dict(row.metrics or {}), dict(row.parameters or {})
        if row.family == FAMILY and "workload" in parameters and all(name in metrics for name in _TIMES):
            side = {name: getattr(row, name) for name in (*_SIDE, "launch_id")}
            times = {name: metrics[name] for name in _TIMES}
            cells.append({"at": at, "workload": parameters["workload"], **side, **times})
    return pd.DataFrame(cells, columns=["at", "workload", *_SIDE, "launch_id", *_TIMES])


def by_layout(steps: pd.DataFrame, name: str) -> View:
    """The step time of each workload: computing, then exposed communication; and the time of its calls alone.

    Args:
        steps: as :func:`tidy` makes them, of one side; medians over launches are drawn.
        name: of the side.
    """
    middle = steps.groupby("workload", sort=True)[list(_TIMES)].median()
    middle["step_us"] = middle["compute_us"] + middle["exposed_us"]
    middle["launches"] = steps.groupby("workload")["launch_id"].nunique()
    middle = middle.reset_index()
    drawn = middle.head(MOST)
    names = _names(drawn["workload"])
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "exposed communication",
            "hoverinfo": "skip",
            "x": [v for r in records(drawn) for v in (theme.finite(r.compute_us), theme.finite(r.step_us), None)],
            "y": [v for text in names for v in (text, text, None)],
            "line": {"color": theme.GREY, "width": 6},
        }
    ]
    for index, (column, text) in enumerate(_DRAWN.items()):
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": text,
                "x": theme.numbers(drawn[column]),
                "y": names,
                "marker": {**theme.marker(index), "size": 9},
                "hovertemplate": f"%{{y}}: {text} %{{x:.4g}} µs<extra></extra>",
            }
        )
    height = 150 + 26 * len(drawn)
    layout = theme.layout(
        height=height,
        xaxis=theme.value_axis("time (µs)", values=[v for c in _DRAWN for v in drawn[c]]),
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
        # above the bars: below, its second line on a phone would lie on the axis' title
        legend={**theme.layout()["legend"], "y": 1.02, "yanchor": "bottom"},
    )
    share = middle["exposed_us"] / middle["step_us"]
    worst = str(middle["workload"].iloc[int(share.to_numpy().argmax())])
    title = (
        f"{name}: steps of {plural(len(middle), 'workload')}; communication shows most in "
        f"{theme.shortened(worst, 60)}, "
        f"{100 * share.max():.0f} % of the step"
    )
    notes = ["In flight: all calls at once, whatever depends on what; one by one: each until it is done."]
    if len(middle) > len(drawn):
        notes.append(f"Drawn: the first {len(drawn)} of {len(middle)}; the table has all.")
    heads = (
        "workload",
        "step µs",
        "computing µs",
        "exposed µs",
        "exposed, %",
        "one by one µs",
        "in flight µs",
        "launches",
    )
    lines = [
        (
            r.workload,
            float(r.step_us),
            float(r.compute_us),
            float(r.exposed_us),
            100 * float(r.exposed_us / r.step_us),
            float(r.serial_us),
            float(r.flight_us),
            int(r.launches),
        )
        for r in records(middle)
    ]
    caption = f"{plural(int(steps['launch_id'].nunique()), 'launch')}; medians over launches of means over ranks"
    return View("steps", title, caption, {"data": data, "layout": layout}, notes=tuple(notes), **table(heads, lines))


_DRAWN = {"step_us": "step", "compute_us": "computing", "serial_us": "calls one by one", "flight_us": "calls in flight"}


def _names(texts: Iterable[str]) -> list[str]:
    """Texts for the axis, each of its own also where the middles of long ones made the difference."""
    names: list[str] = []
    for text in texts:
        name = theme.label(text, 60)
        names.append(f"{name} ({len(names) + 1})" if name in names else name)
    return names
