"""The report of a sweep over all pairs: its data, its document, and a frame for the pair matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.engine.program.pair_schedule import DIRECTIONS
from omb_py.errors import NEGATIVE, OK
from omb_py.results.checks import links
from omb_py.results.checks.pair_sweeps import METRICS, Sweep
from omb_py.results.document import Document, TextTable

if TYPE_CHECKING:
    import pandas as pd

HEADS = ("what", "which", "metric", "state", "times as long", "expected by chance, at most")
UNITS = {"latency": "us", "tail": "us", "bandwidth": "MB/s"}


def subjects(sweep: Sweep) -> list[dict[str, Any]]:
    """Make a dict for each node or link that was suspect, confirmed ones first, then the slowest first.

    It has ``kind``, ``name``, ``ends``, ``state``, and ``metrics``: metric -> ``slower`` (times as long, in
    the repeat where there was one), ``limit``, ``state``.
    """
    by_subject: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
    for suspect in sweep.suspects:
        state = sweep.state(suspect)
        latest = sweep.outcomes.get(suspect) or suspect
        subject = by_subject.setdefault(
            (suspect.kind, suspect.ends),
            {
                "kind": suspect.kind,
                "name": sweep.name(suspect),
                "ends": [sweep.names[e] for e in suspect.ends],
                "state": state,
                "metrics": {},
            },
        )
        subject["metrics"][suspect.metric] = {"slower": latest.slower, "limit": latest.limit, "state": state}
        subject["state"] = min(subject["state"], state, key=_ORDER.index)
    return sorted(
        by_subject.values(),
        key=lambda s: (_ORDER.index(s["state"]), -max(m["slower"] for m in s["metrics"].values())),
    )


_ORDER = ("confirmed", "suspect", "cleared")


def as_dict(sweep: Sweep) -> dict[str, Any]:
    """The whole sweep as JSON can hold it: verdicts, and the values of each pair."""
    n = len(sweep.names)
    first, second = links.pair_ends(n)
    typical = {metric: sweep.first.typical(metric) for metric in METRICS}
    return {
        "run_id": sweep.run_id,
        "nodes": list(sweep.names),
        "units": UNITS,
        "median": {metric: float(np.median(values)) for metric, values in typical.items()},
        "found": subjects(sweep),
        "pairs": [
            {"ends": [sweep.names[a], sweep.names[b]], **{metric: float(typical[metric][k]) for metric in METRICS}}
            for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        ],
    }


def matrix(sweep: Sweep) -> pd.DataFrame:
    """Make the frame that :func:`omb_py.dashboards.figures.maps.pairs` draws.

    Returns:
        A row for each measured direction of a pair: ``source``, ``target``, ``value`` in MB/s, ``unit``.
    """
    import pandas as pd

    first, second = links.pair_ends(len(sweep.names))
    parts = []
    for direction in DIRECTIONS:
        source, target = (first, second) if direction == "forward" else (second, first)
        names = np.array(sweep.names, object)
        parts.append(
            pd.DataFrame(
                {"source": names[source], "target": names[target], "value": sweep.first.rate(direction), "unit": "MB/s"}
            )
        )
    every = pd.concat(parts)
    return every[every["value"].notna()].reset_index(drop=True)


def document_of(sweep: Sweep) -> Document:
    """Make the document of a sweep."""
    by_state: dict[str, list[dict[str, Any]]] = {state: [] for state in _ORDER}
    for subject in subjects(sweep):
        by_state[subject["state"]].append(subject)
    notes = []
    if by_state["cleared"]:
        notes.append(f"suspected, not confirmed: {_names(by_state['cleared'])}")
    if by_state["suspect"]:
        notes.append(f"suspect, not repeated since others were slower: {_names(by_state['suspect'])}")
    if sweep.judged and not sweep.first.fresh:
        notes.append(
            "one launch: what is slow in this launch only cannot be told from what is slow for good: --launches 5"
        )
    rows = [
        (subject["kind"], subject["name"], metric, values["state"], f"{values['slower']:.3f}", f"{values['limit']:.3f}")
        for subject in subjects(sweep)
        for metric, values in subject["metrics"].items()
    ]
    return Document(
        "omb-py links",
        _headline(sweep, by_state["confirmed"]),
        NEGATIVE if sweep.confirmed else OK,
        partial(as_dict, sweep),
        tables=(TextTable(HEADS, rows, HEADS[:4], spare=HEADS[-1:]),) if rows else (),
        notes=notes,
    )


def _headline(sweep: Sweep, confirmed: Sequence[dict[str, Any]]) -> str:
    pairs = len(sweep.names) * (len(sweep.names) - 1) // 2
    slow = ", ".join(map(_worded, confirmed)) or "nothing is slow"
    verdict = slow if sweep.judged else "nothing is judged, since not all were measured"
    return f"{len(sweep.names)} nodes, {pairs} links: {verdict}"


def _names(subjects: Sequence[dict[str, Any]]) -> str:
    return ", ".join(subject["name"] for subject in subjects)


def _worded(subject: dict[str, Any]) -> str:
    slow = {metric: m["slower"] for metric, m in subject["metrics"].items() if m["state"] == "confirmed"}
    times = ", ".join(f"{metric} {_times(metric, factor)}" for metric, factor in slow.items())
    name = subject["name"] if subject["kind"] == "node" else f"link {subject['name']}"
    return f"{name} is slow ({times})"


def _times(metric: str, slower: float) -> str:
    if metric == "bandwidth":
        return f"{100 / slower:.0f} %"
    return f"{slower:.3g} ×" if slower >= 2 else f"+{100 * (slower - 1):.0f} %"
