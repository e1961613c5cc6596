"""The false-alarm rate of a site, counted from A/A reports: comparisons of a library with itself in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.errors import EnvironmentProblem
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import AA, COMPARE, CompareReport, as_dict
from omb_py.results.json_values import json_text
from omb_py.results.statistics.order_statistics import share_bound
from omb_py.results.store.paths import OnSkip, report_files, report_path
from omb_py.results.store.write import first_line, write_atomically


@dataclass(frozen=True, slots=True)
class SiteRate:
    """Counts over all A/A reports of a store."""

    reports: int = 0
    alarmed: int = 0
    cells: int = 0
    alarms: int = 0

    def sentence(self) -> str:
        """Write the rate as one line for the end of a report."""
        if not self.reports:
            return "false alarms on this machine: not counted yet; omb-py aa BENCHMARK counts them"
        most = share_bound(self.alarmed, self.reports, 0.95)
        return (
            f"false alarms on this machine: {self.alarms} of {self.cells} cells, in {self.alarmed} of {self.reports} "
            f"reports of a library against itself (95 % sure: in at most {most:.0%})"
        )


def keep(report: CompareReport, store: Path) -> Path:
    """Write a report to ``STORE/.reports/RUN.report`` as JSON, whole or not at all.

    Raises:
        EnvironmentProblem: the file cannot be written.
    """
    path = report_path(store, str(report.run_id))
    try:
        write_atomically(path, json_text(as_dict(report)).encode())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from error
    return path


def read_kept(store: Path, on_skip: OnSkip | None = None) -> Iterator[Mapping[str, Any]]:
    """Read the reports of a store as :func:`omb_py.results.compare.report.as_dict` wrote them, oldest first.

    Args:
        on_skip: called with the path and the reason for each file that holds no report. None: such files are skipped
            silently.
    """
    for path in report_files(store):
        try:
            report = _check(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if on_skip is not None:
                on_skip(path, f"not a report of omb-py compare ({first_line(error)})")
            continue
        yield report


def _check(report: Any) -> Mapping[str, Any]:
    """Check and copy the parts of a report that every reader needs; any error means that it is no report."""
    if report["kind"] not in (COMPARE, AA):
        raise ValueError(f"a report of kind {report['kind']!r}")
    counts = {word: int(count) for word, count in report["verdicts"].items()}
    sides = {side: dict(report["sides"][side]) for side in SIDES}
    return {
        **report,
        "verdicts": counts,
        "sides": sides,
        "cells": [{**cell, "verdict": cell["verdict"]} for cell in report["cells"]],
    }


def site_rate(store: Path) -> SiteRate:
    """Count the A/A reports of a store; other files are skipped."""
    reports = alarmed = cells = alarms = 0
    for report in read_kept(store):
        if report["kind"] != AA:
            continue
        counts = report["verdicts"]
        changed = counts.get("SLOWER", 0) + counts.get("FASTER", 0)
        reports, alarmed = reports + 1, alarmed + bool(changed)
        cells, alarms = cells + sum(counts.values()), alarms + changed
    return SiteRate(reports, alarmed, cells, alarms)
