"""The launches of a tuning: one candidate, some sizes, and what went wrong with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omb_py.errors import Interrupted, NotStored, OmbError
from omb_py.options.table import takes
from omb_py.orchestrate.compare.session import simulated_in
from omb_py.orchestrate.launching.launch_command import RankEnvironment
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.running.collector import Run
from omb_py.orchestrate.running.lost_nodes import NodesLost, start_on_nodes
from omb_py.orchestrate.running.resume import TUNING, declare_design, read_run
from omb_py.orchestrate.running.suite_run import run_apart
from omb_py.results.compare.tags import TUNE_BLOCK, TUNE_SETTING
from omb_py.results.statistics.launch_time import time_of
from omb_py.results.store.row import Row
from omb_py.results.tune.rules import LibrarySetting, TunePoint

Key = tuple[TunePoint, int, str]
"""Point, block and name of the setting of a launch."""


@dataclass(slots=True)
class StoredTuning:
    """The launches of a tuning that are in the store, and the candidates that failed in it."""

    design: dict[str, Any]
    """What it was declared with; ``failed`` has what was excluded so far."""
    launches: dict[Key, list[list[Row]]] = field(default_factory=dict)
    """Rows of each launch; a launch that was cut off may have been made again."""
    next_index: int = 0

    @property
    def failed(self) -> dict[str, str]:
        """``POINT:BLOCK:SETTING`` of the launch at which a candidate was excluded -> why."""
        known: dict[str, str] = self.design.setdefault("failed", {})
        return known

    def take(self, key: Key, sizes: Sequence[int]) -> list[Row] | None:
        """The rows of a launch, in the order of `sizes`; None where no launch in the store has them all."""
        for rows in reversed(self.launches.get(key, [])):
            by_size = {int(row["size_bytes"] or 0): row for row in rows}
            if set(sizes) <= set(by_size):
                return [by_size[size] for size in sizes]
        return None

    def fail(self, key: Key, why: str, store: Path, run_id: str) -> None:
        """Keep why a candidate was excluded. Raises EnvironmentProblem where it cannot be written."""
        self.failed[text_of(key)] = why
        declare_design(store, run_id, self.design, TUNING)


def text_of(key: Key) -> str:
    return ":".join(map(str, key))


def stored_rows(store: Path, run_id: str, design: Mapping[str, object]) -> StoredTuning:
    """Read the launches of an interrupted tuning. Raises UsageError where it is still running."""
    run = read_run(store, run_id, "tuning")
    stored = StoredTuning(dict(design), next_index=run.next_launch)
    for rows in run.by_launch():
        tags = dict(rows[0]["tags"] or {})
        if TUNE_BLOCK in tags:
            key = (TunePoint.of_row(rows[0]), int(tags[TUNE_BLOCK]), tags[TUNE_SETTING])
            stored.launches.setdefault(key, []).append(rows)
    return stored


TRIAL = -1
"""Number of the block of the first launch, which shows whether the library works at all."""


class CandidateFailed(Exception):
    """A launch failed, or computed wrong results; the text says what happened."""


def where_of(setting: LibrarySetting) -> RankEnvironment:
    """The environment of a candidate's ranks, with the facts for the provenance."""
    variables = dict(setting.variables)
    return RankEnvironment(
        variables=variables, facts={"config": {"setting": setting.name, "set": variables}} if variables else {}
    )


def point_of(checked: CheckedRequest, plan: LaunchPlan) -> TunePoint:
    """The point of a launch whose cells differ in size alone."""
    cell = plan.cells[0]
    return TunePoint(
        cell.benchmark,
        plan.ranks,
        cell.dtype,
        cell.options.op if takes(checked.benchmark, "op") else "",
        cell.options.in_place,
    )


