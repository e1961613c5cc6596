"""Cells of ``omb-py guidelines``: judged again, a view for each library and number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omb_py.dashboards.base.view import Shown, records
from omb_py.dashboards.figures.guidelines import guidelines as guideline_view
from omb_py.dashboards.views.cells import Cells
from omb_py.results.checks.guideline_report import headline, measured_text, report_of
from omb_py.results.checks.guideline_report import records as cells_of
from omb_py.results.checks.guidelines import Rules

_BY = ["backend", "library", "library_version", "binding", "device", "ranks", "nodes"]


def guidelines(cells: Cells) -> Iterator[Shown]:
    """Verdicts on the stored guidelines, by the default rules; odd where one is violated."""
    import pandas as pd

    for _, part in cells.guideline_rows().groupby(_BY, dropna=False, sort=True, observed=True):
        rows = [{str(name): value for name, value in row._asdict().items()} for row in records(part)]
        report = report_of(rows, Rules())
        if report.judged:
            matrix = guideline_view(pd.DataFrame(cells_of(report)), report.rules.delta)
            what = measured_text(report)
            view = replace(matrix, notes=(f"{what}: {headline(report)}", *matrix.notes))
            violated = report.words["VIOLATED"]
            yield Shown(view, part, f"Guidelines: {view.title} ({what})." if violated else "")
