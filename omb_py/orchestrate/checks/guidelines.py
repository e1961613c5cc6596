"""Check guidelines: measure all in every launch, then measure the undecided ones again in fresh launches."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from omb_py.backends.registry import find as find_backend
from omb_py.errors import EnvironmentProblem, Interrupted, OmbError, UsageError, nearest
from omb_py.options.request import DEFAULT_RANKS, SILENT, Request
from omb_py.orchestrate.compare.session import simulated_in
from omb_py.orchestrate.launching.launch_command import HERE, RankEnvironment
from omb_py.orchestrate.planning.availability import guideline_problem
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.planning.rules import check_ranks
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import kept_text, resumable
from omb_py.orchestrate.running.lost_nodes import NodesLeft, NodesLost, all_hosts, go_on, start_on_nodes
from omb_py.orchestrate.running.run import new_run, say_busy
from omb_py.orchestrate.running.suite_run import check_no_launcher
from omb_py.printing.printers import Kept
from omb_py.results.checks.guideline_report import GuidelineReport, report_of
from omb_py.results.checks.guidelines import MOST_ROUNDS, GuidelineRules, batches, can_decide, fewest
from omb_py.results.compare.tags import GUIDELINE_ROUND
from omb_py.suites.guidelines.patterns import GUIDELINES, MONOTONY, PATTERNS, SPLIT, Guideline

DEFAULT_LAUNCHES = 10
"""Launches of a round where few cells need no more."""
DEFAULT_SIZES = "8:512K:16"
FEWEST = 2
GROUPS: Mapping[str, tuple[Guideline, ...]] = {"patterns": PATTERNS, "monotony": MONOTONY, "split": SPLIT}


def chosen(words: Sequence[str]) -> list[Guideline]:
    """Find the guidelines of a group, a collective, a number as ``gl5`` or a whole name; without words, all of them.

    Raises UsageError with the nearest word.
    """
    guidelines: dict[str, Guideline] = {}
    known = list(dict.fromkeys((*GROUPS, *(g.left for g in PATTERNS), *map(_number, PATTERNS), *GUIDELINES)))
    for word in words:
        fits = [g for g in GUIDELINES.values() if word in (g.name, g.left, _number(g)) or g in GROUPS.get(word, ())]
        if not fits:
            raise UsageError(f"no guideline {word!r}: {nearest(word, known)}")
        guidelines |= {g.name: g for g in fits}
    return list(guidelines.values()) if words else list(GUIDELINES.values())


def _number(guideline: Guideline) -> str:
    match = re.match(r"gl\d+", guideline.name)
    return match[0] if match else guideline.name


def able(guidelines: Sequence[Guideline], request: Request) -> tuple[list[CheckedRequest], list[tuple[str, str]]]:
    """Return requests for the guidelines that the backend can measure on this number of ranks.

    Returns:
        The requests, and (name, reason) of each guideline that is left out.

    Raises:
        UsageError: the request itself is wrong.
        EnvironmentProblem: the backend can do none of them.
    """
    (backend,) = request.backends
    offers = {backend: find_backend(backend).capabilities}
    fit, skipped = [], []
    refused: UsageError | None = None
    for guideline in guidelines:
        why = guideline_problem(guideline, offers[backend])
        if not why:
            try:
                check_ranks(guideline.benchmark, request.ranks or DEFAULT_RANKS)
            except UsageError as error:
                why, refused = str(error), refused or error
        if why:
            skipped.append((guideline.name, why))
        else:
            fit.append(resolve(parse(request.changed(benchmark=guideline.name)), offers))
    if not fit and refused is not None:
        raise refused
    if not fit:
        raise EnvironmentProblem(f"backend {backend} can do none of these: {skipped[0][0]}: {skipped[0][1]}")
    return fit, skipped


def launches_for(cells: int, rules: GuidelineRules) -> int:
    """How many launches the first round has: :data:`DEFAULT_LAUNCHES`, or as many as can show that all cells hold."""
    return max(DEFAULT_LAUNCHES, fewest(rules.alpha, rules.rounds, cells))


def check_guidelines(
    request: Request,
    words: Sequence[str],
    rules: GuidelineRules,
    launches: int | None = None,
    within_s: float | None = None,
    where: RankEnvironment = HERE,
) -> GuidelineReport:
    """Measure guidelines and judge them; every launch is stored, under one run.

    Args:
        request: options of the launches; its benchmark and its number of launches are ignored.
        words: names of guidelines (:func:`chosen`).
        rules: rules of the verdicts, declared before the first launch.
        launches: launches of the first round. None: :func:`launches_for` its cells.
        within_s: seconds after which no launch begins; the first round stops at half of them. What is undecided then
            stays UNCLEAR. None: no limit.

    Raises:
        UsageError: a word is unknown, or there are too few launches.
        EnvironmentProblem, Interrupted: a launch failed, or the user pressed Ctrl-C. What was measured is kept, and the
            message says where.
    """
    if launches is not None and launches < FEWEST:
        raise UsageError(f"--launches {launches}: at least {FEWEST} launches are needed: --launches {DEFAULT_LAUNCHES}")
    if not 1 <= rules.rounds <= MOST_ROUNDS:
        raise UsageError(f"--rounds {rules.rounds}: 1 to {MOST_ROUNDS}")
    if len(request.backends) > 1:
        raise UsageError(f"guidelines are checked on one backend at a time, not {', '.join(request.backends)}")
    check_no_launcher(request.backends, "omb-py guidelines starts ranks itself: leave it out")
    shared = request.changed(format=SILENT, ranks=request.ranks or DEFAULT_RANKS, launches=launches or DEFAULT_LAUNCHES)
    chosen_ones, began = chosen(words), time.monotonic()
    nodes = NodesLeft(all_hosts(shared))

    def measure() -> GuidelineReport:
        left_s = None if within_s is None else max(1e-9, within_s - (time.monotonic() - began))
        return _check(able(chosen_ones, nodes.request(shared)), rules, launches, left_s, where)

    return replace(go_on(nodes, measure), lost=dict(nodes.lost))


def _check(
    able_ones: tuple[list[CheckedRequest], list[tuple[str, str]]],
    rules: GuidelineRules,
    launches: int | None,
    within_s: float | None,
    where: RankEnvironment,
) -> GuidelineReport:
    """Check the guidelines that can be measured; the others are left out. Raises NodesLost."""
    fit, skipped = able_ones
    if launches is None:
        launches = launches_for(sum(len(of_side) for each in fit for of_side in each.cells.values()), rules)
        fit = [each.changed(launches=launches) for each in fit]
    plans, shared = plan_launches(fit), fit[0].request
    kept = Kept()
    run = replace(new_run(shared, plans), printer=kept, where=where)
    say_busy(run)
    run.note(
        f"{len(fit)} guidelines, {len(plans[0].cells)} cells a launch, {fit[0].request.repetition.launches} launches"
    )
    with resumable(lambda: kept_text(run, bool(run.cells)), run):
        report = _rounds(run, kept, plans, rules, launches, within_s)
    return replace(report, skipped=skipped, run_id=run.run_id, seed=run.seed)


def _rounds(
    run: Run, kept: Kept, plans: Sequence[LaunchPlan], rules: GuidelineRules, launches: int, within_s: float | None
) -> GuidelineReport:
    shared, began = run.request, time.monotonic()
    until = began + within_s if within_s else None
    report = GuidelineReport([], rules)
    wanted: set[tuple[str, int]] | None = None
    number = 0
    for round_number in range(1, rules.rounds + 1):
        run.request = replace(shared, tags={**shared.tags, GUIDELINE_ROUND: f"{round_number}/{rules.rounds}"})
        chosen_now = [plan for _ in range(batches(round_number)) for plan in _select_cells(plans, wanted)]
        if wanted is not None:
            more = f"{len(wanted)} cells in {len(chosen_now)} more launches"
            run.note(f"round {round_number} of up to {rules.rounds}: {more}")
        # half of the time is left for the second round, which decides what the first one cannot
        middle = began + within_s / 2 if within_s and round_number < min(2, rules.rounds) else until
        number = _make(run, chosen_now, number, middle)
        report = report_of(kept.rows, rules)
        wanted = {(j.pair.name, j.pair.size_bytes) for j in report.judged if j.verdict == "UNCLEAR"}
        if not wanted or (until and time.monotonic() > until):
            break
        if not can_decide(round_number + 1, launches, len(wanted), rules):
            break
    return report


def _select_cells(plans: Sequence[LaunchPlan], wanted: set[tuple[str, int]] | None) -> list[LaunchPlan]:
    """Reduce the launches to the wanted cells; None keeps all."""
    if wanted is None:
        return list(plans)
    reduced = (replace(p, cells=tuple(c for c in p.cells if (c.benchmark, c.size) in wanted)) for p in plans)
    return [plan for plan in reduced if plan.cells]


def _make(run: Run, plans: Sequence[LaunchPlan], number: int, until: float | None) -> int:
    """Make launches, numbered from `number`, each with its cells in another order. Returns the next number.

    Raises EnvironmentProblem and Interrupted; the message says where the finished launches are.
    """
    run.command.progress.plan([len(plan.cells) for plan in plans])
    for count, plan in enumerate(plans):
        if until and count >= FEWEST and time.monotonic() > until:
            break
        cells = list(plan.cells)
        random.Random(f"{run.seed} {number}").shuffle(cells)  # a cell may inherit caches from the one before
        try:
            with simulated_in(run.where, plan.backend):
                start_on_nodes(run, replace(plan, cells=tuple(cells), index=number))
        except (Interrupted, NodesLost):
            raise
        except OmbError as error:  # bad input stays bad input, also if only the ranks can see it
            kind = UsageError if isinstance(error, UsageError) else EnvironmentProblem
            kept = kept_text(run, bool(run.cells))
            raise kind(f"{error}. {kept[:1].upper()}{kept[1:]}") from None
        number += 1
    return number
