"""The end of a tuning: its report, and the files that the proof allows."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from omb_py import __version__
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.running.progress import duration_text
from omb_py.orchestrate.tune.launches import Launcher
from omb_py.orchestrate.tune.proof import PAIRS, Proof
from omb_py.orchestrate.tune.searching import Searching
from omb_py.results.store.write import reason, write_atomically
from omb_py.results.tune.report import Proved, Report
from omb_py.results.tune.rules import Rule, RuleTable, to_json
from omb_py.results.tune.segments import proved, rule_of

TABLE_FILE = "rules.json"


def report_of(searching: Sequence[Searching], proof: Proof, launcher: Launcher, command: str) -> Report:
    """The report, without files.

    Args:
        searching: the searches, at their ends.
        proof: what fresh launches said.
        launcher: made the launches.
        command: the command line, for the heads of files.
    """
    table = RuleTable(_library(launcher), tuple(_rules(searching, proof)), _who(launcher, command))
    full = sum(len(one.settings) * len(one.search.sizes) * PAIRS for one in searching)
    undecided = [
        (one.plan.ranks, one.search.sizes[place])
        for one in searching
        if one.stopped
        for place in one.search.open_places
    ]
    return Report(
        searching[0].checked.benchmark.name,
        table,
        _proved(searching, proof),
        {name: why for one in searching for name, why in one.failed.items()},
        undecided,
        _needed(searching, proof, launcher),
        len(searching[0].settings) - 1,
        searching[0].search.design.margin,
        launcher.index,
        sum(one.search.spent for one in searching) / full,
        launcher.run.run_id,
        [report.run_id for report in proof.reports if report.run_id],
    )


def _rules(searching: Sequence[Searching], proof: Proof) -> list[Rule]:
    rules = []
    for one in searching:
        ranks, sizes = one.plan.ranks, one.search.sizes
        answers = {p: proof.answers[ranks, size] for p, size in enumerate(sizes) if (ranks, size) in proof.answers}
        for left in proved(one.segments(), answers, sizes):
            setting = one.settings[left.candidate]
            rules.append(rule_of(left, answers, setting, one.checked.benchmark.name, ranks))
    return rules


def _proved(searching: Sequence[Searching], proof: Proof) -> list[Proved]:
    return [
        Proved(one.plan.ranks, size, one.settings[found.candidate].name, proof.answers[one.plan.ranks, size])
        for one in searching
        for found in one.segments()
        for place in found.places
        if (one.plan.ranks, size := one.search.sizes[place]) in proof.answers
    ]


def _needed(searching: Sequence[Searching], proof: Proof, launcher: Launcher) -> str:
    """What it would take to decide what the budget has left open; empty where nothing is."""
    more = sum(one.search.most_left() for one in searching if one.stopped)
    if not (more or proof.missing_s or any(one.stopped for one in searching)):
        return ""
    launches = more + 2 * PAIRS
    seconds = launches * launcher.mean_s if more else proof.missing_s
    return (
        f"the budget is spent; up to {launches} more launches, about {duration_text(seconds)}, would decide: --resume"
    )


def _library(launcher: Launcher) -> str:
    row = next(iter(launcher.rows), {})
    return f"{row.get('library') or ''} {row.get('library_version') or ''}".strip() or "unknown"


def _who(launcher: Launcher, command: str) -> tuple[tuple[str, str], ...]:
    row = next(iter(launcher.rows), {})
    hosts = ", ".join(dict.fromkeys(row.get("hosts") or [platform.node()]))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    version = f"omb-py {__version__}"
    return (("hosts", hosts), ("time", now), ("command", command), ("version", version), ("run", launcher.run.run_id))


def write_files(report: Report, folder: Path) -> None:
    """Write the files of a report that holds up, and add their names to it. Raises EnvironmentProblem."""
    if not (report.table.rules and report.holds_up):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / TABLE_FILE, to_json(report.table).encode())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(folder)!r}: {reason(error)}") from error
    report.files = [*report.files, str(folder / TABLE_FILE)]
