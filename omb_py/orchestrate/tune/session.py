"""A tuning: it searches, writes files, proves them in fresh launches, and reports."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omb_py.backends.knobs import LibraryKnobs
from omb_py.backends.registry import in_process
from omb_py.engine.rank.launcher_variables import joined_environment
from omb_py.errors import EnvironmentProblem, Interrupted, UsageError
from omb_py.options.request import DEFAULT_RANKS, SILENT
from omb_py.orchestrate.compare.resume import check_same, declare, ended, unfinished
from omb_py.orchestrate.planning.plan import CheckedRequest, LaunchPlan, plan_all
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.run import new_run
from omb_py.orchestrate.tune.conclusion import proposal, report_of, unproven_files, write_files
from omb_py.orchestrate.tune.launches import TRIAL, CandidateFailed, Launcher
from omb_py.orchestrate.tune.proof import PAIRS, Proof, prove_files, prove_settings
from omb_py.orchestrate.tune.searching import Searching, search_all
from omb_py.orchestrate.tune.stored_launches import ENDING, Stored, stored_rows
from omb_py.results.store.keys import digest
from omb_py.results.tune.design import Design
from omb_py.results.tune.report import Report
from omb_py.results.tune.rules import DEFAULT, Setting


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What is to be tuned."""

    checked: tuple[CheckedRequest, ...]
    """One request for each number of ranks."""
    settings: tuple[Setting, ...]
    """The candidates, without the default."""
    design: Design
    folder: Path
    """Where the files are written."""
    library: LibraryKnobs | None = None
    """What can be set in the library; None: it is not known, and there are no files but the table of rules."""
    budget_s: float | None = None
    """Seconds after the first launch, after which no other begins; None: no limit."""
    resume: str | None = None
    """Id of the tuning to resume, the beginning of one, or ``last``; None: a new one."""
    command: str = ""
    """The command line, for the heads of files."""


def tune(request: TuneRequest, clock: Callable[[], float] = time.monotonic) -> Report:
    """Find the fastest setting of each size, prove it, and write the files that the library reads.

    Args:
        request: what is to be tuned.
        clock: gives seconds, for the budget.

    Raises:
        UsageError: the request cannot be tuned, or is not the one that is resumed.
        EnvironmentProblem: the library as it is cannot be measured. What was measured is kept.
        Interrupted: the same; the message says how to resume.
    """
    checked = tuple(map(_tunable, request.checked))
    plans = [_one_launch(each) for each in checked]
    store = checked[0].request.store
    assert store is not None  # _tunable has refused others
    stored, run = _begin(request, checked, plans, store)
    launcher = Launcher(run, stored, clock, stored.next_index, budget_s=request.budget_s)
    everyone = (DEFAULT, *request.settings)
    searching = [
        Searching.of(each, plan, everyone, replace(request.design, seed=run.seed))
        for each, plan in zip(checked, plans, strict=True)
    ]
    try:
        _trial(launcher, searching[0])
        search_all(searching, launcher, store)
        proof = _proved(request, searching, launcher, store)
    except Interrupted as error:
        what = str(error).partition(": What was measured")[0]  # by the proof, which the tuning resumes
        raise Interrupted(f"{what}: {_kept(store, run)}") from None
    except CandidateFailed as error:
        raise EnvironmentProblem(f"the library as it is cannot be tuned: {error}. {_kept(store, run)}") from None
    report = report_of(searching, proof, launcher, request.command)
    write_files(report, request.folder, request.library)
    if not report.marginal:
        ended(store, run.run_id, ENDING)
    return report


def _tunable(checked: CheckedRequest) -> CheckedRequest:
    request = checked.request
    if request.store is None:
        raise UsageError("a tuning stores its launches, so that it can be looked at again: leave --no-store out")
    if len(request.backends) > 1 or len(request.dtypes) > 1 or len(request.bindings) > 1:
        raise UsageError("one backend, binding and type is tuned at a time: give one of each")
    if checked.benchmark.sizes is None:
        raise UsageError(f"{checked.benchmark.name} has no message size: tune a collective, as allreduce")
    joined = joined_environment(os.environ)
    if joined is not None and not in_process(request.backends):
        raise UsageError(f"{joined.launcher} has started this process, but a tuning starts ranks itself: leave it out")
    return checked.changed(format=SILENT, launches=1, ranks=request.ranks or DEFAULT_RANKS, part=None, validate=False)


def _one_launch(checked: CheckedRequest) -> LaunchPlan:
    (plan,) = plan_all([checked])
    sizes = [cell.size for cell in plan.cells]
    if len(set(sizes)) != len(sizes):
        raise UsageError("each size is tuned once: leave out what measures a size several times, as -V")
    return plan


def _begin(
    request: TuneRequest, checked: Sequence[CheckedRequest], plans: Sequence[LaunchPlan], store: Path
) -> tuple[Stored, Run]:
    """Declare a new tuning, or find the one to resume; its stored launches, and its run."""
    declared: dict[str, Any] = {
        "settings": [[one.name, list(map(list, one.variables))] for one in request.settings],
        "design": json.loads(json.dumps({k: v for k, v in asdict(request.design).items() if k != "seed"})),
        "cells": digest([[asdict(cell) for cell in plan.cells] + [plan.ranks] for plan in plans]),
    }
    earlier = unfinished(store, request.resume, ENDING, "tuning") if request.resume else None
    first = checked[0].request
    if earlier is None:
        run = new_run(first, list(plans))
        design = {**declared, "seed": run.seed, "failed": {}}
        declare(store, run.run_id, design, ENDING)
        return Stored(design), run
    run_id, design = earlier
    check_same(run_id, design, declared)
    stored = stored_rows(store, run_id, design)
    run = new_run(replace(first, seed=int(design["seed"])), list(plans), run_id)
    run.note(f"run {run_id} is resumed: {sum(map(len, stored.launches.values()))} launches are in the store")
    return stored, run


def _trial(launcher: Launcher, one: Searching) -> None:
    """Launch the library as it is once: what fails here is no candidate's fault."""
    launcher(one.checked, one.plan, DEFAULT, TRIAL, one.search.sizes[:1])


def _proved(request: TuneRequest, searching: Sequence[Searching], launcher: Launcher, store: Path) -> Proof:
    """Prove what was found, if the budget has the time of the proof's first round."""
    if not any(one.segments() for one in searching):
        return Proof()
    missing = 2 * PAIRS * launcher.mean_s - max(0.0, launcher.left_s)
    if missing > 0:
        return Proof(missing_s=missing)
    if request.library is not None:
        table = proposal(searching, launcher, request.command)
        files = unproven_files(table, request.library, request.folder)
        if files.variables:
            return prove_files(searching, files, launcher.run, store)
    return prove_settings(searching, launcher.run, store)


def _kept(store: Path, run: Run) -> str:
    return f"What was measured is kept in {store}, run {run.run_id}; --resume={run.run_id} measures the rest"
