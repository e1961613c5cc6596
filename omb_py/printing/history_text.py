"""The history of a series as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from omb_py.printing.writers.terminal import rich_table
from omb_py.results.analysis.history import History, Level, LevelStep
from omb_py.results.analysis.series import PLURALS, SIDE, Series
from omb_py.results.document import TextTable
from omb_py.results.units import size_text

_SHOWN = 6
"""Most differences of an environment that are listed."""


def title(series: Series) -> str:
    """Name a series: ``allreduce · 8 B · 4 ranks · mpi · Open MPI · native``."""
    return heading(series.facts, series.sizes)


def heading(facts: Mapping[str, Any], measured: Sequence[int | None]) -> str:
    """Say what was measured: benchmark, sizes, ranks, backend, library; for imported rows also whose means they are."""
    sizes = [size_text(size) for size in measured if size is not None]
    shown = "" if not sizes else sizes[0] if len(sizes) == 1 else f"{len(sizes)} sizes, {sizes[0]} to {sizes[-1]}"
    ranks = f"{facts['ranks']} ranks" if facts.get("ranks") else ""
    parts = [facts["benchmark"], shown, ranks, *(facts.get(n) for n in ("backend", "library", "binding", "dtype"))]
    if facts.get("statistic") == "mean":
        parts.append(f"means of {facts['source']}")
    if facts.get(SIDE):
        parts.append(f"side {facts[SIDE]} of comparisons")
    return " · ".join(str(word) for word in parts if word)


def history_table(history: History) -> Group:
    """Make a table of the levels, one line each, with the change that began it."""
    labels = ("from (UTC)", "first launch", "version")
    units = () if history.unit == "launch" else (PLURALS[history.unit],)
    numbers = (*units, "launches", f"{history.series.facts['statistic']} µs", "spread", "change", "p")
    steps = [None, *history.steps]
    rows = [_cells(level, step, bool(units)) for level, step in zip(history.levels, steps, strict=False)]
    return Group(Text(title(history.series)), rich_table(TextTable((*labels, *numbers), rows, labels)))


def environment_lines(history: History) -> list[str]:
    """Write a line for each change with the differences between the launches around it."""
    lines = []
    for step in history.steps:
        head = f"{step.before.launch_id} → {step.after.launch_id} ({_percent(step.ratio)})"
        shown = "; ".join(map(str, step.what_changed[:_SHOWN])) or "nothing that is recorded changed"
        more = f"; and {len(step.what_changed) - _SHOWN} more" if len(step.what_changed) > _SHOWN else ""
        lines.append(f"{head}: {shown}{more}")
    return lines


def _cells(level: Level, step: LevelStep | None, units: bool) -> list[str]:
    versions = level.versions[0] if len(level.versions) == 1 else f"{level.versions[0]} … {level.versions[-1]}"
    change = ["", ""] if step is None else [_percent(step.ratio), f"{step.p:.3f}"]
    return [
        level.first.started_at[:16].replace("T", " "),
        level.first.launch_id,
        versions,
        *([str(level.units)] if units else []),
        str(level.launches),
        f"{level.time_us:.3f}",
        f"{100 * level.spread:.1f} %",
        *change,
    ]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
