"""The launches of an acceptance, step by step: what is stored is not made again, and what is lost is given up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from omb_py.options.request import Request
from omb_py.options.table import takes
from omb_py.orchestrate.accept.criterion_cells import key_of
from omb_py.orchestrate.accept.progress_log import ProgressLog, Step
from omb_py.orchestrate.planning.plan import LaunchPlan, plan_launches
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.lost_nodes import NodesLost
from omb_py.orchestrate.running.node_check import answering
from omb_py.orchestrate.running.resume import cell_key
from omb_py.orchestrate.running.resume import key_of as key_of_row
from omb_py.orchestrate.running.run_notes import LastRanks
from omb_py.orchestrate.running.suite_run import make_launches, run_apart, sweep_name, unmeasured
from omb_py.printing.printers import Kept
from omb_py.results.accept.report import CorrectnessCheck
from omb_py.results.compare.tags import ACCEPT_PHASE, ACCEPT_ROUND, BESIDE, CORRECTNESS, PERFORMANCE
from omb_py.results.skip import Skip
from omb_py.results.store.row import Row

CHECKS = "10"
"""Iterations of a cell in the correctness check."""
NODES = "nodes"


@dataclass(slots=True)
class Seen:
    """Where all rows come from, those of the run that is resumed too; in the order of first sight."""

    hosts: dict[str, None] = field(default_factory=dict)
    libraries: dict[str, None] = field(default_factory=dict)
    launches: dict[str, None] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)

    def take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.hosts |= dict.fromkeys(row.get("hosts") or ())
            library = f"{row.get('library') or row['backend']} {row.get('library_version') or ''}".strip()
            self.libraries[library] = None
            self.launches[str(row["launch_id"])] = None


class AcceptLaunches:
    """Makes the launches of one acceptance."""

    def __init__(self, run: Run, log: ProgressLog, missing: dict[str, str], skips: list[Skip]) -> None:
        """Begin with the first step.

        Args:
            log: its progress, with the entries of the run that is resumed.
            missing: name of a cell -> why it was not measured; cells that are lost are added.
            skips: what was skipped; sweeps that are given up are added.
        """
        self.run, self.log, self.missing, self.skips = run, log, missing, skips
        self.plans: Sequence[LaunchPlan] = ()
        self.next_index = log.next_index
        self.measured = bool(log.rows)
        """Whether the store has a cell by which ``--resume`` knows this run."""
        self.seen = Seen(files=dict.fromkeys(map(str, log.files)))
        self.here = Seen()
        """The same without those of the run that is resumed."""
        """Nodes of the launches of this session; those of a resumed run may be others."""
        self.given_up: set[str] = set()
        """Cells that are not tried again, because ranks died or hung in them or their results are wrong."""
        self.gone: dict[str, str] = {}
        """Nodes that stopped answering since the launches were planned -> reason."""
        self.last = LastRanks()
        """How often each rank was the last to finish, over the launches that are timed."""
        self._settled: set[str] = set()
        """What was given up before a node was lost."""

    def silent_nodes(self, request: Request) -> dict[str, str]:
        """Find the nodes that do not answer -> reason. Raises EnvironmentProblem where only all together do not."""
        run, kept = self._phase(NODES, 0)
        try:
            lost, self.next_index = answering(run, request, self.next_index)
        finally:
            self._see(run, kept.rows)
        return lost

    def plan(self, plans: Sequence[LaunchPlan], skips: list[Skip]) -> None:
        """Begin with these launches, or begin again with those on the nodes that are left."""
        self.plans, self.skips = plans, skips
        self.given_up &= self._settled
        for key in self.missing.keys() - self.given_up:
            del self.missing[key]
        self.gone = {}

    def of_turn(self, turn: int, wanted: set[str]) -> list[LaunchPlan]:
        """Return the launches of a turn, with those of the wanted cells that were not given up."""
        keys = wanted - self.given_up
        return [
            replace(plan, turn=turn, cells=cells)
            for plan in self.plans
            if (cells := tuple(cell for cell in plan.cells if key_of(plan, cell) in keys))
        ]

    def make(self, phase: str, number: int, plans: Sequence[LaunchPlan]) -> list[Row]:
        """Make the launches of a step and return its rows; cells that an earlier session has are not measured again.

        Args:
            phase: of :data:`omb_py.results.compare.tags.ACCEPT_PHASE`.
        """
        rows, lost = self._make(phase, number, plans)
        for key, reason in lost.items():
            self.missing.setdefault(key, reason)
        self._give_up_all()
        return rows

    def _make(self, phase: str, number: int, plans: Sequence[LaunchPlan]) -> tuple[list[Row], dict[str, str]]:
        """The rows of a step, and each cell that has none -> why."""
        run, kept = self._phase(phase, number)
        if not self.gone:
            self._settled = set(self.given_up)
        step: Step = phase, plans[0].turn
        before = len(self.skips)
        self.skips += self.log.given_up.get(step, [])
        known, left = self._split_stored(step, plans)
        numbered = [replace(plan, index=self.next_index + k) for k, plan in enumerate(left)]
        last = self.next_index - 1
        progress = self.run.command.progress
        if len(progress.tally.waiting) < len(numbered):
            progress.plan([len(plan.cells) for plan in numbered])
        try:
            if numbered:
                last = make_launches(run, numbered, self.skips, lambda lost: self.log.give_up(step, lost))
        except NodesLost as error:
            self._lose(error, run, numbered)
            last = max(*run.finished, *(plan.index for plan in numbered), last)
        finally:
            self._see(run, kept.rows)
            self.measured |= bool(kept.rows)
        self.next_index = max(last, self.next_index - 1) + 1
        rows = known + kept.rows
        lost = self._list_lost(plans, {key_of_row(row) for row in rows}, self.skips[before:], phase != CORRECTNESS)
        # whether a step beside the background job counts depends on that job: its caller ends it
        if phase != BESIDE and step not in self.log.ended and not self.gone:
            self.log.end(step)
        return rows, lost

    def _list_lost(
        self, plans: Sequence[LaunchPlan], done: set[str], skips: Sequence[Skip], final: bool
    ) -> dict[str, str]:
        """Each cell that was not measured -> why. Where that is `final`, cells in which ranks failed are given up."""
        lost = {}
        for plan in plans:
            for cell in plan.cells:
                if cell_key(plan, cell) not in done:
                    own = [skip for skip in skips if skip.what == sweep_name(plan, cell.sweep)]
                    key = key_of(plan, cell)
                    lost[key] = own[-1].reason if own else "its launch ended before"
                    if final and any(skip.failed for skip in own):
                        self.given_up.add(key)
        return lost

    def _phase(self, phase: str, number: int) -> tuple[Run, Kept]:
        tags = {**self.run.request.tags, ACCEPT_PHASE: phase, ACCEPT_ROUND: str(number)}
        request = self.run.request.changed(tags=tags)
        # the correctness check is no soak
        short = request.changed(repeat_for=None, passes=None) if phase == CORRECTNESS else request
        run, kept = run_apart(self.run, short)
        if phase == PERFORMANCE:
            run.last = self.last
        return run, kept

    def _split_stored(self, step: Step, plans: Sequence[LaunchPlan]) -> tuple[list[Row], list[LaunchPlan]]:
        """Return the stored rows of a step, and the launches that are left of it.

        What was given up is not tried again. A soak or an interference test that was cut off is not valid, so its step
        starts from the beginning.
        """
        ended = step in self.log.ended
        rows: list[Row] = []
        left = []
        lost = {skip.what for skip in self.log.given_up.get(step, ())}
        for plan in plans:
            whole = step[0] == BESIDE or any(request.repetition.soaks for request in plan.requests)
            stored = {
                c: [] if whole and not ended else self.log.stored_rows(step, cell_key(plan, c)) for c in plan.cells
            }
            rows += [row for cell_rows in stored.values() for row in cell_rows]
            cells = tuple(c for c in plan.cells if not stored[c] and sweep_name(plan, c.sweep) not in lost)
            if cells and not ended:
                left.append(replace(plan, cells=cells))
        self.seen.take(rows)
        return rows, left

    def _lose(self, error: NodesLost, run: Run, plans: Sequence[LaunchPlan]) -> None:
        """Note the nodes that were lost, and the sweep in which that was."""
        for host, why in error.nodes.items():
            self.gone.setdefault(host, f"it does not answer any more: {why}")
        left = [skip for plan in plans for skip in unmeasured(plan, run, str(error.cause))]
        self.skips += [replace(skip, failed=True) for skip in left[:1]]

    def _give_up_all(self) -> None:
        """Give up all cells once a node is gone: the launches are planned for all nodes."""
        for key in self._keys() if self.gone else ():
            self.missing.setdefault(key, f"{', '.join(self.gone)} did not answer any more")
            self.given_up.add(key)

    def _give_up(self, sweep: int, reason: str) -> None:
        for key in self._keys(sweep):
            self.missing[key] = reason
            self.given_up.add(key)

    def _keys(self, sweep: int | None = None) -> list[str]:
        return [key_of(plan, c) for plan in self.plans for c in plan.cells if sweep is None or c.sweep == sweep]

    def _see(self, run: Run, rows: Sequence[Row]) -> None:
        self.here.take(rows)
        self.seen.take(rows)
        self.seen.files |= dict.fromkeys(map(str, run.files))

    def check_bytes(self, requests: Sequence[CheckedRequest], turn: int = 0) -> list[CorrectnessCheck]:
        """Check every byte of every cell that can be checked, in launches of their own; `turn` tells a further check.

        A cell that the check did not measure may still be timed: only what is wrong or failed is given up.
        """
        checkable = [(number, r) for number, r in enumerate(requests) if takes(r.benchmark, "validation")]
        if not checkable:
            return []
        self.run.note("correctness: every byte is checked before anything is timed")
        short = [
            r.changed(
                validate=True,
                iterations=CHECKS,
                warmup=0,
                repeat_for=None,
                passes=None,
                time_limit=None,
                precision=0.01,
            )
            for _, r in checkable
        ]
        plans = [replace(plan, turn=turn) for plan in plan_launches(short)]
        rows, lost = self._make(CORRECTNESS, 0, plans)
        self._give_up_all()
        by_key: dict[str, list[Row]] = {}
        for row in rows:  # a guideline has two rows of a cell, one of each side
            by_key.setdefault(key_of_row(row), []).append(row)
        return [
            self._check_request(sweep, number, request, plans, by_key, lost)
            for sweep, (number, request) in enumerate(checkable)
        ]

    def _check_request(
        self,
        sweep: int,
        number: int,
        request: CheckedRequest,
        plans: Sequence[LaunchPlan],
        rows: dict[str, list[Row]],
        lost: dict[str, str],
    ) -> CorrectnessCheck:
        """The check of one request: sweep `sweep` of the plans of the check, and `number` of those that are timed."""
        planned = [(plan, cell) for plan in plans for cell in plan.cells if cell.sweep == sweep]
        name = f"{sweep_name(planned[0][0], sweep)}, {planned[0][0].ranks} ranks" if planned else request.benchmark.name
        cells = [rows[key] for plan, cell in planned if (key := cell_key(plan, cell)) in rows]
        wrong = [row for cell_rows in cells for row in cell_rows if row["validated"] is False]
        if wrong:
            sizes = ", ".join(f"{row['wrong_bytes']} wrong bytes at {row['size_bytes']} B" for row in wrong)
            self._give_up(number, f"its results are wrong ({sizes}): times of wrong results mean nothing")
            return CorrectnessCheck(name, "FAIL", sizes)
        if cells and len(cells) == len(planned):
            return CorrectnessCheck(name, "PASS", f"every byte of {len(cells)} cells")
        why = next((lost[key] for plan, cell in planned if (key := key_of(plan, cell)) in lost), "not measured")
        if not any(skip.failed and skip.what == sweep_name(planned[0][0], sweep) for skip in self.skips):
            return CorrectnessCheck(name, "SKIPPED", why)
        self._give_up(number, why)
        return CorrectnessCheck(name, "ERROR", why)
