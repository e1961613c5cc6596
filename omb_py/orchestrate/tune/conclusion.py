"""The end of a tuning: its report, and the files that the proof allows."""

from __future__ import annotations

import math
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from omb_py import __version__
from omb_py.backends.capabilities import LibraryKnobs
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.values import duration_text
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.tune.launches import TuneLauncher, where_of
from omb_py.orchestrate.tune.proof import Proof, pairs_of
from omb_py.orchestrate.tune.searching import Group, Searching
from omb_py.results.store.row import Row
from omb_py.results.store.write import reason, write_atomically
from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, write_rules
from omb_py.results.tune.report import Proved, TuneReport, Undecided
from omb_py.results.tune.rules import DEFAULT, LibrarySetting, RuleTable, to_json

TABLE_FILE = "rules.json"
FULL_LAUNCHES = 10
"""Launches of each candidate at each size of the full grid with which the cost is compared."""
UNPROVEN = "unproven"


def report_of(
    groups: Sequence[Group], proof: Proof, launcher: TuneLauncher, command: str, workload: str = ""
) -> TuneReport:
    """The report, without files.

    Args:
        command: the command line, for the heads of files.
        workload: the workload whose collectives were tuned; empty: none.
    """
    rules = tuple(rule for group in groups for rule in group.proved(proof.answers))
    searching = [searcher for group in groups for searcher in group.searches]
    full = sum(len(searcher.settings) * len(searcher.search.sizes) * FULL_LAUNCHES for searcher in searching)
    undecided = [
        _undecided(searcher, place)
        for searcher in searching
        if searcher.stopped
        for place in searcher.search.open_places
    ]
    return TuneReport(
        ", ".join(dict.fromkeys(searcher.point.benchmark for searcher in searching)),
        RuleTable(_library(launcher), rules, _who(launcher, command)),
        [cell for group in groups for cell in _list_proved(group, proof)],
        _list_excluded(searching),
        undecided,
        _say_needed(groups, proof, launcher),
        len({setting for searcher in searching for setting in searcher.settings}) - 1,
        searching[0].search.design.margin,
        launcher.index,
        sum(searcher.search.spent for searcher in searching) / full,
        launcher.run.run_id,
        [report.run_id for report in proof.reports if report.run_id],
        str(launcher.run.request.store),
        disputed=[(group.searches[0].point, size) for group in groups for size in group.disputed()],
        workload=workload,
        step=proof.step,
    )


def _undecided(searcher: Searching, place: int) -> Undecided:
    candidate, log_ratio, blocks = searcher.search.leader(place)
    name = searcher.settings[candidate].name
    return Undecided(searcher.point, searcher.search.sizes[place], name, math.exp(log_ratio), blocks)


def _list_excluded(searching: Sequence[Searching]) -> dict[str, str]:
    """Candidate -> why it was left out; with its point where there are several."""
    several = len(searching) > 1
    return {
        f"{name} ({searcher.point})" if several else name: why
        for searcher in searching
        for name, why in searcher.failed.items()
    }


def proposal(groups: Sequence[Group], launcher: TuneLauncher, command: str) -> RuleTable:
    """The rules that the search proposes, not proved: their ratio is 1."""
    rules = tuple(rule for group in groups for rule in group.proposed())
    return RuleTable(_library(launcher), rules, _who(launcher, command))


def _list_proved(group: Group, proof: Proof) -> list[Proved]:
    names = {group.sizes[p]: group.settings[s.candidate].name for s in group.segments() for p in s.places}
    return [
        Proved(searcher.point, size, names.get(size, DEFAULT.name), answer)
        for searcher in group.searches
        for size in searcher.search.sizes
        if (answer := proof.answers.get((searcher.point, size))) is not None
    ]


def _say_needed(groups: Sequence[Group], proof: Proof, launcher: TuneLauncher) -> str:
    """What it would take to decide what the budget has left open; empty where nothing is."""
    searching = [searcher for group in groups for searcher in group.searches]
    more = sum(searcher.search.most_left() for searcher in searching if searcher.stopped)
    if not (more or proof.missing_s or any(searcher.stopped for searcher in searching)):
        return ""
    launches = more + 2 * pairs_of(groups)
    seconds = launches * launcher.mean_s if more else proof.missing_s
    return (
        f"the budget is spent; up to {launches} more launches, about {duration_text(seconds)}, would decide: --resume"
    )


def _library(launcher: TuneLauncher) -> str:
    row = next(iter(launcher.rows), Row())
    return f"{row.get('library') or ''} {row.get('library_version') or ''}".strip() or "unknown"


def _who(launcher: TuneLauncher, command: str) -> tuple[tuple[str, str], ...]:
    row = next(iter(launcher.rows), Row())
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


def write_files(report: TuneReport, folder: Path, library: LibraryKnobs | None) -> RankEnvironment | None:
    """Write the files of a report that holds up under their final names, and add them to it.

    Args:
        report: the report; where the proof says SLOWER, the unproven files stay and nothing else is written.
        library: makes the library's own files; None: the table of rules alone.

    Returns:
        The environment of ranks that use the rules; None where there are none, or no environment holds for all.

    Raises:
        EnvironmentProblem: a file cannot be written.
    """
    if not report.holds_up:
        return None
    settings = {rule.setting for rule in report.table.rules}
    variables = next(iter(settings)).variables if len(settings) == 1 else ()
    if report.table.rules:
        texts = {TABLE_FILE: to_json(report.table)}
        if library is not None:
            files = files_of(report.table, library, folder)
            texts |= files.texts
            report.left_out = files.left_out_lines
            variables = files.variables or variables
        _write(folder, texts)
        report.files = [str(folder / name) for name in texts]
    if not report.marginal:
        shutil.rmtree(folder / UNPROVEN, ignore_errors=True)
    return where_of(LibrarySetting("files", variables)) if variables else None


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomically(folder / name, text.encode())
    except OSError as error:
        raise EnvironmentProblem(f"cannot write {str(folder)!r}: {reason(error)}") from error


_COMPOSITION = re.compile(r"^MPIR_CVAR_(\w+)_COMPOSITION$")
_MPI_LAYER = "NM only"
"""MPICH's word for a composition that passes the whole collective on to its MPI layer."""


def facts_of(library: LibraryKnobs) -> LibraryFacts:
    numbers = {
        knob.variable: {choice.word: choice.meaning for choice in knob.choices}
        for knob in library.knobs
        if knob.variable and all(choice.meaning.lstrip("-").isdigit() for choice in knob.choices)
    }
    compositions = {
        match[1].lower(): choice.word
        for knob in library.knobs
        if (match := _COMPOSITION.match(knob.name))
        for choice in knob.choices
        if choice.meaning.startswith(_MPI_LAYER)
    }
    values = {knob.variable: knob.value for knob in library.knobs if knob.variable}
    return LibraryFacts(library.library or library.backend, numbers, values, library.trees, compositions)


def files_of(table: RuleTable, library: LibraryKnobs, folder: Path) -> LibraryFiles:
    """The files by which a library uses the rules of a table; `folder` is where they will stand."""
    return write_rules(table, facts_of(library), folder.absolute())
