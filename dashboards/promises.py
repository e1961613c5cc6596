"""Stored rows of ``omb-py guidelines``: apart from the curves, a view for each library and number of ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omb_py.dashboards import others
from omb_py.dashboards.view import View, records
from omb_py.results.guideline_forms import headline, preamble, report_of
from omb_py.results.guideline_forms import records as cells_of
from omb_py.results.guidelines import FAMILY, Rules

if TYPE_CHECKING:
    import pandas as pd

_BY = ["backend", "library", "library_version", "binding", "device", "ranks", "nodes"]


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of guidelines, and the others."""
    chosen = frame["family"].eq(FAMILY).fillna(False).astype(bool)
    return frame[chosen], frame[~chosen]


def views(rows: pd.DataFrame) -> list[View]:
    """Verdicts on the rows of guidelines, made again by the usual rules."""
    import pandas as pd

    made = []
    for _, part in rows.groupby(_BY, dropna=False, sort=True):
        told = [{str(k): v for k, v in row._asdict().items()} for row in records(part)]
        report = report_of(told, Rules())
        if report.judged:
            view = others.guidelines(pd.DataFrame(cells_of(report)), report.rules.delta)
            what = f"{', '.join(preamble(report))}: {headline(report)}"
            made.append(replace(view, notes=(what, *view.notes)))
    return made
