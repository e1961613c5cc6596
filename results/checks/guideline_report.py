"""The report on guidelines: its data, and the document that every form of it is written from."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from omb_py.errors import NEGATIVE, OK
from omb_py.results.checks.guidelines import FAMILY, WORDS, Judged, Row, Rules, by_round, decide
from omb_py.results.checks.tuning_hints import advice
from omb_py.results.formats.document import CaseResult, Document, Outcome, TextTable
from omb_py.results.formats.units import counted, share_text, size_text

HEADS = ("guideline", "size", "left µs", "right µs", "ratio", "interval", "verdict", "costs µs", "launches")
_LIBRARY = ("library", "library_version")


@dataclass(slots=True)
class Report:
    """Everything that a report on guidelines shows."""

    judged: list[Judged]
    rules: Rules
    advice: Mapping[str, str] = field(default_factory=dict)
    """Name of a guideline -> what to try where it is violated (:func:`omb_py.results.checks.tuning_hints.advice`)."""
    skipped: Sequence[tuple[str, str]] = ()
    """Guidelines that could not be checked, and why."""
    run_id: str = ""
    seed: int | None = None
    launches: int = 0
    """All that were made."""

    @property
    def words(self) -> Counter[str]:
        """Verdict -> number of cells."""
        return Counter(one.verdict for one in self.judged)

    @property
    def violations(self) -> list[Judged]:
        """The most expensive first."""
        found = [one for one in self.judged if one.verdict == "VIOLATED"]
        return sorted(found, key=lambda one: -one.lost_us)


def report_of(rows: Iterable[Row], rules: Rules) -> Report:
    """Verdicts on stored rows, in the order of the catalogue, with what to try on the library of each."""
    mine = [row for row in rows if row.get("family") == FAMILY]
    judged = sorted(decide(by_round(mine), rules), key=lambda one: (_place(one.pair.name), one.pair.size_bytes))
    told = {one.pair.name: advice(str(one.pair.row.get("library")), one.pair.name) for one in judged}
    return Report(judged, rules, told, launches=len({row["launch_id"] for row in mine}))


def _place(name: str) -> tuple[int, str]:
    """Patterns by their number, then the others by name."""
    found = re.match(r"gl(\d+)", name)
    return (int(found[1]), name) if found else (1000, name)


def exit_code(report: Report) -> int:
    """1 where a guideline is violated or a side left wrong bytes."""
    return NEGATIVE if report.words["VIOLATED"] or report.words["WRONG"] else OK


def headline(report: Report) -> str:
    """``3 violated, 5 unclear, 112 hold``."""
    words = report.words
    parts = [f"{words['VIOLATED']} violated", f"{words['UNCLEAR']} unclear", f"{words['HOLDS']} hold"]
    return ", ".join(([f"{words['WRONG']} with wrong bytes"] if words["WRONG"] else []) + parts)


def measured_text(report: Report) -> str:
    """``Open MPI 5.0.11, 4 ranks on 1 node(s), 10 launches``; nothing where nothing was judged."""
    rows = [one.pair.row for one in report.judged]
    libraries = dict.fromkeys(" ".join(str(row[n]) for n in _LIBRARY if row.get(n)) for row in rows)
    places = dict.fromkeys(f"{row.get('ranks')} ranks on {row.get('nodes')} node(s)" for row in rows)
    return f"{', '.join(libraries)}, {', '.join(places)}, {counted(report.launches, 'launch')}" if rows else ""


def _notes(report: Report) -> list[str]:
    """What each violation costs and what to try; then how verdicts were made."""
    rules = report.rules
    lines = []
    for one in report.violations:
        told = f": {report.advice[one.pair.name]}" if report.advice.get(one.pair.name) else ""
        lines.append(f"{title(one)} is violated: {one.ratio:.2f} times, {one.lost_us:.2f} µs a call{told}")
    lines.append(
        f"ratio: left over right in the same launch, 90 % interval; violated: beyond {1 + rules.delta:g}, one-sided t "
        f"test on the launches' logs, Holm, at {share_text(rules.alpha)} for the whole report of "
        f"{len(report.judged)} cells"
    )
    again = sum(one.round > 1 for one in report.judged)
    if again:
        lines.append(f"{counted(again, 'cell')} measured again: fresh launches alone decide, not those that chose them")
    if any(one.pair.limited for one in report.judged):
        lines.append("* as short as the skew with which the ranks leave a barrier: the ratio is that of both with it")
    lines += [f"not checked: {what}: {why}" for what, why in report.skipped]
    return lines


def title(one: Judged) -> str:
    """``allreduce ≤ reduce + bcast, 1 KiB``."""
    return f"{one.pair.text}, {size_text(one.pair.size_bytes)}"


def document_of(report: Report) -> Document:
    """What is written of a report."""
    rules, fact = report.rules, measured_text(report)
    return Document(
        "omb-py guidelines",
        headline(report),
        exit_code(report),
        partial(_as_dict, report),
        [fact] if fact else [],
        (TextTable(HEADS, _rows(report), ("guideline", "verdict")),),
        notes=_notes(report),
        cases=_cases(report),
        properties={"delta": str(rules.delta), "alpha": str(rules.alpha), "run": report.run_id},
    )


def _rows(report: Report) -> list[tuple[str, ...]]:
    """A text for each of :data:`HEADS`; violations first, then by guideline as measured."""
    order = sorted(report.judged, key=lambda one: WORDS.index(one.verdict))
    return [
        (
            one.pair.text,
            size_text(one.pair.size_bytes) + ("*" if one.pair.limited else ""),
            f"{one.left_us:.2f}",
            f"{one.right_us:.2f}",
            f"{one.ratio:.3f}",
            _interval(one),
            one.verdict,
            f"{one.lost_us:.2f}" if one.verdict == "VIOLATED" else "",
            f"{one.launches} (round {one.round})" if one.round > 1 else str(one.launches),
        )
        for one in order
    ]


def _interval(one: Judged) -> str:
    return f"{one.low:.3f} … {one.high:.3f}" if math.isfinite(one.high) else "unknown"


def records(report: Report) -> list[dict[str, Any]]:
    """A row a cell, as :func:`omb_py.dashboards.figures.guidelines.guidelines` draws them."""
    return [
        {
            "guideline": one.pair.text,
            "name": one.pair.name,
            "size_bytes": one.pair.size_bytes,
            "ratio": one.ratio,
            "violated": one.verdict == "VIOLATED",
            "verdict": one.verdict,
            "left_us": one.left_us,
            "right_us": one.right_us,
            "lost_us": one.lost_us,
            "low": one.low,
            "high": one.high if math.isfinite(one.high) else None,
            "p": one.p,
            "adjusted": one.adjusted,
            "launches": one.launches,
            "look": one.round,
            "sync_limited": one.pair.limited,
            "advice": report.advice.get(one.pair.name) if one.verdict == "VIOLATED" else None,
        }
        for one in report.judged
    ]


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "run_id": report.run_id or None,
        "seed": report.seed,
        "rules": {"alpha": report.rules.alpha, "delta": report.rules.delta, "looks": report.rules.rounds},
        "launches": report.launches,
        "verdicts": {word: report.words[word] for word in WORDS if report.words[word]},
        "cells": records(report),
        "skipped": [{"guideline": what, "reason": why} for what, why in report.skipped],
    }


def _cases(report: Report) -> list[CaseResult]:
    """A test a cell: VIOLATED is a failure, WRONG an error, UNCLEAR and what was not checked skipped."""
    outcomes: Mapping[str, Outcome] = {"VIOLATED": "failure", "WRONG": "error", "UNCLEAR": "skipped"}
    cases = []
    for one in report.judged:
        message = (
            f"{title(one)}: {one.left_us:.2f} against {one.right_us:.2f} us, ratio {one.ratio:.3f} ({_interval(one)})"
        )
        if one.verdict == "VIOLATED" and report.advice.get(one.pair.name):
            message += f"; {report.advice[one.pair.name]}"
        outcome = outcomes.get(one.verdict)
        message = f"{one.verdict}: {message}" if outcome else message
        cases.append(CaseResult(f"guidelines.{one.pair.name}", size_text(one.pair.size_bytes), outcome, message))
    return cases + [CaseResult(f"guidelines.{what}", "all sizes", "skipped", why) for what, why in report.skipped]
