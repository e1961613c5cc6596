"""A tuning: it searches, writes files, proves them in fresh launches, and reports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.errors import EnvironmentProblem, Interrupted, UsageError
from omb_py.options.request import SILENT
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import InterruptedLaunches, kept_text, resumable
from omb_py.orchestrate.running.lost_nodes import NodesLeft, NodesLost, all_hosts, go_on
from omb_py.orchestrate.running.resume import (
    LOST,
    TUNING,
    declare_design,
    find_unfinished,
    forget_design,
    lost_before,
    note_new,
)
from omb_py.orchestrate.running.run import new_run, say_busy
from omb_py.orchestrate.running.suite_run import check_no_launcher
from omb_py.orchestrate.tune.conclusion import files_of, proposal, report_of, unproven_files, write_files
from omb_py.orchestrate.tune.launches import TRIAL, CandidateFailed, StoredTuning, TuneLauncher, stored_rows
from omb_py.orchestrate.tune.proof import Proof, mended, pairs_of, prove_files, prove_settings
from omb_py.orchestrate.tune.searching import Group, Searching, groups_of, search_all
from omb_py.orchestrate.tune.workload import computes_as_long_as_it_calls, held_compute
from omb_py.results.compare.false_alarm_rate import keep
from omb_py.results.store.keys import digest
from omb_py.results.tune.elimination import SearchDesign
from omb_py.results.tune.report import TuneReport
from omb_py.results.tune.rules import DEFAULT, LibrarySetting

FEW_SIZES = 8
"""So many sizes of a workload's step are all measured."""


