"""Stored rows of ``omb-py guidelines``: apart from the curves, a view for each library and number of ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import Shown, records
from omb_py.dashboards.figures import stored_fits
from omb_py.dashboards.figures.guidelines import guidelines
from omb_py.results.checks.guidelines import FAMILY, Rules
from omb_py.results.formats.guideline_forms import headline, preamble, report_of
from omb_py.results.formats.guideline_forms import records as cells_of
from omb_py.results.store.read import load

if TYPE_CHECKING:
    import pandas as pd

_BY = ["backend", "library", "library_version", "binding", "device", "ranks", "nodes"]


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of guidelines, and the others."""
    chosen = frame["family"].eq(FAMILY).fillna(False).astype(bool)
    return frame[chosen], frame[~chosen]


def views(rows: pd.DataFrame) -> list[Shown]:
    """Verdicts on the rows of guidelines, made again by the usual rules."""
    import pandas as pd

    made = []
    for _, part in rows.groupby(_BY, dropna=False, sort=True, observed=True):
        told = [{str(k): v for k, v in row._asdict().items()} for row in records(part)]
        report = report_of(told, Rules())
        if report.judged:
            drawn = guidelines(pd.DataFrame(cells_of(report)), report.rules.delta)
            what = ", ".join(preamble(report))
            view = replace(drawn, notes=(f"{what}: {headline(report)}", *drawn.notes))
            violated = report.words["VIOLATED"]
            made.append(Shown(view, part, f"Guidelines: {view.title} ({what})." if violated else ""))
    return made


def stored(store: Path, chosen: pd.DataFrame) -> list[Shown]:
    """As :func:`views`, of the launches of some prepared rows of guidelines, read from the store."""
    if not len(chosen):
        return []
    launches = list(dict.fromkeys(chosen["launch_id"]))
    columns = [*series.NEEDED, *stored_fits.ALSO]
    return views(load(store, columns=columns, on_skip=lambda path, why: None, family=FAMILY, launch_id=launches))
