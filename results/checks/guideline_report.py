"""The report on guidelines: its data, and the document from which every form of it is written."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from omb_py.errors import ENVIRONMENT, NEGATIVE, OK
from omb_py.results.checks.guidelines import FAMILY, WORDS, GuidelineRules, JudgedGuideline, by_round, decide, fewest
from omb_py.results.document import CaseResult, Document, Outcome, TextTable
from omb_py.results.statistics.guarded_mean import CORRELATION
from omb_py.results.store.row import Row
from omb_py.results.units import counted, share_text, size_text, without_text

HEADS = ("guideline", "size", "left µs", "right µs", "ratio", "interval", "verdict", "costs µs", "beyond", "launches")
_SPARE = ("beyond", "costs µs", "launches", "interval")
"""What a narrow terminal does without; never the times, the ratio or the verdict."""


@dataclass(slots=True)
class GuidelineReport:
    """The data of a report on guidelines."""

    judged: list[JudgedGuideline]
    rules: GuidelineRules
    advice: Mapping[str, str] = field(default_factory=dict)
    """Name of a guideline -> hint for a violation (:func:`omb_py.results.checks.guideline_report.advice`)."""
    skipped: Sequence[tuple[str, str]] = ()
    """Guidelines that could not be checked, each with the reason."""
    run_id: str = ""
    seed: int | None = None
    launches: int = 0
    lost: Mapping[str, str] = field(default_factory=dict)
    """Nodes that stopped answering -> reason: all that counts was measured without them."""

    @property
    def counts(self) -> Counter[str]:
        """Verdict -> number of cells."""
        return Counter(judged.verdict for judged in self.judged)

    @property
    def violations(self) -> list[JudgedGuideline]:
        """Violated guidelines, the most expensive first."""
        violated = [judged for judged in self.judged if judged.verdict == "VIOLATED"]
        return sorted(violated, key=lambda judged: -judged.lost_us)


def report_of(rows: Iterable[Row], rules: GuidelineRules) -> GuidelineReport:
    """Judge stored rows, in the order of the catalogue, with a hint for the library of each."""
    own = [row for row in rows if row.get("family") == FAMILY]
    judged = sorted(decide(by_round(own), rules), key=lambda cell: (_sort_key(cell.pair.name), cell.pair.size_bytes))
    hints = {cell.pair.name: advice(str(cell.pair.row.get("library")), cell.pair.name) for cell in judged}
    return GuidelineReport(judged, rules, hints, launches=len({row["launch_id"] for row in own}))


def _sort_key(name: str) -> tuple[int, str]:
    """Sorting key: patterns by their number, then the others by name."""
    match = re.match(r"gl(\d+)", name)
    return (int(match[1]), name) if match else (1000, name)


def exit_code(report: GuidelineReport) -> int:
    """Choose the exit code: 1 if a guideline is violated or a side left wrong bytes, 3 if a node was lost, else 0."""
    if report.counts["VIOLATED"] or report.counts["WRONG"]:
        return NEGATIVE
    return ENVIRONMENT if report.lost else OK


def headline(report: GuidelineReport) -> str:
    """Count verdicts: ``3 violated, 5 unclear, 112 hold``."""
    counts = report.counts
    parts = [f"{counts['VIOLATED']} violated", f"{counts['UNCLEAR']} unclear", f"{counts['HOLDS']} hold"]
    words = ", ".join(([f"{counts['WRONG']} with wrong bytes"] if counts["WRONG"] else []) + parts)
    return f"{words}{without_text(report.lost)}"


def measured_text(report: GuidelineReport) -> str:
    """Say what was measured: ``Open MPI 5.0.11, 4 ranks on 1 node(s), 10 launches``; empty if nothing was judged."""
    rows = [judged.pair.row for judged in report.judged]
    libraries = dict.fromkeys(" ".join(filter(None, (row.get("library"), row.get("library_version")))) for row in rows)
    places = dict.fromkeys(f"{row.get('ranks')} ranks on {row.get('nodes')} node(s)" for row in rows)
    return f"{', '.join(libraries)}, {', '.join(places)}, {counted(report.launches, 'launch')}" if rows else ""


def _notes(report: GuidelineReport) -> list[str]:
    """Lines after the table: the cost of each violation with a hint, then the rules of the verdicts."""
    rules = report.rules
    lines = []
    for cell in report.violations:
        hint = f": {report.advice[cell.pair.name]}" if report.advice.get(cell.pair.name) else ""
        lines.append(f"{title(cell)} is violated: {cell.ratio:.2f} times, {cell.lost_us:.2f} µs a call{hint}")
    lines.append(
        f"ratio: median of left over right in the same launch, 90 % interval; beyond: launches with more than "
        f"{1 + rules.delta:g}; violated, holds: where the median is, by this number and by a guarded mean, both with "
        f"Holm's correction, at {share_text(rules.alpha)} for the whole report of {len(report.judged)} cells"
    )
    few = max((_count_missing(report, cell) for cell in report.judged), default=0)
    if few:
        lines.append(
            f"unclear with fewer than {few} launches in a round: so few cannot show where the medians of all its cells "
            f"are (--launches {few})"
        )
    alike = max((cell.correlation for cell in report.judged), default=0.0)
    if alike > CORRELATION and report.counts["UNCLEAR"]:
        lines.append(
            f"launches may resemble the one before (correlation of up to {alike:.2f}), so it takes more of them, or "
            "launches at other times of the day"
        )
    repeated = sum(cell.round > 1 for cell in report.judged)
    if repeated:
        lines.append(
            f"{counted(repeated, 'cell')} measured again: fresh launches alone decide, not those that chose them"
        )
    if any(cell.pair.limited for cell in report.judged):
        lines.append("* as short as the skew with which the ranks leave a barrier: the ratio is that of both with it")
    lines += [f"not checked: {name}: {why}" for name, why in report.skipped]
    return lines


def _count_missing(report: GuidelineReport, cell: JudgedGuideline) -> int:
    """Launches that the family of an unclear cell needs in its last round; 0 if it had them or is not unclear."""
    rules, family = report.rules, sum(other.round >= cell.round for other in report.judged)
    few = fewest(rules.alpha, rules.rounds, family)
    return few if cell.verdict == "UNCLEAR" and cell.launches < few else 0


def title(cell: JudgedGuideline) -> str:
    """Name a guideline at a size: ``allreduce ≤ reduce + bcast, 1 KiB``."""
    return f"{cell.pair.text}, {size_text(cell.pair.size_bytes)}"


def document_of(report: GuidelineReport) -> Document:
    rules, fact = report.rules, measured_text(report)
    return Document(
        "omb-py guidelines",
        headline(report),
        exit_code(report),
        partial(_as_dict, report),
        [f"{fact}{without_text(report.lost)}"] if fact else [],
        (TextTable(HEADS, _rows(report), ("guideline", "verdict"), spare=_SPARE),),
        notes=_notes(report),
        cases=_cases(report),
        properties={"delta": str(rules.delta), "alpha": str(rules.alpha), "run": report.run_id},
    )


def _rows(report: GuidelineReport) -> list[tuple[str, ...]]:
    """Rows of the table under :data:`HEADS`: the worst verdicts first, then by guideline as measured."""
    order = sorted(report.judged, key=lambda cell: WORDS.index(cell.verdict))
    return [
        (
            cell.pair.text,
            size_text(cell.pair.size_bytes) + ("*" if cell.pair.limited else ""),
            f"{cell.left_us:.2f}",
            f"{cell.right_us:.2f}",
            f"{cell.ratio:.3f}",
            _interval(cell),
            cell.verdict,
            f"{cell.lost_us:.2f}" if cell.verdict == "VIOLATED" else "",
            f"{cell.beyond}",
            f"{cell.launches} (round {cell.round})" if cell.round > 1 else str(cell.launches),
        )
        for cell in order
    ]


def _interval(cell: JudgedGuideline) -> str:
    return f"{cell.low:.3f} … {cell.high:.3f}" if math.isfinite(cell.high) else "unknown"


def records(report: GuidelineReport) -> list[dict[str, object]]:
    """Make one record a cell, as :func:`omb_py.dashboards.figures.maps.guidelines` draws them."""
    return [
        {
            "guideline": cell.pair.text,
            "name": cell.pair.name,
            "size_bytes": cell.pair.size_bytes,
            "ratio": cell.ratio,
            "violated": cell.verdict == "VIOLATED",
            "verdict": cell.verdict,
            "left_us": cell.left_us,
            "right_us": cell.right_us,
            "lost_us": cell.lost_us,
            "low": cell.low,
            "high": cell.high if math.isfinite(cell.high) else None,
            "p": cell.p,
            "adjusted": cell.adjusted,
            "launches": cell.launches,
            "beyond": cell.beyond,
            "look": cell.round,
            "sync_limited": cell.pair.limited,
            "advice": report.advice.get(cell.pair.name) if cell.verdict == "VIOLATED" else None,
        }
        for cell in report.judged
    ]


def _as_dict(report: GuidelineReport) -> dict[str, object]:
    return {
        "run_id": report.run_id or None,
        "seed": report.seed,
        "rules": {"alpha": report.rules.alpha, "delta": report.rules.delta, "looks": report.rules.rounds},
        "launches": report.launches,
        "verdicts": {word: report.counts[word] for word in WORDS if report.counts[word]},
        "cells": records(report),
        "skipped": [{"guideline": name, "reason": why} for name, why in report.skipped],
    }


def _cases(report: GuidelineReport) -> list[CaseResult]:
    """Make one test case a cell: VIOLATED is a failure, WRONG an error; UNCLEAR and unchecked ones are skipped."""
    outcomes: Mapping[str, Outcome] = {"VIOLATED": "failure", "WRONG": "error", "UNCLEAR": "skipped"}
    cases = []
    for cell in report.judged:
        times = f"{cell.left_us:.2f} against {cell.right_us:.2f} us"
        message = f"{title(cell)}: {times}, ratio {cell.ratio:.3f} ({_interval(cell)}), "
        message += f"{cell.beyond} of {counted(cell.launches, 'launch')} beyond the limit"
        if cell.verdict == "VIOLATED" and report.advice.get(cell.pair.name):
            message += f"; {report.advice[cell.pair.name]}"
        outcome = outcomes.get(cell.verdict)
        message = f"{cell.verdict}: {message}" if outcome else message
        cases.append(CaseResult(f"guidelines.{cell.pair.name}", size_text(cell.pair.size_bytes), outcome, message))
    return cases + [CaseResult(f"guidelines.{name}", "all sizes", "skipped", why) for name, why in report.skipped]


OPEN_MPI, MPICH, INTEL, NCCL = "Open MPI", "MPICH", "Intel MPI", "NCCL"
_TUNED = "OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_{op}_algorithm={value}"
_WORKS_AS: Mapping[str, Mapping[str, str]] = {
    OPEN_MPI: {
        "gl1_allgather": "1",
        "gl5_allreduce": "2",
        "gl6_allreduce": "6",
        "gl7_allreduce": "6",
        "gl9_bcast": "8",
        "gl15_reduce": "7",
        "gl16_reduce": "7",
        "gl17_reduce_scatter_block": "1",
        "gl20_reduce_scatter": "1",
        "split_bcast": "3",
        "split_reduce": "3",
        "split_allreduce": "5",
    },
    MPICH: {
        "gl6_allreduce": "reduce_scatter_allgather",
        "gl7_allreduce": "reduce_scatter_allgather",
        "gl9_bcast": "scatter_ring_allgather",
        "gl15_reduce": "reduce_scatter_gather",
        "gl16_reduce": "reduce_scatter_gather",
        "split_bcast": "pipelined_tree",
    },
    INTEL: {
        "gl1_allgather": "4",
        "gl5_allreduce": "3",
        "gl6_allreduce": "2",
        "gl7_allreduce": "2",
        "gl15_reduce": "5",
        "gl16_reduce": "5",
        "gl20_reduce_scatter": "4",
        "split_bcast": "3",
    },
}
"""Library -> guideline -> algorithm that works as the guideline's right side does."""
_HAN = "or without the hierarchical component: OMPI_MCA_coll=^han"


def advice(library: str, guideline: str) -> str:
    """Say what to try where a guideline is violated; empty for a library without known settings.

    Args:
        library: name of the library as in the store.
        guideline: name of the guideline, as ``gl5_allreduce``; the part after the first underscore is the collective.
    """
    if library == NCCL:
        return "try NCCL_ALGO=Ring or Tree, and NCCL_PROTO=LL, LL128 or Simple"
    if library not in _WORKS_AS:
        return ""
    if library == OPEN_MPI and guideline.startswith("gl24node"):
        return "try the hierarchical component: OMPI_MCA_coll_han_priority=100"
    op, value = guideline.partition("_")[2], _WORKS_AS[library].get(guideline)
    if library == OPEN_MPI:
        if value is None:
            return f"try the values of {_TUNED.format(op=op, value='N')} ({_HAN})"
        return f"try {_TUNED.format(op=op, value=value)} ({_HAN})"
    name = f"MPIR_CVAR_{op.upper()}_INTRA_ALGORITHM" if library == MPICH else f"I_MPI_ADJUST_{op.upper()}"
    return f"try {name}={value}" if value else f"try the values of {name}"