@dataclass(frozen=True, slots=True)
class PointCandidates:
    """One point of the grid."""

    checked: CheckedRequest
    settings: tuple[LibrarySetting, ...]


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What is to be tuned."""

    parts: tuple[PointCandidates, ...]
    """One for each point: each number of ranks, operation and kind of buffers."""
    design: SearchDesign
    folder: Path
    library: LibraryKnobs | None = None
    """What can be set in the library; None: it is not known, and there are no files but the table of rules."""
    budget_s: float | None = None
    """Seconds after the first launch, after which no other begins; None: no limit."""
    resume: str | None = None
    """Id of the tuning to resume, the beginning of one, or ``last``; None: a new one."""
    command: str = ""
    guidelines: bool = True
    """Whether guidelines of what has rules are checked, by default and with the files."""
    step: CheckedRequest | None = None
    """The step of the workload whose collectives are tuned, which is compared too; None: no workload."""


def tune(request: TuneRequest, clock: Callable[[], float] = time.monotonic) -> TuneReport:
    """Find the fastest setting of each size, prove it, and write the files that the library reads.

    Where a node is lost, all begins again as a new run on those that are left, within what is left of the budget.

    Args:
        clock: gives seconds, for the budget.

    Raises:
        UsageError: the request cannot be tuned, or is not the one that is resumed.
        EnvironmentProblem: the library as it is cannot be measured. What was measured is kept.
        LaunchFailed: nodes are lost, and the others cannot be tuned.
        Interrupted: the same; the message says how to resume.
    """
    first = request.parts[0].checked.request
    lost = lost_before(first.store, request.resume, TUNING) if first.store else {}
    nodes, began, asked = NodesLeft(all_hosts(first), lost), clock(), [request]

    def measure() -> TuneReport:
        this = asked[-1]
        left_s = None if request.budget_s is None else max(0.0, request.budget_s - (clock() - began))
        asked.append(replace(request, resume=None))
        return _tune_on(_move_to_nodes(nodes, replace(this, budget_s=left_s)), clock, nodes)

    return go_on(nodes, measure)


def _move_to_nodes(nodes: NodesLeft, request: TuneRequest) -> TuneRequest:
    """The request on the nodes that are left. Points whose ranks are as many there are one."""
    parts: dict[str, PointCandidates] = {}
    for part in request.parts:
        moved = nodes.without(part.checked)
        parts.setdefault(repr(moved.request), replace(part, checked=moved))
    step = nodes.without(request.step) if request.step else None
    return replace(request, parts=tuple(parts.values()), step=step)


def _tune_on(request: TuneRequest, clock: Callable[[], float], nodes: NodesLeft) -> TuneReport:
    """Tune on these nodes. Raises as :func:`tune`, and NodesLost where a node does not answer any more."""
    checked = tuple(_tunable(part.checked) for part in request.parts)
    plans = [_plan_one_launch(each) for each in checked]
    store = checked[0].request.store
    assert store is not None  # _tunable has refused others
    stored, run = _begin(request, checked, plans, store, nodes)
    say_busy(run)
    launcher = TuneLauncher(run, stored, clock, stored.next_index, budget_s=request.budget_s)
    searching = [
        Searching.of(each, plan, (DEFAULT, *part.settings), _design(request, run.seed, plan))
        for each, plan, part in zip(checked, plans, request.parts, strict=True)
    ]
    groups = groups_of(searching, called=request.step is not None)
    with resumable(lambda: kept_text(run, True, resumes=True), run, resumes=lambda: True):
        try:
            launcher(searching[0].checked, searching[0].plan, DEFAULT, TRIAL, searching[0].search.sizes[:1])
            step = _step(request.step, launcher)
            search_all(searching, launcher, store)
            groups = _make_sayable(groups, request, launcher)
            proof = _prove(request, groups, step, launcher, store)
        except CandidateFailed as error:
            text = f"the library as it is cannot be tuned: {error}. W{kept_text(run, True, resumes=True)[1:]}"
            raise EnvironmentProblem(text) from None
        except NodesLost:
            forget_design(store, run.run_id, TUNING)
            raise
        for compared in proof.reports:
            keep(compared, store)
        workload = step.request.options.workload or "" if step else ""
        report = report_of(groups, proof, launcher, request.command, workload)
        report.lost = dict(nodes.lost)
        tuned = write_files(report, request.folder, request.library)
        if request.guidelines and tuned is not None:
            sizes = [(cell.point.benchmark, cell.point.ranks, cell.size) for cell in report.proved]
            try:
                report.mended = mended(report.table.rules, sizes, checked[0].request, tuned, launcher)
            except Interrupted as error:
                cause = error.cause if isinstance(error, InterruptedLaunches) else str(error)
                raise Interrupted(f"{cause}, while guidelines were checked") from None
    if not report.marginal:
        forget_design(store, run.run_id, TUNING)
    return report


def _tunable(checked: CheckedRequest) -> CheckedRequest:
    request = checked.request
    if request.store is None:
        raise UsageError("a tuning stores its launches, so that it can be looked at again: leave --no-store out")
    if len(request.backends) > 1 or len(request.dtypes) > 1 or len(request.bindings) > 1:
        raise UsageError("one backend, binding and type is tuned at a time: give one of each")
    if checked.benchmark.sizes is None:
        raise UsageError(
            f"{checked.benchmark.name} has no message size, and rules are for sizes: tune one with, as allreduce"
        )
    check_no_launcher(request.backends, "a tuning starts ranks itself: leave it out")
    return _silent(checked)


def _silent(checked: CheckedRequest) -> CheckedRequest:
    silent = checked.on_ranks(checked.request.ranks).changed(format=SILENT, launches=1, part=None)
    return silent.changed(validate=False) if silent.request.validate else silent


def _design(request: TuneRequest, seed: int, plan: LaunchPlan) -> SearchDesign:
    """The design of a search: of the few sizes that a step calls, all are first sizes."""
    few = request.step is not None and len(plan.cells) <= FEW_SIZES
    return replace(request.design, seed=seed, step=1 if few else request.design.step)


def _plan_one_launch(checked: CheckedRequest) -> LaunchPlan:
    (plan,) = plan_launches([checked])
    sizes = [cell.size for cell in plan.cells]
    if len(set(sizes)) != len(sizes):
        raise UsageError("each size is tuned once: leave out what measures a size several times, as -V")
    return plan


def _begin(
    request: TuneRequest, checked: Sequence[CheckedRequest], plans: Sequence[LaunchPlan], store: Path, nodes: NodesLeft
) -> tuple[StoredTuning, Run]:
    """Declare a new tuning, or find the one to resume; its stored launches, and its run."""
    declared: dict[str, Any] = {
        "settings": [
            [[setting.name, list(map(list, setting.variables))] for setting in part.settings] for part in request.parts
        ],
        "workload": request.step.request.options.workload if request.step else None,
        "design": json.loads(json.dumps({k: v for k, v in asdict(request.design).items() if k != "seed"})),
        "cells": digest([[asdict(cell) for cell in plan.cells] + [plan.ranks] for plan in plans]),
        **({"hosts": list(nodes.left)} if nodes.left else {}),
    }
    earlier = find_unfinished(store, request.resume, declared, TUNING, "tuning") if request.resume else None
    first = checked[0].request
    if earlier is None:
        run = new_run(first, list(plans), needs_store=True)
        note_new(run.note, request.resume, earlier, "interrupted tuning", store)
        design = {**declared, "seed": run.seed, "failed": {}, LOST: dict(nodes.lost)}
        declare_design(store, run.run_id, design, TUNING)
        return StoredTuning(design), run
    run_id, design = earlier
    stored = stored_rows(store, run_id, design)
    run = new_run(replace(first, seed=int(design["seed"])), list(plans), run_id, needs_store=True)
    run.note(f"run {run_id} is resumed: {sum(map(len, stored.launches.values()))} launches are in the store")
    return stored, run


def _step(step: CheckedRequest | None, launcher: TuneLauncher) -> CheckedRequest | None:
    """The step as it will be compared: its computing takes as long on both sides, however long its calls take."""
    if step is None:
        return None
    step = _silent(step)
    (plan,) = plan_launches([step])
    (row,) = launcher.rows_of(step, plan, DEFAULT, TRIAL, [0])
    text = step.request.options.workload or ""
    if not computes_as_long_as_it_calls(text):
        return step
    held = held_compute(text, float(dict(row["metrics"])["compute_us"]))
    launcher.run.note(f"the step of {text} is compared with its computing held: {held}")
    return step.changed(workload=held)


def _make_sayable(groups: Sequence[Group], request: TuneRequest, launcher: TuneLauncher) -> list[Group]:
    """The groups as the library's files can say them: what knows no sizes there gets one setting for all of a step's.

    Of MPI's non-blocking collectives, variables choose the algorithm, for all sizes.
    """
    if request.library is None or request.step is None:
        return list(groups)
    files = files_of(proposal(groups, launcher, request.command), request.library, request.folder)
    unsaid = {(rule.collective, rule.ranks) for rule, _ in files.left_out}
    return [group.with_one_setting() if group.searches[0].point.file_key in unsaid else group for group in groups]


def _prove(
    request: TuneRequest, groups: Sequence[Group], step: CheckedRequest | None, launcher: TuneLauncher, store: Path
) -> Proof:
    """Prove what was found, if the budget has the time of the proof's first round."""
    if not any(group.segments() for group in groups):
        return Proof()
    missing = 2 * pairs_of(groups) * launcher.mean_s - max(0.0, launcher.left_s)
    if missing > 0:
        return Proof(missing_s=missing)
    if request.library is not None:
        table = proposal(groups, launcher, request.command)
        files = unproven_files(table, request.library, request.folder)
        if files.variables:
            return prove_files(groups, step, files, launcher.run, store)
    return prove_settings(groups, step, launcher.run, store)
