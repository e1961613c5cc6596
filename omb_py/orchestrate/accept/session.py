"""Accept a machine by a suite's criteria: check correctness, then launch until every criterion is decided.

No launch is left out of a verdict, and none is repeated because it was slow: a MARGINAL criterion gets as many launches
again, up to the suite's maximum, and all of them count (docs/accept.md).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from omb_py.backends.registry import capabilities, in_process
from omb_py.errors import EnvironmentProblem, OmbError, UsageError
from omb_py.launchers.registry import batch_around
from omb_py.options.request import SILENT, Request
from omb_py.orchestrate.accept.background_job import other_job
from omb_py.orchestrate.accept.contract_file import Contract, read_contract
from omb_py.orchestrate.accept.criteria_file import Accepting, read_accepting, read_criteria
from omb_py.orchestrate.accept.criterion_cells import (
    baseline_rows,
    cases_of,
    check_baseline,
    key_of,
    missing_cell,
    needed,
    planned,
    why_missing,
    with_mock_ups,
)
from omb_py.orchestrate.accept.launches import AcceptLaunches, Seen
from omb_py.orchestrate.accept.progress_log import Begun, ProgressLog, Step, log_of, read_log
from omb_py.orchestrate.launching.machine_state import machine_facts, say_what_disturbs
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import now
from omb_py.orchestrate.running.interrupts import kept_text, resumable
from omb_py.orchestrate.running.lost_nodes import all_hosts, ranks_on
from omb_py.orchestrate.running.resume import cell_key, note_new
from omb_py.orchestrate.running.resume import key_of as key_of_row
from omb_py.orchestrate.running.run import new_run
from omb_py.orchestrate.running.suite_run import check_no_launcher, ranks_here
from omb_py.orchestrate.suites.expand import Expanded, expand
from omb_py.orchestrate.suites.option_values import Values, Vocabulary
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.results.accept.criteria import Criterion
from omb_py.results.accept.judge import (
    CaseVerdict,
    Evidence,
    close,
    correlation_of,
    gains_by_launches,
    has_baseline,
    incomparable,
    judge,
)
from omb_py.results.accept.outcomes import AcceptOutcome, earlier_acceptances
from omb_py.results.accept.report import AcceptReport, failures, headline
from omb_py.results.compare.report import fields_text
from omb_py.results.compare.tags import BESIDE, PERFORMANCE
from omb_py.results.repro_command import storing
from omb_py.results.skip import Skip, most_reasons
from omb_py.results.statistics.dependence import UNKNOWN
from omb_py.results.statistics.order_statistics import fewest_launches, stays_of
from omb_py.results.store.keys import digest
from omb_py.results.store.row import Row
from omb_py.results.units import counted, listed, share_text

Job = Callable[[Sequence[str], float], AbstractContextManager[Callable[[], str]]]


@dataclass(frozen=True, slots=True)
class AcceptRequest:
    """Options of an acceptance apart from the suite."""

    words: Vocabulary
    values: Values = field(default_factory=dict)
    """Options by key, as in :func:`omb_py.orchestrate.suites.expand.expand`."""
    ranks: int | None = None
    contract: Path | None = None
    """File with what was promised."""
    baseline: str | None = None
    """Side of :func:`omb_py.results.compare.select_launches.read_side`; None: the suite's."""
    correctness: bool = True
    """True: check every byte before anything is timed."""
    quiet: bool = False
    command: str = ""
    """Command line that repeats the acceptance, for the report."""
    resume: str | None = None
    """Id of the run to resume, the beginning of one, or ``last``."""
    job: Job = other_job
    """Starter of the background job of an interference test."""


def accept(suite: Suite, request: AcceptRequest, store: Path) -> AcceptReport:
    """Measure a suite and judge its criteria; every launch is stored, under one run.

    Args:
        suite: a suite with at least one ``[[criterion]]``.
        store: folder of the launches, and of the baseline unless that is a folder itself.

    Returns:
        All verdicts. A criterion that could not be measured is an ERROR.

    Raises:
        CannotDecide: the baseline is one night.
        UsageError: the suite is wrong, no entry measures what a criterion needs, there is no such baseline, nothing of
            it is comparable, or there is no such run to resume.
        EnvironmentProblem: nothing can be measured here, nodes are missing and the suite does not allow it, or results
            cannot be stored.
        Interrupted: the user pressed Ctrl-C; what was finished is stored.
    """
    return _Acceptance(suite, request, store).verdicts()


