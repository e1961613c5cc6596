"""Stored rows of ``omb-py links``: apart from the curves, a pair matrix for each sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import Shown, View, plural
from omb_py.dashboards.figures.pair_matrix import pairs
from omb_py.results.checks.pair_sweeps import COLUMNS, MARKS, Found, found_of
from omb_py.results.formats import links_forms
from omb_py.results.store.read import load

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 60_000
"""Rows of a sweep that are judged again; of a larger one the file says what was found that ``--output`` wrote."""
_MARKED = [re.compile(rf"(?:^|, ){mark}=") for mark in MARKS]


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of sweeps, and the others.

    Args:
        frame: prepared cells.
    """
    known = [text for text in frame["parameters"].unique() if all(mark.search(str(text)) for mark in _MARKED)]
    if not known:
        return frame[:0], frame
    chosen = frame["parameters"].isin(known)
    return frame[chosen], frame[~chosen]


def view(found: Found) -> View:
    """The matrix of a sweep, with what was found as its title."""
    said = links_forms.sentences(found)
    states = {subject["name"]: subject["state"] for subject in links_forms.subjects(found)}
    drawn = pairs(links_forms.matrix(found), states)
    notes = (*said[1:], *drawn.notes)
    return replace(drawn, title=said[0], caption=f"{drawn.title}; {drawn.caption} · run {found.run_id}", notes=notes)


def stored(store: Path, chosen: pd.DataFrame) -> Iterator[Shown]:
    """A view for each sweep of which some prepared row is chosen, the newest first; read whole from the store."""
    newest = chosen.sort_values("started_at", ascending=False, kind="stable")
    for run, part in newest.groupby("run_id", sort=False, observed=True):
        if len(part) > MOST_ROWS:
            yield Shown(_too_many(str(run), len(part)), part)
            continue
        columns = list(dict.fromkeys((*COLUMNS, *series.NEEDED)))
        whole = load(store, columns=columns, on_skip=lambda path, why: None, run_id=str(run))
        rows, _ = split(series.prepared(whole))
        # mappings, which a prepared frame has as text
        told = whole.loc[rows.index, list(COLUMNS)].to_dict("records")
        try:
            found = found_of([{str(k): v for k, v in row.items()} for row in told])
        except ValueError:
            continue
        made = view(found)
        if found.confirmed:
            yield Shown(made, part, f"Slow nodes or links: {made.title}.")
        else:
            yield Shown(made, part)


def _too_many(run: str, count: int) -> View:
    title = f"run {run}: {plural(count, 'row')} of a sweep are too many to be judged again"
    return View("pairs", title, "omb-py links --output FILE.html writes the matrix of a large sweep", None, (), ())