@dataclass(slots=True)
class TuneLauncher:
    """Makes the launches of one tuning, or takes them from the store."""

    run: Run
    stored: StoredTuning
    clock: Callable[[], float] = time.monotonic
    index: int = 0
    launches: int = 0
    seconds: float = 0.0
    budget_s: float | None = None
    """Seconds after the first launch that is made now, after which no further one may begin; None: no limit."""
    began: float | None = None
    rows: list[Row] = field(default_factory=list)
    """One row of each launch that has some."""
    _checked: set[tuple[TunePoint, str, int]] = field(default_factory=set)
    """Point, setting and size whose bytes were checked."""

    @property
    def mean_s(self) -> float:
        """Mean duration of a launch that was made now; 0 before the first one."""
        return self.seconds / self.launches if self.launches else 0.0

    @property
    def left_s(self) -> float:
        """What is left of the budget."""
        if self.budget_s is None:
            return math.inf
        return self.budget_s - (self.clock() - self.began if self.began is not None else 0.0)

    def __call__(
        self, checked: CheckedRequest, plan: LaunchPlan, setting: LibrarySetting, block: int, sizes: Sequence[int]
    ) -> dict[int, float]:
        """Launch a candidate, or take its launch from the store.

        Args:
            sizes: the sizes to measure, in this order.

        Returns:
            Size -> median in µs.

        Raises:
            CandidateFailed: ranks died or hung, the library refused the setting, or a byte was wrong.
            Interrupted, EnvironmentProblem: the user pressed Ctrl-C, or results cannot be stored.
            NodesLost: a node does not answer any more.
        """
        rows = self.rows_of(checked, plan, setting, block, sizes)
        times = {int(row["size_bytes"] or 0): time_of(row) for row in rows}
        return {size: median for size, median in times.items() if median}

    def rows_of(
        self, checked: CheckedRequest, plan: LaunchPlan, setting: LibrarySetting, block: int, sizes: Sequence[int]
    ) -> list[Row]:
        """The rows of a launch, in the order of `sizes`; arguments and errors are those of a call."""
        point = point_of(checked, plan)
        key = (point, block, setting.name)
        if why := self.stored.failed.get(text_of(key)):
            raise CandidateFailed(why)
        rows = self.stored.take(key, sizes)
        if rows is None:
            rows = self._launch(checked, plan, setting, block, sizes)
        wrong = next((row for row in rows if row["validated"] is False), None)
        if wrong is not None:
            raise CandidateFailed(f"{wrong['wrong_bytes']} wrong bytes at {wrong['size_bytes'] or 0} B")
        self._checked |= {(point, setting.name, int(row["size_bytes"] or 0)) for row in rows}
        self.rows += rows[:1]
        return rows

    def _launch(
        self, checked: CheckedRequest, plan: LaunchPlan, setting: LibrarySetting, block: int, sizes: Sequence[int]
    ) -> list[Row]:
        by_size = {cell.size: cell for cell in plan.cells}
        may, point = takes(checked.benchmark, "validation"), point_of(checked, plan)
        cells = tuple(
            replace(by_size[s], validate=may and (point, setting.name, s) not in self._checked) for s in sizes
        )
        launch = replace(plan, cells=cells, index=self.index)
        self.index += 1
        where = where_of(setting)
        tags = {**checked.request.tags, TUNE_SETTING: setting.name, TUNE_BLOCK: str(block)}
        request = checked.request.changed(tags=tags)
        run, kept = run_apart(self.run, request, where)
        launch = replace(launch, requests=(request,))
        began = self.clock()
        self.began = began if self.began is None else self.began
        try:
            with simulated_in(where, launch.backend):
                start_on_nodes(run, launch)
        except (Interrupted, NodesLost, NotStored):
            raise
        except OmbError as error:
            raise CandidateFailed(error.problem) from error
        finally:
            self.run.files += run.files
            self.launches += 1
            self.seconds += self.clock() - began
        if lacking := next(iter(run.lacking.values()), ""):
            raise CandidateFailed(lacking)
        return kept.rows
