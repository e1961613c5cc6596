"""A comparison that measures: it plans both sides, launches them in turn, judges, stores and reports."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

from omb_py.backends.registry import in_process
from omb_py.errors import EnvironmentProblem, Interrupted, NotStored, OmbError, UsageError
from omb_py.options.request import SILENT, Request
from omb_py.orchestrate.compare.interleaving import CompareDesign, conduct
from omb_py.orchestrate.compare.measurer import ResumableMeasurer
from omb_py.orchestrate.compare.pilot import USUAL, BudgetTooShort
from omb_py.orchestrate.compare.same_work import shared_work
from omb_py.orchestrate.compare.stored_pairs import declared_design, keep_plan, planned_before, stored_pairs
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.launching.machine_state import machine_facts, say_what_disturbs
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.interrupts import resumable
from omb_py.orchestrate.running.lost_nodes import NodesLeft, NodesLost, all_hosts, go_on, start_on_nodes
from omb_py.orchestrate.running.resume import (
    LOST,
    declare_design,
    find_unfinished,
    forget_design,
    lost_before,
    note_new,
)
from omb_py.orchestrate.running.run import new_run
from omb_py.orchestrate.running.suite_run import check_no_launcher, run_apart
from omb_py.printing.printers import Kept
from omb_py.results.compare.interleaved import can_show
from omb_py.results.compare.judge import CompareRules, Launched
from omb_py.results.compare.match import PILOT_ROUND, SIDES, Side, from_row
from omb_py.results.compare.report import AA, COMPARE, CompareReport, report_of
from omb_py.results.compare.select_launches import SideLaunches
from omb_py.results.compare.tags import COMPARE_WORK
from omb_py.results.repro_command import storing
from omb_py.results.skip import Skip
from omb_py.results.store.keys import digest
from omb_py.results.units import counted

DEFAULT_LAUNCHES = USUAL
"""Launches of each side in each round. Where launches spread by 2 %, ten show a change of about 5 %."""
FEWEST = 2
NEEDS_STORE = "a comparison stores its launches, so that it can be looked at again: leave --no-store out"


def check_launches(launches: int) -> None:
    """Raises UsageError for fewer launches of each side than a comparison needs."""
    if launches < FEWEST:
        raise UsageError(
            f"--launches {launches}: compare needs {FEWEST} or more launches of each side: --launches "
            f"{DEFAULT_LAUNCHES}"
        )


@dataclass(frozen=True, slots=True)
class SideRun:
    """One side of a comparison that measures."""

    side: Side
    checked: tuple[CheckedRequest, ...]
    """One request for a benchmark, several for a suite; the first one gives the options of the whole run."""
    where: RankEnvironment
    words: str

    @property
    def requests(self) -> tuple[Request, ...]:
        return tuple(checked.request for checked in self.checked)

    def __str__(self) -> str:
        return f"{self.side} ({self.words})" if self.words else self.side


class Measurer(ResumableMeasurer):
    """Makes the launches of :func:`omb_py.orchestrate.compare.interleaving.conduct` with real or simulated ranks."""

    def __init__(
        self,
        sides: Mapping[Side, SideRun],
        plans: Mapping[Side, Sequence[LaunchPlan]],
        main: Run,
        rules: CompareRules,
        work: str,
        keep_plan: Callable[[CompareDesign], None],
    ) -> None:
        """`work` is what both sides do, where the comparison is about their workloads."""
        super().__init__(main.run_id, rules, main.note, keep_plan)
        self.sides, self.main, self.work = sides, main, work
        self.current = ""
        """The side whose launch is made."""
        self.lost: dict[int, Skip] = {}
        """Sweeps of a suite that failed on a side: from then on neither side measures them."""
        groups = plans["BASE"]
        self.groups: list[list[int]] = []
        self._at: dict[int, tuple[int, int]] = {}
        """Cell -> (its group, its place in the plan of the group)."""
        for number, plan in enumerate(groups):
            first = len(self._at)
            self.groups.append(list(range(first, first + len(plan.cells))))
            self._at.update({first + k: (number, k) for k in range(len(plan.cells))})
        self._plans = plans

    @property
    def base_plans(self) -> Sequence[LaunchPlan]:
        """The launches of BASE; those of NEW have as many ranks."""
        return self._plans["BASE"]

    def begins(self, design: CompareDesign, number: int, cells: Sequence[int]) -> None:
        """Say what a round measures, and tell the progress its launches."""
        super().begins(design, number, cells)
        wanted = set(cells)
        counts = [len(wanted.intersection(group)) for group in self.groups]
        self.main.command.progress.plan([count for count in counts if count] * 2 * design.launches)

    def __call__(self, side: Side, cells: Sequence[int], number: int, pair: int) -> dict[int, Launched]:
        """Make one launch of one side; if a sweep of a suite fails, launch the others again without it."""
        self.current = str(self.sides[side])
        whole = self._plans[side][self._at[cells[0]][0]]
        known = self.stored.take(side, number, pair, [(cell, whole.cells[self._at[cell][1]]) for cell in cells])
        self.rows[side] += known.values()
        results = {cell: result for cell, row in known.items() if (result := from_row(row)) is not None}
        waiting = [[cell for cell in cells if cell not in known]]
        while waiting:
            left = [cell for cell in waiting.pop() if self._sweep(whole, cell) not in self.lost]
            if not left:
                continue
            plan = replace(whole, cells=tuple(whole.cells[self._at[cell][1]] for cell in left), index=self.index)
            self.index += 1
            run, kept = self._run(side, number, pair)
            try:
                with simulated_in(self.sides[side].where, plan.backend):
                    start_on_nodes(run, plan)
            except (Interrupted, NodesLost, NotStored):
                raise
            except OmbError as error:
                waiting += self._give_up_sweep(side, error, whole, left, run.finished.get(plan.index))
            finally:
                self.main.files += run.files
                self._keep(side, number, run, kept)
            # rows come in the order of the plan; a cell whose bytes were wrong ends its sweep, so some may be missing
            done = sorted(run.finished.get(plan.index, ()))
            launched = {left[place]: from_row(row) for place, row in zip(done, kept.rows, strict=True)}
            results |= {cell: result for cell, result in launched.items() if result is not None}
        return results

    def _sweep(self, plan: LaunchPlan, cell: int) -> int:
        return plan.cells[self._at[cell][1]].sweep

    def _run(self, side: Side, number: int, pair: int) -> tuple[Run, Kept]:
        spec = self.sides[side]
        request = spec.requests[0]
        of_work = {COMPARE_WORK: self.work} if self.work else {}
        tags = {**request.tags, **self.tags(side, number, pair), **of_work}
        run, kept = run_apart(self.main, request.changed(tags=tags), spec.where)
        run.later = self.main.later
        return run, kept

    def _give_up_sweep(
        self, side: Side, error: OmbError, plan: LaunchPlan, cells: Sequence[int], done: set[int] | None
    ) -> list[list[int]]:
        """Give up the sweep that failed; return the cells still to be measured, one list for each launch.

        Raises the error where nothing is left to compare, or where the ranks cannot be started at all.
        """
        left = [cell for place, cell in enumerate(cells) if place not in (done or ())]
        sweeps = list(dict.fromkeys(self._sweep(plan, cell) for cell in left))
        if done is None and len(sweeps) > 1:
            if not isinstance(error, UsageError):
                raise error
            # refused before it began, for example for lack of memory: launching each sweep alone shows which one it is
            return [[cell for cell in left if self._sweep(plan, cell) == sweep] for sweep in reversed(sweeps)]
        every = {cell.sweep for group in self._plans["BASE"] for cell in group.cells}
        if not every - set(self.lost) - set(sweeps[:1]):
            raise error
        benchmark = self.sides[side].requests[sweeps[0]].benchmark
        self.lost[sweeps[0]] = Skip(f"{benchmark} on {side}", str(error), failed=True)
        return [left]

    def _keep(self, side: Side, number: int, run: Run, kept: Kept) -> None:
        from omb_py.results.store.read import read_provenance

        if number != PILOT_ROUND:
            self.rows[side] += kept.rows
        if kept.rows and run.files and not self.provenances[side]:
            self.provenances[side].append(read_provenance(run.files[-1]))

    def launches(self, side: Side) -> SideLaunches:
        return SideLaunches(str(self.sides[side].words or self.main.run_id), self.rows[side], self.provenances[side])


@contextlib.contextmanager
def simulated_in(where: RankEnvironment, backend: str) -> Iterator[None]:
    """Set the variables of a side for a launch of simulated ranks, which run in this process; none for other ranks."""
    if not in_process([backend]) or not where.variables:
        yield
        return
    before = dict(os.environ)
    try:
        for name, value in where.variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def compare(
    sides: Mapping[Side, SideRun],
    rules: CompareRules,
    launches: int,
    kind: str = COMPARE,
    resume: str | None = None,
    budget_s: float | None = None,
) -> CompareReport:
    """Compare as :func:`compare_once`; where a node is lost, again as a new run on those that are left.

    Pairs on fewer nodes are not those of before, so none of the earlier launches counts; they stay in the store.

    Raises:
        OmbError: as :func:`compare_once`; LaunchFailed also where nodes are lost and the others cannot be compared.
    """
    request = sides["BASE"].requests[0]
    lost = lost_before(request.store, resume) if request.store else {}
    nodes, began, tries = NodesLeft(all_hosts(request), lost), time.monotonic(), count()

    def measure() -> CompareReport:
        first = next(tries) == 0
        left_s = budget_s if budget_s is None or first else max(0.0, budget_s - (time.monotonic() - began))
        return compare_once(sides, rules, launches, kind, resume if first else None, budget_s=left_s, nodes=nodes)

    return go_on(nodes, measure)


def compare_once(
    sides: Mapping[Side, SideRun],
    rules: CompareRules,
    launches: int,
    kind: str = COMPARE,
    resume: str | None = None,
    run_id: str | None = None,
    budget_s: float | None = None,
    nodes: NodesLeft | None = None,
) -> CompareReport:
    """Measure both sides in turn and judge them; every launch is stored, under one run.

    Args:
        rules: rules of the verdicts, declared before the first launch.
        resume: id of the interrupted comparison to resume, the beginning of one, or ``last`` for the newest, if
            there is one; None: a new comparison.
        run_id: id of a new comparison that is part of something larger; None: one is made.
        budget_s: time for all launches, which then chooses them; None: `launches` of each side in each round.
        nodes: those that are left; None: all.

    Raises:
        NodesLost: a node does not answer any more.
        UsageError: the two sides do not measure the same list of cells or can never be compared, there are too few
            launches, the time is too short for a change to be shown, or the comparison to resume had another design.
        EnvironmentProblem: a side is broken. What was measured is kept; the message names the side and the run.
        Interrupted: the same.
    """
    check_launches(launches)
    nodes = nodes or NodesLeft(all_hosts(sides["BASE"].requests[0]))
    measurer, design, store = _begin(sides, CompareDesign(rules, launches, 0, budget_s), kind, resume, run_id, nodes)
    run = measurer.main
    machine = None if in_process(plan.backend for plan in measurer.base_plans) else say_what_disturbs(run.note)
    if budget_s is None and not can_show(launches, rules.alpha, rules.rounds):
        fewest = next(n for n in range(launches, 100) if can_show(n, rules.alpha, rules.rounds))
        plural = "round" if rules.rounds == 1 else "rounds"
        run.note(
            f"{launches} launches of each side in {rules.rounds} {plural} cannot show a change, only that nothing has "
            f"changed: --launches {fewest} can"
        )
    try:
        with resumable(lambda: _say_kept(measurer), run, resumes=lambda: True):
            conduct(measurer.groups, design, measurer, measurer)
    except Interrupted:
        raise
    except (BudgetTooShort, NodesLost):
        forget_design(store, run.run_id)
        raise
    except OmbError as error:
        run.ended_early("failed")
        side = "" if isinstance(error, NotStored) else f"side {measurer.current} is broken: "
        text = f"{side}{error}. {_say_kept(measurer)}"
        raise EnvironmentProblem(text).of_run(run.run_id) from None
    report = report_of(measurer.launches("BASE"), measurer.launches("NEW"), measurer.rules, kind)
    report.run_id, report.seed = run.run_id, run.seed
    report.failed = [f"{skip.what}: {skip.reason}" for skip in measurer.lost.values()]
    report.repeated, report.lost = list(run.command.repeated), dict(nodes.lost)
    if machine is not None:
        ranks = max(plan.ranks for plan in measurer.base_plans)
        report.machine = machine_facts(machine, run.command.other_cores, ranks)
    forget_design(store, run.run_id)
    run.note(f"stored as run {run.run_id}: {storing(f'omb-py compare {run.run_id}', store)} shows it again")
    return report


def _begin(
    sides: Mapping[Side, SideRun],
    design: CompareDesign,
    kind: str,
    resume: str | None,
    run_id: str | None,
    nodes: NodesLeft,
) -> tuple[Measurer, CompareDesign, Path]:
    """Declare a new comparison, or find the one to resume; what makes its launches, its design and its store."""
    ready = {side: _move_to_nodes(nodes, _check_side(spec)) for side, spec in sides.items()}
    plans = {side: plan_launches(spec.checked) for side, spec in ready.items()}
    _check_same_cells(plans)
    work = shared_work(plans)
    request = ready["BASE"].requests[0]
    assert request.store is not None  # _comparable has refused others
    store = request.store
    declared = _declare(ready, plans, design, kind)
    earlier = find_unfinished(store, resume, declared) if resume else None
    if earlier is not None:
        request = request.changed(seed=int(earlier[1]["seed"]))
        design = planned_before(design, earlier[1])
    run = new_run(request, plans["BASE"], earlier[0] if earlier else run_id, needs_store=True)
    note_new(run.note, resume, earlier, "interrupted comparison", store)
    design = replace(design, seed=run.seed)
    declared |= {LOST: dict(nodes.lost)} if nodes.lost else {}
    keep = partial(keep_plan, store, run.run_id, declared)
    measurer = Measurer(ready, plans, run, design.rules, work, keep)
    if earlier is None:
        declare_design(store, run.run_id, {**declared, "seed": run.seed})
    else:
        measurer.resume(stored_pairs(store, run.run_id))
    return measurer, design, store


def _declare(
    sides: Mapping[Side, SideRun], plans: Mapping[Side, Sequence[LaunchPlan]], design: CompareDesign, kind: str
) -> dict[str, object]:
    """Return what a resumed comparison must share with its beginning, as plain data."""
    cells = {side: [[asdict(cell) for cell in plan.cells] for plan in plans[side]] for side in SIDES}
    ranks = {side: [plan.ranks for plan in plans[side]] for side in SIDES}
    hosts = sides["BASE"].requests[0].launching.hosts
    return {
        "kind": kind,
        **({"hosts": list(hosts)} if hosts else {}),
        **declared_design(design),
        "sides": {side: spec.words for side, spec in sides.items()},
        "cells": digest([cells, ranks]),
    }


def against_itself(
    checked: Sequence[CheckedRequest],
    rules: CompareRules,
    launches: int,
    resume: str | None = None,
    budget_s: float | None = None,
) -> CompareReport:
    """Compare a library with itself (A against A) to measure the false alarms. Raises as :func:`compare`."""
    sides = {side: SideRun(side, tuple(checked), RankEnvironment(), "") for side in SIDES}
    return compare(sides, rules, launches, AA, resume, budget_s)


def _move_to_nodes(nodes: NodesLeft, spec: SideRun) -> SideRun:
    return replace(spec, checked=tuple(nodes.without(each) for each in spec.checked))


def _check_side(spec: SideRun) -> SideRun:
    return replace(spec, checked=tuple(_comparable(spec, checked) for checked in spec.checked))


def _comparable(spec: SideRun, checked: CheckedRequest) -> CheckedRequest:
    request = checked.request
    if request.store is None:
        raise UsageError(NEEDS_STORE)
    if request.repetition.soaks:
        raise UsageError(
            "--repeat-for measures many times in one launch, and one launch is one number: use --launches N"
        )
    simulated = ", ".join(request.backends) if in_process(request.backends) else ""
    check_no_launcher(request.backends, "a comparison starts ranks itself: leave it out")
    asked = spec.where.facts.get("config", {})
    if simulated and (asked.get("env") or asked.get("pip") or asked.get("modules")):
        raise UsageError(
            f"{spec}: {simulated} simulates in this process, so --env, --pip and --module change nothing: "
            f"--option {spec.side}:{simulated}=alpha=2us makes sides that differ"
        )
    # no part of a suite: its tags serve --resume, which a comparison does not have
    return checked.on_ranks(request.ranks).changed(format=SILENT, launches=1, part=None)


def _check_same_cells(plans: Mapping[Side, Sequence[LaunchPlan]]) -> None:
    """Raises UsageError when the sides cannot be measured cell by cell."""
    shapes = {side: [[(c.benchmark, c.size) for c in plan.cells] for plan in plans[side]] for side in SIDES}
    if shapes["BASE"] == shapes["NEW"]:
        return
    counts = " and ".join(f"{side} {sum(map(len, shapes[side]))}" for side in SIDES)
    raise UsageError(
        f"the sides do not measure the same list of cells ({counts}): --option may change how a cell is measured, not "
        "which there are: give -m and -T without a side"
    )


def _say_kept(measurer: Measurer) -> str:
    counts = {side: len({row["launch_id"] for row in measurer.rows[side]}) for side in SIDES}
    done = " and ".join(f"{counted(count, 'launch')} of {side}" for side, count in counts.items())
    store = measurer.sides["BASE"].requests[0].store
    run_id = measurer.main.run_id
    judge = f", {storing(f'omb-py compare {run_id}', store)} judges them"
    so_far = judge if min(counts.values()) >= FEWEST else ""
    return f"What was measured is kept in {store}, run {run_id}: {done}{so_far}; --resume={run_id} measures the rest"
