"""Checking guidelines: all chosen ones in every launch, then again what is not known to hold, in fresh launches."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from omb_py.backends.registry import capabilities_of, in_process
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import EnvironmentProblem, Interrupted, OmbError, UsageError, nearest
from omb_py.options.request import DEFAULT_RANKS, SILENT, Request
from omb_py.orchestrate.planning.plan import CheckedRequest, LaunchPlan, check, check_ranks, plan_all
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.printers import Kept
from omb_py.orchestrate.running.run import new_run, start
from omb_py.results.checks.guideline_report import Report, report_of
from omb_py.results.checks.guidelines import ROUND_TAG, Rules
from omb_py.results.statistics.sequential import GUIDELINE
from omb_py.suites.guidelines.patterns import GUIDELINES, MONOTONY, PATTERNS, SPLIT, Guideline, lacks

DEFAULT_LAUNCHES = 10
DEFAULT_SIZES = "8:512K:16"
FEWEST = 2
GROUPS: Mapping[str, tuple[Guideline, ...]] = {"patterns": PATTERNS, "monotony": MONOTONY, "split": SPLIT}


def chosen(words: Sequence[str]) -> list[Guideline]:
    """The guidelines that words name: a group, a collective, a number as ``gl5``, or a whole name; all without words.

    Raises UsageError with the nearest word.
    """
    found: dict[str, Guideline] = {}
    known = list(dict.fromkeys((*GROUPS, *(g.left for g in PATTERNS), *map(_number, PATTERNS), *GUIDELINES)))
    for word in words:
        fits = [g for g in GUIDELINES.values() if word in (g.name, g.left, _number(g)) or g in GROUPS.get(word, ())]
        if not fits:
            raise UsageError(f"no guideline {word!r}: {nearest(word, known)}")
        found |= {g.name: g for g in fits}
    return list(found.values()) if words else list(GUIDELINES.values())


def _number(guideline: Guideline) -> str:
    found = re.match(r"gl\d+", guideline.name)
    return found[0] if found else guideline.name


def able(guidelines: Sequence[Guideline], request: Request) -> tuple[list[CheckedRequest], list[tuple[str, str]]]:
    """The requests of those that a request's backend can do on its number of ranks, and why not the others.

    Raises:
        UsageError: the request itself is wrong.
        EnvironmentProblem: the backend can do none of them.
    """
    (backend,), offers = request.backends, capabilities_of(request.backends)
    fit, skipped = [], []
    refused: UsageError | None = None
    for guideline in guidelines:
        why = lacks(guideline, offers[backend])
        if not why:
            try:
                check_ranks(guideline.benchmark, request.ranks or DEFAULT_RANKS)
            except UsageError as error:
                why, refused = str(error), refused or error
        if why:
            skipped.append((guideline.name, why))
        else:
            fit.append(check(replace(request, benchmark=guideline.name), offers))
    if not fit and refused is not None:
        raise refused
    if not fit:
        raise EnvironmentProblem(f"backend {backend} can do none of these: {skipped[0][0]}: {skipped[0][1]}")
    return fit, skipped


def check_guidelines(request: Request, words: Sequence[str], rules: Rules, within_s: float | None = None) -> Report:
    """Measure and judge; every launch is stored, under one run.

    Args:
        request: what the launches share; its benchmark is not looked at.
        words: which guidelines (:func:`chosen`).
        rules: declared here, before the first launch.
        within_s: seconds after which no launch begins, of the first round after half of them; what is undecided then
            stays UNCLEAR.

    Raises:
        UsageError: an unknown word; too few launches.
        EnvironmentProblem, Interrupted: what was measured is kept, and the message says where.
    """
    if request.launches < FEWEST:
        raise UsageError(
            f"--launches {request.launches}: one launch says nothing about the next: --launches {DEFAULT_LAUNCHES}"
        )
    if not 1 <= rules.rounds <= GUIDELINE.most_rounds:
        raise UsageError(f"--rounds {rules.rounds}: 1 to {GUIDELINE.most_rounds}")
    if len(request.backends) > 1:
        raise UsageError(f"guidelines are checked on one backend at a time, not {', '.join(request.backends)}")
    joined = joined_environment(os.environ)
    if joined is not None and not in_process(request.backends):
        raise UsageError(
            f"{joined.launcher} has started this process, but omb-py guidelines starts ranks itself: leave it out"
        )
    shared = replace(request, format=SILENT, ranks=request.ranks or DEFAULT_RANKS)
    fit, skipped = able(chosen(words), shared)
    plans = plan_all(fit)
    kept = Kept()
    run = replace(new_run(shared, plans), printer=kept)
    run.note(f"{len(fit)} guidelines, {len(plans[0].cells)} cells a launch, {request.launches} launches")
    began = time.monotonic()
    until = began + within_s if within_s else None
    report = Report([], rules)
    wanted: set[tuple[str, int]] | None = None
    number = 0
    for round_number in range(1, rules.rounds + 1):
        run.request = replace(shared, tags={**shared.tags, ROUND_TAG: f"{round_number}/{rules.rounds}"})
        chosen_now = [plan for _ in range(GUIDELINE.batches(round_number)) for plan in _of(plans, wanted)]
        if wanted is not None:
            more = f"{len(wanted)} cells in {len(chosen_now)} more launches"
            run.note(f"round {round_number} of at most {rules.rounds}: {more}")
        middle = began + within_s / 2 if within_s and round_number < min(2, rules.rounds) else until
        number = _make(run, chosen_now, number, middle)
        report = report_of(kept.rows, rules)
        wanted = {(one.pair.name, one.pair.size_bytes) for one in report.judged if one.verdict == "UNCLEAR"}
        if not wanted or (until and time.monotonic() > until):
            break
    return replace(report, skipped=skipped, run_id=run.run_id, seed=run.seed)


def _of(plans: Sequence[LaunchPlan], wanted: set[tuple[str, int]] | None) -> list[LaunchPlan]:
    """The launches with the wanted cells alone; None: all."""
    if wanted is None:
        return list(plans)
    made = (replace(p, cells=tuple(c for c in p.cells if (c.benchmark, c.size) in wanted)) for p in plans)
    return [plan for plan in made if plan.cells]


def _make(run: Run, plans: Sequence[LaunchPlan], number: int, until: float | None) -> int:
    """Make launches, numbered from `number`, each with its cells in another order. Returns the next number.

    Raises EnvironmentProblem and Interrupted, with where the finished ones are.
    """
    for made, plan in enumerate(plans):
        if until and made >= FEWEST and time.monotonic() > until:
            break
        cells = list(plan.cells)
        random.Random(f"{run.seed} {number}").shuffle(cells)  # a cell may inherit from the one before
        try:
            start(run, replace(plan, cells=tuple(cells), index=number))
        except Interrupted as error:
            raise Interrupted(f"{error}: {_kept_text(run)}") from None
        except OmbError as error:  # a word that only the ranks know to be wrong is bad input still
            kind = UsageError if isinstance(error, UsageError) else EnvironmentProblem
            raise kind(f"{error}. {_kept_text(run)}") from None
        number += 1
    return number


def _kept_text(run: Run) -> str:
    if not run.cells:
        return "Nothing was measured"
    if run.request.store is None:
        return "Nothing is stored, because of --no-store"
    return f"What was measured is kept in {run.request.store}, run {run.run_id}"