def check_criteria(suite: Suite) -> tuple[Accepting, list[Criterion]]:
    """Read a suite's rule and criteria. Raises UsageError if one is wrong, or if there is no criterion."""
    how, criteria = _read_declared(suite)
    if not criteria:
        raise UsageError(
            f"{suite.file}: no [[criterion]], so nothing can be accepted: omb-py run {suite.word} measures it"
        )
    return how, criteria


def check_suite(suite: Suite, expanded: Expanded) -> int:
    """Check a suite's criteria against its plan, and return their number. Raises UsageError as :func:`accept`."""
    _, criteria = _read_declared(suite)
    if expanded.checked:
        checked, skips = with_mock_ups(expanded.checked, criteria)
        cases_of(criteria, planned(plan_launches(checked)), [*expanded.skips, *skips])
    return len(criteria)


def _read_declared(suite: Suite) -> tuple[Accepting, list[Criterion]]:
    how, criteria = read_accepting(suite), read_criteria(suite)
    _check_rule(how, criteria, suite)
    return how, criteria


class _Acceptance:
    def __init__(self, suite: Suite, asked: AcceptRequest, store: Path) -> None:
        self.suite, self.asked, self.store = suite, asked, store
        self.how, criteria = check_criteria(suite)
        self.contract = read_contract(asked.contract, suite, criteria) if asked.contract else Contract()
        self.criteria = self.contract.bounded(criteria)
        self.skips: list[Skip] = []
        self.evidence = Evidence()
        self.log = ProgressLog()
        self.all_hosts: tuple[str, ...] = ()
        self.turn = 0
        """Number of the next turn; it goes on where launches begin again on fewer nodes."""

    def verdicts(self) -> AcceptReport:
        began = time.monotonic()
        requests = self._requests()
        check_no_launcher(
            (backend for checked in requests for backend in checked.request.backends),
            "omb-py accept starts ranks itself, launch after launch: leave it out",
        )
        first = requests[0].request
        run_id = self._read_log(first)
        self._read_baseline(run_id)
        begun = self._describe_begin(first)
        if run_id and self.log.begun:
            self.log.begun.check(begun, run_id)
        self.run = new_run(first, plan_launches(requests), run_id, needs_store=True)
        note_new(self.run.note, self.asked.resume, run_id, f"interrupted acceptance of {self.suite.name}", self.store)
        started = self.log.started_at or now()
        rule, store = self.how.rule, str(self.store)
        out = AcceptReport(
            self.suite.name, self.suite.description, self.suite.digest, rule, self.run.run_id, store, started
        )
        if self.asked.contract or any(entry.layout for entry in self.suite.entries):
            out.contract = self.contract.sentence()
        out.simulated = any(in_process(r.request.backends) for r in requests)
        self.independent = all(_knows_no_other(r.request) for r in requests)
        if self.log.started_at:
            launches = len({row["launch_id"] for rows in self.log.rows.values() for row in rows})
            past = f"judged at {self.log.done}; judged again" if self.log.done else "interrupted; resumed"
            out.deviations.append(f"{past} at {now()}, after {counted(launches, 'launch')}")
            self.run.note(f"run {self.run.run_id} goes on: {counted(launches, 'launch')} in the store")
        simulated = all(in_process(r.request.backends) for r in requests)
        machine = None if simulated else say_what_disturbs(self.run.note)
        self.log.path = log_of(self.store, self.run.run_id)
        if self.log.begun is None:
            self.log.begin(begun)
        self.launches = AcceptLaunches(self.run, self.log, self.evidence.missing, self.skips)
        self._plan(requests := self._leave_out_missing_nodes(requests, out))
        with resumable(self._say_kept, self.run, resumes=lambda: self.launches.measured):
            out.verdicts = self._measure_and_judge(requests, out)
        seen, here, before = self.launches.seen, self.launches.here, Seen()
        before.take(row for rows in self.log.rows.values() for row in rows)
        for word, early, late in (("on", before.hosts, here.hosts), ("with", before.libraries, here.libraries)):
            if early and not late.keys() <= early.keys():
                moved = f"{word} {', '.join(sorted(early))}, then {word} {', '.join(sorted(late))}"
                out.deviations.append(f"before it was cut off it ran {moved}")
        out.incidents += dict.fromkeys(self.skips)
        out.missing_nodes |= self.launches.gone
        out.late_ranks = self.launches.last.lines()
        out.hosts, out.libraries = list(seen.hosts), list(seen.libraries)
        self._name_job(out)
        out.launches, out.command = len(seen.launches), self.asked.command
        present = [path for path in map(Path, seen.files) if path.is_file()]  # others were merged or moved meanwhile
        out.files = [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in present]
        out.baseline = self.evidence.baseline_word
        out.beside = " ".join(self.how.background_job) if any(c.source == "interference" for c in self.criteria) else ""
        out.seconds = time.monotonic() - began
        out.bounds = digest([asdict(rule), *(c.bound_facts() for c in self.criteria)])[:12]
        out.earlier = earlier_acceptances(self.store, self.suite.name, out.hosts, self.run.run_id)
        self.log.finish(_outcome(out))
        if machine is not None:
            ranks = max(plan.ranks for plan in self.launches.plans)
            out.machine = machine_facts(machine, self.run.command.other_cores, ranks)
        out.incidents += [Skip("launch", text) for text in self.run.command.repeated]
        if seen.launches:
            shown = storing(f"omb-py results show {self.run.run_id}", self.store)
            self.run.note(f"stored as run {self.run.run_id}: {shown}")
        return out

    def _say_kept(self) -> str:
        return kept_text(self.run, self.launches.measured, resumes=True)

    def _plan(self, requests: Sequence[CheckedRequest]) -> None:
        """Plan the launches and what they decide. Raises UsageError where no entry measures what a criterion needs."""
        if requests:
            self.run.request = self.run.request.changed(hosts=requests[0].request.launching.hosts)
        self.launches.plan(plan_launches(requests), self.skips)
        self.cells = planned(self.launches.plans)
        self.cases = cases_of(self.criteria, self.cells, self.skips)
        self.contract.check_sizes(self.cases)
        check_baseline(self.cases, self.evidence.baseline, self.evidence.baseline_word, self.suite.word, self.store)
        for case in self.cases:
            if case.cell == missing_cell(case.criterion):
                self.evidence.missing[case.cell] = why_missing(case.criterion, self.skips)

    def _measure_and_judge(self, requests: Sequence[CheckedRequest] | None, out: AcceptReport) -> list[CaseVerdict]:
        """Check and judge; again on the nodes that are left after one was lost, where the suite allows that."""
        verdicts: list[CaseVerdict] = []
        self._take_earlier_turns()
        while requests:
            if self.asked.correctness:
                out.checked = self.launches.check_bytes(requests, self.turn)
                self._check_nodes()
            verdicts = self._judge(out)
            requests = self._plan_on_the_rest(out)
        return verdicts

    def _take_earlier_turns(self) -> None:
        """Where a run is resumed that had lost nodes: cells whose ranks lie where they lay keep what was measured."""
        for turn in range(self.turn):
            plans = [replace(plan, turn=turn) for plan in self.launches.plans if plan.hosts]
            for plan, cell in [(own, cell) for own in plans for cell in own.cells]:
                for phase in (PERFORMANCE, BESIDE):
                    if (phase, turn) in self.log.ended and (phase, turn) not in self.log.spoiled:
                        for row in self.log.stored_rows((phase, turn), cell_key(plan, cell)):
                            self.evidence.add(key_of(plan, cell), turn, row, phase == BESIDE)

    def _plan_on_the_rest(self, out: AcceptReport) -> list[CheckedRequest] | None:
        """Plan again without nodes that were lost; None where none was, all are needed, or nothing is left to do.

        Cells whose ranks lie where they lay keep what was measured.
        """
        gone = dict(self.launches.gone)
        if not gone or not self.how.allow_missing_nodes:
            return None
        hosts = all_hosts(self.launches.plans[0].requests[0])
        left, failed = tuple(host for host in hosts if host not in gone), [s for s in self.skips if s.failed]
        before, names = {planned_cell.key for planned_cell in self.cells}, ", ".join(gone)
        out.missing_nodes |= gone
        try:
            requests = self._requests(hosts=left, n=self._ranks_on(left)) if left else []
            self.log.lose(gone, self.turn)
            self._plan(requests)
        except OmbError as error:
            self.skips += failed
            self.run.note(f"{names} did not answer any more, and the rest cannot go on: {error}")
            return None
        kept = {one.key for one in self.cells if one.plan.hosts and one.key in before}
        for rows in (self.evidence.alone, self.evidence.beside):
            for key in rows.keys() - kept:
                del rows[key]
        text = f"lost, and measured again without {names}"
        out.incidents += [Skip(skip.what, f"{text}: {skip.reason}") for skip in dict.fromkeys(failed)]
        out.deviations.append(f"{names} stopped answering: the rest was measured on {counted(len(left), 'node')}")
        self.run.note(f"{names} did not answer any more: going on without")
        return requests

    def _ranks_on(self, left: Sequence[str]) -> int | None:
        """As many ranks a node as were asked for; None where no number was."""
        return None if self.asked.ranks is None else ranks_on(self.asked.ranks, len(self.all_hosts), len(left))

    # -- before anything is measured -----------------------------------------------------------------------------

    def _describe_begin(self, request: Request) -> Begun:
        runs = sorted({str(row["run_id"]) for row in self.evidence.baseline})
        word = self.evidence.baseline_word
        return Begun(
            request.launching.hosts, request.launching.launcher, request.launching.launcher_args, word, tuple(runs)
        )

    def _read_baseline(self, run_id: str | None) -> None:
        """Read the baseline's rows. Raises UsageError where it is missing, or where no criterion needs one."""
        asking = next((c for c in self.criteria if c.source == "baseline"), None)
        word = self.asked.baseline or self.how.baseline
        if asking is None:
            if self.asked.baseline:
                raise UsageError(f"no criterion of suite {self.suite.name} asks for a baseline: leave --baseline out")
            return
        if word is None:
            night = storing(f"omb-py run {self.suite.word} --launches 8 --tag K=V", self.store)
            raise UsageError(
                f"{asking.at}: criterion {asking.id} needs a baseline: --baseline tag=K=V; it is made on several "
                f"nights with {night}"
            )
        self.evidence.baseline_word = word
        self.evidence.baseline = baseline_rows(word, self.store, run_id, self.log.begun)

    def _read_log(self, request: Request) -> str | None:
        """Read the log of the run to resume; return its id, or None for a new run."""
        assert request.part is not None
        earlier = read_log(self.store, request.part, self.asked.resume) if self.asked.resume else None
        if earlier is None:
            return None
        run_id, self.log = earlier
        return run_id

    def _requests(self, **more: Any) -> list[CheckedRequest]:
        """Return the requests of the suite and of its mock-ups, as they are timed.

        Args:
            more: options that replace those of the command line; `n` is the number of ranks.
        """
        values = {**self.asked.values, "store": self.store, **more}
        ranks, contents = ranks_here(more.pop("n", self.asked.ranks)), self.contract.contents
        expanded = expand(self.suite, self.asked.words, values, ranks, contents)
        self.skips = list(expanded.skips)
        promised = self.contract.promises or {}
        self.criteria = [
            c for c in self.criteria if c.id in promised or c.where.get("entry") not in expanded.without_device
        ]
        if not expanded.checked:
            raise EnvironmentProblem(f"nothing of this suite can be measured here: {most_reasons(self.skips)}")
        requests, skips = with_mock_ups(expanded.checked, self.criteria)
        self.skips += skips
        return [r.changed(format=SILENT, launches=1, graph=None, quiet=self.asked.quiet) for r in requests]

    def _name_job(self, out: AcceptReport) -> None:
        """Note the batch job and the layout of its ranks, and how missing nodes are kept from other jobs."""
        system = None if out.simulated else batch_around(os.environ)
        if system is None:
            return
        layouts = {-(-plan.ranks // max(1, len(plan.hosts or out.hosts))) for plan in self.launches.plans}
        each = " or ".join(map(str, sorted(layouts)))
        out.job = f"{system.job_text(os.environ)}: {counted(len(out.hosts), 'node')}, {each} ranks each"
        if out.missing_nodes:
            out.out_of_service = system.out_of_service(list(out.missing_nodes))

    def _leave_out_missing_nodes(self, requests: list[CheckedRequest], out: AcceptReport) -> list[CheckedRequest]:
        """Return the requests on the nodes that answer. Raises EnvironmentProblem where all are needed."""
        if all(in_process(r.request.backends) for r in requests):
            return requests
        hosts = self.all_hosts = all_hosts(requests[0].request)
        before, self.turn = dict(self.log.lost), self.log.turn
        if before:
            left = tuple(host for host in hosts if host not in before)
            requests = self._requests(hosts=left, n=self._ranks_on(left))
            self.run.note(f"{listed(before)} stays left out, as before: launches that are judged are on one set")
        now = self.launches.silent_nodes(requests[0].request) if len(requests[0].request.launching.hosts) > 1 else {}
        lost = out.missing_nodes = before | now
        if not lost:
            return requests
        alike: dict[str, list[str]] = {}  # ssh says the same of each host: once is enough
        for host, why in lost.items():
            alike.setdefault(why.replace(host, "HOST"), []).append(host)
        named = "; ".join(f"{', '.join(names)}: {lost[names[0]]}" for names in alike.values())
        left = tuple(host for host in hosts if host not in lost)
        if not left or not self.how.allow_missing_nodes:
            raise EnvironmentProblem(
                f"{len(lost)} of {len(hosts)} nodes do not answer: {named}"
                + ("" if not left else ": leave them out of --hosts, or let the suite allow-missing-nodes")
            )
        out.deviations.append(f"{len(left)} of {len(hosts)} nodes take part")
        if now:
            self.turn = self.log.next_turn
            self.log.lose(now, self.turn)
        return self._requests(hosts=left, n=self._ranks_on(left))

    def _check_nodes(self) -> None:
        """Raises EnvironmentProblem where the ranks ran on fewer nodes than the suite requires."""
        wanted, seen = self.how.nodes, list(self.launches.seen.hosts)
        if wanted is None or not seen or len(seen) >= wanted or self.how.allow_missing_nodes:
            return
        raise EnvironmentProblem(
            f"the suite asks for {wanted} nodes, and the ranks ran on {len(seen)} ({', '.join(seen)}): give more with "
            "--hosts or the batch system and -n, or let the suite allow-missing-nodes"
        )

    def _judge(self, out: AcceptReport) -> list[CaseVerdict]:
        """Make launches, round after round, until every case is decided."""
        rule = self.how.rule
        verdicts: dict[int, CaseVerdict] = {}
        left, first = list(range(len(self.cases))), self.turn
        for number in range(1, rule.rounds + 1):
            cases = [self.cases[k] for k in left]
            launches = min(rule.launches, rule.most - (self.turn - first))
            self.run.note(
                f"round {number} of up to {rule.rounds}: {counted(len(cases), 'verdict')} open, "
                f"{counted(launches, 'more launch')}"
            )
            wanted = needed(cases) if number > 1 else {planned_cell.key for planned_cell in self.cells}
            disturbed = needed(c for c in cases if c.criterion.source == "interference")
            counts = [
                len(plan.cells) for keys in (wanted, disturbed) for plan in self.launches.of_turn(self.turn, keys)
            ]
            self.run.command.progress.plan(counts * launches)
            for _ in range(launches):
                self._turn(self.turn, number, wanted, disturbed)
                self.turn += 1
            if number == 1:
                self._check_nodes()
                self._check_comparable()
            out.correlation = 0.0 if self.independent else correlation_of(self.cases, self.evidence)
            for k in left:
                before = verdicts.get(k)
                verdicts[k] = judge(self.cases[k], self.evidence, rule, len(self.cases), before, out.correlation)
            left = [
                k for k in left if gains_by_launches(verdicts[k]) and self.cases[k].cell not in self.launches.given_up
            ]
            if not left:
                break
        if self.how.nodes and len(self.launches.seen.hosts) < self.how.nodes:
            out.deviations.append(f"{len(self.launches.seen.hosts)} of {self.how.nodes} nodes took part")
        return [close(verdicts[k], rule) for k in range(len(self.cases))]

    def _turn(self, turn: int, number: int, wanted: set[str], disturbed: set[str]) -> None:
        """Launch every group once alone and, for interference tests, once beside the background job (order A B B A)."""
        steps = [False, True] if turn % 2 == 0 else [True, False]
        for beside in steps:
            plans = self.launches.of_turn(turn, disturbed if beside else wanted)
            if not plans:
                continue
            names = {cell_key(plan, cell): key_of(plan, cell) for plan in plans for cell in plan.cells}
            rows = self._measure_beside(number, plans) if beside else self.launches.make(PERFORMANCE, number, plans)
            for row in rows:
                self.evidence.add(names[key_of_row(row)], turn, row, beside)

    def _measure_beside(self, number: int, plans: Sequence[LaunchPlan]) -> list[Row]:
        step: Step = BESIDE, plans[0].turn
        rows: list[Row] = []
        if step in self.log.ended:
            rows, why = self.launches.make(BESIDE, number, plans), self.log.spoiled.get(step, "")
        else:
            try:
                with self.asked.job(self.how.background_job, self.run.request.launching.timeout) as ended:
                    rows = self.launches.make(BESIDE, number, plans)
                    why = ended()
            except EnvironmentProblem as problem:
                why = str(problem)
            self.log.end(step, why)
        if not why:
            return rows
        # without the background job this was no interference test, so its rows do not count
        self.skips.append(Skip("interference", f"the other job did not run all the time: {why}", failed=True))
        return []

    def _check_comparable(self) -> None:
        """Raises UsageError where no cell at all can be compared with the baseline."""
        asking = [case for case in self.cases if case.criterion.source == "baseline"]
        apart = [pair for case in asking if (pair := incomparable(case, self.evidence)) is not None]
        if not apart or any(has_baseline(case, self.evidence) for case in asking):
            return
        base, new, fields = apart[0]
        raise UsageError(
            f"the baseline {self.evidence.baseline_word} is not comparable with what is measured here: "
            f"{base['benchmark']}: {fields_text(base, new, fields)}: choose another --baseline; what was measured is "
            f"kept in {self.store}, run {self.run.run_id}"
        )


def _outcome(out: AcceptReport) -> AcceptOutcome:
    told = headline(out), failures(out)
    return AcceptOutcome(out.suite, out.bounds, tuple(out.hosts), out.word, *told, done=now())


def _knows_no_other(request: Request) -> bool:
    """Say whether launches are independent: simulated ones are, unless a drift is simulated."""
    return all(
        capabilities(name).simulated and "drift=" not in request.settings.get(name, "") for name in request.backends
    )


def _check_rule(how: Accepting, criteria: Sequence[Criterion], suite: Suite) -> None:
    """Raises UsageError where a criterion can never be decided."""
    counted_ones = next((c for c in criteria if c.source not in ("drift", "baseline")), None)
    fewest = fewest_launches(1 - how.rule.confidence, stays_of(UNKNOWN))
    if counted_ones and how.rule.most < fewest:
        raise UsageError(
            f"{counted_ones.at}: criterion {counted_ones.id} needs most-launches = {fewest} or more under [accept]: "
            f"{counted(how.rule.most, 'launch')} cannot show at {share_text(how.rule.confidence)} where their median is"
        )
    disturbed = next((c for c in criteria if c.source == "interference"), None)
    if disturbed and not how.background_job:
        raise UsageError(
            f"{disturbed.at}: criterion {disturbed.id} needs another job: "
            'write background-job = "alltoall -n 2 -m 1M:1M" under [accept]'
        )
    soaked = next((c for c in criteria if c.source == "drift"), None)
    if soaked and not any(
        s.key == "repeat-for" for s in (*suite.defaults, *(o for e in suite.entries for o in e.options))
    ):
        raise UsageError(f'{soaked.at}: criterion {soaked.id} needs passes: write repeat-for = "2h" under [defaults]')
