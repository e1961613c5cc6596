"""The proof of a tuning: default against what was found, in fresh launches, by the verdicts of compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from omb_py.errors import Interrupted, OmbError, UsageError
from omb_py.options.request import Request
from omb_py.orchestrate.checks.guidelines import check_guidelines
from omb_py.orchestrate.compare.session import SideRun, compare_once
from omb_py.orchestrate.compare.stored import compare_stored
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.resume import find_unfinished
from omb_py.orchestrate.tune.launches import TuneLauncher, where_of
from omb_py.orchestrate.tune.searching import Group
from omb_py.results.checks.guideline_report import GuidelineReport
from omb_py.results.checks.guidelines import GuidelineRules
from omb_py.results.compare.judge import Answer, CompareRules
from omb_py.results.compare.match import Side
from omb_py.results.compare.report import CompareReport
from omb_py.results.compare.tags import TUNE_DEFAULT, TUNE_PROOF
from omb_py.results.store.keys import digest
from omb_py.results.tune.elimination import SearchDesign, pairs_for
from omb_py.results.tune.library_files import LibraryFiles
from omb_py.results.tune.report import Mended, pair_verdicts
from omb_py.results.tune.rules import LibrarySetting, Rule, TunePoint
from omb_py.suites.guidelines.patterns import GUIDELINES

ROUNDS = 3
STEP = "step"
ALPHA = 0.01
"""Chance that a proof of what makes no difference calls anything FASTER or SLOWER."""


@dataclass(slots=True)
class Proof:
    """What fresh launches said."""

    answers: dict[tuple[TunePoint, int], Answer] = field(default_factory=dict)
    """Point and size in bytes -> the verdict on the median."""
    step: Answer | None = None
    """The verdict on the step of a workload, with the file; None where none was tuned, or none could be compared."""
    files: LibraryFiles | None = None
    """The library's files that were proved; None where settings were proved one by one."""
    reports: list[CompareReport] = field(default_factory=list)
    missing_s: float = 0.0
    """Seconds that the budget lacked for it."""

    def take(self, report: CompareReport) -> None:
        self.reports.append(report)
        for cell, judged in report.verdicts:
            answer = judged.answers.get("median")
            if answer and cell.base["benchmark"] == STEP:
                self.step = answer
            elif answer:
                self.answers[TunePoint.of_row(cell.base), int(cell.base["size_bytes"] or 0)] = answer


def rules_of(design: SearchDesign, parts: int) -> CompareRules:
    """The rules of one of several comparisons that together err with :data:`ALPHA`."""
    return CompareRules(alpha=ALPHA / parts, delta=design.margin, rounds=ROUNDS)


def pairs_of(groups: Sequence[Group]) -> int:
    """Pairs of each round, by what the searches have measured."""
    return pairs_for([gain for group in groups for searcher in group.searches for gain in searcher.search.gains()])


def prove_files(
    groups: Sequence[Group], step: CheckedRequest | None, files: LibraryFiles, run: Run, store: Path
) -> Proof:
    """Compare the default with the library's files, at every size that a search has measured.

    Args:
        step: the step of a workload, which is compared too; None: there is none.
        files: the files as they were written, with the variables that make the library read them.

    Raises:
        OmbError: as :func:`omb_py.orchestrate.compare.session.compare_once`.
    """
    searching = [searcher for group in groups for searcher in group.searches]
    checked = [
        at_sizes(searcher.checked, [searcher.search.sizes[p] for p in searcher.search.choices()])
        for searcher in searching
    ]
    checked += [step] if step else []
    run.note("proof: the default against the files, in fresh launches")
    where = where_of(LibrarySetting("files", files.variables))
    proof = Proof(files=files)
    rules = rules_of(searching[0].search.design, 1)
    proof.take(compared(checked, where, "files", rules, pairs_of(groups), run, store))
    return proof


def prove_settings(groups: Sequence[Group], step: CheckedRequest | None, run: Run, store: Path) -> Proof:
    """Compare the default with each setting that was found, at the sizes for which it was found.

    Args:
        step: the step of a workload, which is compared too where there is one setting for all; None: there is none.

    Raises:
        OmbError: as :func:`omb_py.orchestrate.compare.session.compare_once`.
    """
    parts: dict[LibrarySetting, list[CheckedRequest]] = {}
    for group in groups:
        for candidate in dict.fromkeys(segment.candidate for segment in group.segments()):
            wanted = {
                group.sizes[place]
                for segment in group.segments()
                if segment.candidate == candidate
                for place in segment.places
            }
            for searcher in group.searches:
                if sizes := sorted(wanted.intersection(searcher.search.sizes)):
                    parts.setdefault(searcher.settings[candidate], []).append(at_sizes(searcher.checked, sizes))
    if step and len(parts) == 1:
        next(iter(parts.values())).append(step)
    proof = Proof()
    rules = rules_of(groups[0].searches[0].search.design, max(1, len(parts)))
    for number, (setting, checked) in enumerate(parts.items(), 1):
        run.note(f"proof {number} of {len(parts)}: the default against {setting.name}, in fresh launches")
        proof.take(compared(checked, where_of(setting), setting.name, rules, pairs_of(groups), run, store))
    return proof


