"""The searches of a tuning, one for each point of its grid: their blocks are launched by turns, within the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omb_py.orchestrate.planning.plan import CheckedRequest, LaunchPlan
from omb_py.orchestrate.tune.launches import CandidateFailed, Launcher, point_of
from omb_py.results.tune.design import Design, Wanted
from omb_py.results.tune.elimination import DEFAULT_CANDIDATE
from omb_py.results.tune.points import Point
from omb_py.results.tune.rules import Setting
from omb_py.results.tune.search import Search


@dataclass(slots=True)
class Searching:
    """The search at one point of the grid."""

    checked: CheckedRequest
    plan: LaunchPlan
    settings: tuple[Setting, ...]
    """All candidates, the default first."""
    search: Search
    failed: dict[str, str] = field(default_factory=dict)
    """Name of each candidate that was excluded -> why."""
    stopped: bool = False
    """Whether the budget ended it."""

    @staticmethod
    def of(checked: CheckedRequest, plan: LaunchPlan, settings: tuple[Setting, ...], design: Design) -> Searching:
        """Begin a search over the sizes of a launch."""
        sizes = tuple(sorted(cell.size for cell in plan.cells))
        return Searching(checked, plan, settings, Search(sizes, len(settings), design))

    @property
    def point(self) -> Point:
        """What it holds fixed."""
        return point_of(self.checked, self.plan)

    def block(self, wanted: Sequence[Wanted], launcher: Launcher, store: Path) -> None:
        """Make the launches of a block. Raises CandidateFailed where the default fails, and what launches raise."""
        results: dict[int, dict[int, float]] = {}
        for launch in wanted:
            setting = self.settings[launch.candidate]
            if setting.name in self.failed:
                continue
            sizes = [self.search.sizes[place] for place in launch.places]
            try:
                times = launcher(self.checked, self.plan, setting, launch.block, sizes)
            except CandidateFailed as error:
                if launch.candidate == DEFAULT_CANDIDATE:
                    raise
                self.failed[setting.name] = str(error)
                launcher.stored.fail((self.point, launch.block, setting.name), str(error), store, launcher.run.run_id)
                launcher.run.note(f"{setting.name} is excluded: {error}")
                self.search.exclude(launch.candidate)
                continue
            places = {self.search.sizes[place]: place for place in launch.places}
            results[launch.candidate] = {places[size]: math.log(median) for size, median in times.items()}
        self.search.add(results)


def search_all(searching: Sequence[Searching], launcher: Launcher, store: Path) -> None:
    """Run all searches to their ends, or to that of the launcher's budget, block by block.

    Args:
        searching: the searches.
        launcher: makes the launches.
        store: where failures of candidates are kept.

    Raises:
        CandidateFailed: the default failed.
    """
    left = list(searching)
    while left:
        for searcher in tuple(left):
            wanted = searcher.search.next_block()
            if not wanted:
                left.remove(searcher)
                continue
            if launcher.left_s <= 0:
                searcher.stopped = True
                left.remove(searcher)
                continue
            number, run = searcher.search.block + 1, launcher.run
            run.command.progress.plan([len(w.places) for w in wanted])
            if searcher.search.block in (0, *searcher.search.design.checks):
                cells = sum(len(w.places) for w in wanted)
                run.note(f"{searcher.point}, block {number}: {len(wanted)} launches, {cells} cells")
            searcher.block(wanted, launcher, store)
