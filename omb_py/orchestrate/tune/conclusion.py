"""The end of a tuning: its report, and the files that the proof allows."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from omb_py import __version__
from omb_py.backends.knobs import LibraryKnobs
from omb_py.errors import EnvironmentProblem
from omb_py.orchestrate.running.progress import duration_text
from omb_py.orchestrate.tune.launches import Launcher
from omb_py.orchestrate.tune.library_files import files_of
from omb_py.orchestrate.tune.proof import PAIRS, Proof
from omb_py.orchestrate.tune.searching import Searching
from omb_py.results.store.write import reason, write_atomically
from omb_py.results.tune.library_files import LibraryFiles
from omb_py.results.tune.report import Proved, Report
from omb_py.results.tune.rules import DEFAULT, Rule, RuleTable, to_json
from omb_py.results.tune.segments import proved, rule_of

TABLE_FILE = "rules.json"
UNPROVEN = "unproven"
"""Folder of the files that the proof is about."""
_UNPROVEN = (1.0, 1.0, 1.0)
"""Ratio and interval of a rule before its proof."""


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


def proposal(searching: Sequence[Searching], launcher: Launcher, command: str) -> RuleTable:
    """The rules that the search proposes, not proved: their ratio is 1."""
    rules = [
        Rule(
            one.checked.benchmark.name,
            one.plan.ranks,
            found.first_bytes,
            found.last_bytes,
            one.settings[found.candidate],
            *_UNPROVEN,
        )
        for one in searching
        for found in one.segments()
    ]
    return RuleTable(_library(launcher), tuple(rules), _who(launcher, command))


def _proved(searching: Sequence[Searching], proof: Proof) -> list[Proved]:
    cells = []
    for one in searching:
        names = {p: one.settings[found.candidate].name for found in one.segments() for p in found.places}
        for place, size in enumerate(one.search.sizes):
            if (answer := proof.answers.get((one.plan.ranks, size))) is not None:
                cells.append(Proved(one.plan.ranks, size, names.get(place, DEFAULT.name), answer))
    return cells


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


def unproven_files(table: RuleTable, library: LibraryKnobs, folder: Path) -> LibraryFiles:
    """Write the files of a proposal into a folder of their own, for the proof. Raises EnvironmentProblem."""
    folder = folder / UNPROVEN
    files = files_of(table, library, folder)
    _write(folder, files.texts)
    return files


def write_files(report: Report, folder: Path, library: LibraryKnobs | None) -> None:
    """Write the files of a report that holds up under their final names, and add them to it.

    Args:
        report: the report; where the proof says SLOWER, the unproven files stay and nothing else is written.
        folder: where the files stand.
        library: makes the library's own files; None: the table of rules alone.

    Raises:
        EnvironmentProblem: a file cannot be written.
    """
    if not report.holds_up:
        return
    if report.table.rules:
        texts = {TABLE_FILE: to_json(report.table)}
        if library is not None:
            files = files_of(report.table, library, folder)
            texts |= files.texts
            report.left_out = files.left_out
        _write(folder, texts)
        report.files = [str(folder / name) for name in texts]
    if not report.marginal:
        shutil.rmtree(folder / UNPROVEN, ignore_errors=True)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomically(folder / name, text.encode())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(folder)!r}: {reason(error)}") from error