def at_sizes(checked: CheckedRequest, sizes: Sequence[int]) -> CheckedRequest:
    return checked.changed(sizes=sizes_text(sizes))


def sizes_text(sizes: Sequence[int]) -> str:
    """Sizes as ``-m`` takes them; a single number would be the largest size.

    >>> sizes_text([64, 8]), sizes_text([8])
    ('8,64', '8:8')
    """
    return ",".join(map(str, sorted(sizes))) if len(sizes) > 1 else f"{sizes[0]}:{sizes[0]}"


def compared(
    checked: Sequence[CheckedRequest],
    where: RankEnvironment,
    name: str,
    rules: CompareRules,
    pairs: int,
    run: Run,
    store: Path,
) -> CompareReport:
    """Compare the default with another environment, or finish or read the comparison where it was begun before.

    Args:
        checked: what both sides measure, with the tuning's seed.
        name: what NEW is called; the comparison's id is made from it and the tuning's.
        pairs: pairs of launches in each round, at least.
    """
    run_id = f"{run.run_id.partition('-')[0]}-{digest([run.run_id, name])[:6]}"
    sides: dict[Side, SideRun] = {
        "BASE": SideRun("BASE", _tag(checked, run.seed, TUNE_DEFAULT), HERE, TUNE_DEFAULT),
        "NEW": SideRun("NEW", _tag(checked, run.seed, name), where, name),
    }
    if _has_begun(store, run_id):
        return compare_once(sides, rules, pairs, resume=run_id)
    try:
        return compare_stored([run_id], store, rules)
    except UsageError:  # no such run
        return compare_once(sides, rules, pairs, run_id=run_id)


def _tag(checked: Sequence[CheckedRequest], seed: int | None, setting: str) -> tuple[CheckedRequest, ...]:
    return tuple(each.changed(seed=seed, tags={**each.request.tags, TUNE_PROOF: setting}) for each in checked)


def _has_begun(store: Path, run_id: str) -> bool:
    try:
        return find_unfinished(store, run_id, {}) is not None
    except UsageError:
        return False


def mended(
    rules: Sequence[Rule],
    sizes: Iterable[tuple[str, int, int]],
    request: Request,
    tuned: RankEnvironment,
    launcher: TuneLauncher,
) -> list[Mended]:
    """Check the guidelines of tuned collectives at their tuned sizes, by default and, where violated, with the files.

    Args:
        sizes: collective, ranks and bytes of each size that was proved.
        launcher: knows the budget, and says what is done.

    Returns:
        The violated ones, each with its verdict under the files. A check that fails is left out, with a note.

    Raises:
        Interrupted: the user pressed Ctrl-C.
    """
    lines: list[Mended] = []
    for collective, ranks in dict.fromkeys((rule.collective, rule.ranks) for rule in rules):
        own = [rule for rule in rules if (rule.collective, rule.ranks) == (collective, ranks)]
        of_rules = sorted({s for c, n, s in sizes if (c, n) == (collective, ranks) and any(r.holds(s) for r in own)})
        names = [guideline.name for guideline in GUIDELINES.values() if guideline.left == collective]
        if not names or not of_rules:
            continue
        try:
            lines += _check_collective(request.changed(ranks=ranks), names, of_rules, tuned, launcher)
        except Interrupted:
            raise
        except OmbError as error:
            launcher.run.note(f"guidelines of {collective} on {ranks} ranks were not checked: {error}")
    return lines


def _check_collective(
    request: Request, names: Sequence[str], sizes: Sequence[int], tuned: RankEnvironment, launcher: TuneLauncher
) -> list[Mended]:
    before = _check_guidelines(request, names, sizes, HERE, launcher)
    violated = [each for each in before.judged if each.verdict == "VIOLATED"] if before else []
    if not violated:
        return []
    names = list(dict.fromkeys(each.pair.name for each in violated))
    after = _check_guidelines(request, names, sorted({each.pair.size_bytes for each in violated}), tuned, launcher)
    return pair_verdicts(request.ranks or 0, violated, after.judged if after else [])


def _check_guidelines(
    request: Request, names: Sequence[str], sizes: Sequence[int], where: RankEnvironment, launcher: TuneLauncher
) -> GuidelineReport | None:
    """The verdicts in one environment; None where the budget is spent."""
    if launcher.left_s <= 0:
        launcher.run.note("the budget is spent: guidelines were not checked (omb-py guidelines)")
        return None
    within = launcher.left_s if math.isfinite(launcher.left_s) else None
    plain = request.changed(op=None, in_place=False, dtypes=(), workload=None, validate=False)
    wanted = replace(plain, sizes=sizes_text(sizes))
    return check_guidelines(wanted, names, GuidelineRules(), within_s=within, where=where)
