"""The searches of a tuning, one for each point of its grid: their blocks are launched by turns, within the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.planning.resolution import CheckedRequest
from omb_py.orchestrate.tune.launches import CandidateFailed, TuneLauncher, point_of
from omb_py.results.compare.judge import Answer
from omb_py.results.statistics.order_statistics import median
from omb_py.results.tune.elimination import DEFAULT_CANDIDATE, SearchDesign, WantedLaunch
from omb_py.results.tune.rules import LibrarySetting, Rule, TunePoint
from omb_py.results.tune.search import Search
from omb_py.results.tune.segments import (
    Proposal,
    SizeRange,
    agreed,
    all_sizes,
    disputed,
    everywhere,
    proved,
    rule_of,
    segments,
    summed_up,
)


@dataclass(slots=True)
class Searching:
    """The search at one point of the grid."""

    checked: CheckedRequest
    plan: LaunchPlan
    settings: tuple[LibrarySetting, ...]
    search: Search
    failed: dict[str, str] = field(default_factory=dict)
    """Name of each candidate that was excluded -> why."""
    stopped: bool = False

    @staticmethod
    def of(
        checked: CheckedRequest, plan: LaunchPlan, settings: tuple[LibrarySetting, ...], design: SearchDesign
    ) -> Searching:
        """Begin a search over the sizes of a launch."""
        sizes = tuple(sorted(cell.size for cell in plan.cells))
        return Searching(checked, plan, settings, Search(sizes, len(settings), design))

    @property
    def point(self) -> TunePoint:
        """What it holds fixed."""
        return point_of(self.checked, self.plan)

    def block(self, wanted: Sequence[WantedLaunch], launcher: TuneLauncher, store: Path) -> None:
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


def search_all(searching: Sequence[Searching], launcher: TuneLauncher, store: Path) -> None:
    """Run all searches to their ends, or to that of the launcher's budget, block by block.

    Raises:
        CandidateFailed: the default failed.
    """
    left = list(searching)
    while left:
        for searcher in tuple(left):
            wanted = searcher.search.next_block()
            if not wanted or launcher.left_s <= 0:
                searcher.stopped = bool(wanted)
                left.remove(searcher)
                continue
            number, run = searcher.search.block + 1, launcher.run
            run.command.progress.plan([len(w.places) for w in wanted])
            if searcher.search.block in (0, *searcher.search.design.checks):
                cells = sum(len(w.places) for w in wanted)
                run.note(f"{searcher.point}, block {number}: {len(wanted)} launches, {cells} cells")
            searcher.block(wanted, launcher, store)


Answers = Mapping[tuple[TunePoint, int], Answer]
"""Point and size in bytes -> the verdict on the median."""
_UNPROVEN = (1.0, 1.0, 1.0)
"""Ratio and interval of a rule before its proof."""


@dataclass(frozen=True, slots=True)
class Group:
    """The searches of one collective on as many ranks."""

    searches: tuple[Searching, ...]
    called: bool = False
    """Whether its sizes are all that are called, as by a workload: one setting for all of them is set for any size."""
    for_all: int | None = None
    """The candidate that is proposed for every size; None: each size has its own."""

    @property
    def settings(self) -> tuple[LibrarySetting, ...]:
        return self.searches[0].settings

    @property
    def proposals(self) -> list[Proposal]:
        choices = [searcher.search.choices() for searcher in self.searches]
        if self.for_all is not None:
            choices = [dict.fromkeys(chosen, self.for_all) for chosen in choices]
        return [
            Proposal(searcher.search.sizes, chosen) for searcher, chosen in zip(self.searches, choices, strict=True)
        ]

    @property
    def sizes(self) -> list[int]:
        """All sizes in bytes, ascending."""
        return all_sizes(self.proposals)

    def with_one_setting(self) -> Group:
        """The same with one setting for all sizes, for a library that cannot distinguish them.

        It is the one with the least sum of times, of one call of each size, among those that seem slower than the
        default at none.
        """
        places = [(searcher.search, place) for searcher in self.searches for place in searcher.search.choices()]
        allowed = self.searches[0].search.design.penalty
        sums: dict[int, float] = {}
        for candidate in range(len(self.settings)):
            medians = [_median(search, place, candidate) for search, place in places]
            usual = [_median(search, place, DEFAULT_CANDIDATE) for search, place in places]
            if all(m is not None and d is not None and m <= d + allowed for m, d in zip(medians, usual, strict=True)):
                bonus = 0.0 if candidate == DEFAULT_CANDIDATE else allowed
                sums[candidate] = math.fsum(math.exp(m + bonus) for m in medians if m is not None)
        return replace(self, for_all=min(sums, key=lambda candidate: (sums[candidate], candidate)))

    def segments(self) -> list[SizeRange]:
        """The ranges of sizes on whose setting all searches agree."""
        return segments(agreed(self.proposals), self.sizes)

    def disputed(self) -> list[int]:
        return disputed(self.proposals)

    def proposed(self) -> list[Rule]:
        """The rules before their proof."""
        benchmark, ranks = self.searches[0].point.file_key
        rules = [
            Rule(benchmark, ranks, s.first_bytes, s.last_bytes, self.settings[s.candidate], *_UNPROVEN)
            for s in self.segments()
        ]
        return [_unlimited(rule) for rule in rules] if self._has_one_for_all() else rules

    def proved(self, answers: Answers) -> list[Rule]:
        """The rules that fresh launches leave."""
        benchmark, ranks = self.searches[0].point.file_key
        by_place: dict[int, Answer] = {}
        for place, size in enumerate(self.sizes):
            of_size = [answers[searcher.point, size] for searcher in self.searches if (searcher.point, size) in answers]
            if of_size:
                by_place[place] = summed_up(of_size)
        if self._has_one_for_all():
            (whole,) = self.segments()
            verdicts = {by_place[place].verdict for place in whole.places if place in by_place}
            stands = "FASTER" in verdicts and "SLOWER" not in verdicts
            rules = [rule_of(whole, by_place, self.settings[whole.candidate], benchmark, ranks)] if stands else []
            return [_unlimited(rule) for rule in rules]
        return [
            rule_of(left, by_place, self.settings[left.candidate], benchmark, ranks)
            for left in proved(self.segments(), by_place, self.sizes)
        ]

    def _has_one_for_all(self) -> bool:
        return self.called and everywhere(self.segments(), agreed(self.proposals))


def _median(search: Search, place: int, candidate: int) -> float | None:
    """The log of the median time of a candidate's launches at a size; None where it has none."""
    times = search.states[place].times.get(candidate)
    return median(list(times.values())) if times else None


def _unlimited(rule: Rule) -> Rule:
    return replace(rule, first_bytes=0, last_bytes=None)


def groups_of(searching: Sequence[Searching], called: bool = False) -> list[Group]:
    places: dict[tuple[str, int], list[Searching]] = {}
    for searcher in searching:
        places.setdefault(searcher.point.file_key, []).append(searcher)
    return [Group(tuple(searches), called) for searches in places.values()]
