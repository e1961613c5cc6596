"""An overview of all cells, and the differences between their environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import Shown, View, listed, plural, records, table
from omb_py.dashboards.figures.environment import environment
from omb_py.dashboards.views.cells import Cells
from omb_py.results.formats.units import size_text
from omb_py.results.store.keys import environment_facts
from omb_py.results.store.redact import published

if TYPE_CHECKING:
    import pandas as pd

MOST_ENVIRONMENTS = 4
"""Side by side in a table."""
_SUMMARISED = ["benchmark", "library", "library_version", "launch_id", "date"]
_HEADS = (
    "benchmark",
    "backend",
    "library",
    "version",
    "binding",
    "ranks",
    "sizes",
    "launches",
    "cells",
    "failed",
    "last day",
)


def summary(frames: Sequence[pd.DataFrame]) -> str:
    """Cells, launches, benchmarks, libraries and days of some frames, in one line."""
    import pandas as pd

    parts = [frame[_SUMMARISED].astype(object) for frame in frames if len(frame)]
    if not parts:
        return "nothing"
    rows = pd.concat(parts)
    names = zip(rows["library"], rows["library_version"], strict=True)
    libraries = sorted({" ".join(word for word in name if isinstance(word, str)) for name in names})
    counts = f"{plural(len(rows), 'cell')} from {plural(rows['launch_id'].nunique(), 'launch')}"
    return f"{counts}: {listed(sorted(rows['benchmark'].unique()))} over {listed(libraries)}, {series.days(rows)}"


def overview(cells: Cells) -> Iterator[Shown]:
    """A table with a line for each benchmark, library and number of ranks."""
    keys = ["benchmark", "backend", "library", "library_version", "binding", "ranks"]
    lines = []
    for values, part in cells.rows.groupby(keys, dropna=False, sort=True, observed=True):
        sizes = part["size_bytes"].dropna()
        span = f"{size_text(sizes.min())} to {size_text(sizes.max())}" if len(sizes) and sizes.max() > 0 else "-"
        failed = int(part["validated"].eq(False).fillna(False).sum())
        names = ["" if theme.absent(value) else value for value in values]
        last = max(map(str, part["date"].unique()))
        lines.append((*names, span, int(part["launch_id"].nunique()), len(part), failed or "", last))
    yield Shown(View("overview", summary([cells.rows]), "", None, **table(_HEADS, lines)))


def environments(cells: Cells) -> Iterator[Shown]:
    """Differences between the newest launches of the newest environments; nothing where all are alike."""
    newest = cells.rows.sort_values("started_at").drop_duplicates("environment_key", keep="last")
    sides = {}
    for row in records(newest.tail(MOST_ENVIRONMENTS)):
        facts = published(environment_facts(cells.provenance(row.launch_id)))
        if facts:
            words = (row.backend if theme.absent(row.library) else row.library, row.library_version)
            sides[f"{' '.join(str(w) for w in words if not theme.absent(w))}, {row.launch_id}"] = facts
    if len(sides) > 1:
        yield Shown(environment(sides), cells.rows)
