"""Searches of one collective on as many ranks, which share their rules, and the rules that a proof leaves of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omb_py.orchestrate.tune.searching import Searching
from omb_py.results.compare.judge import Answer
from omb_py.results.statistics.order_statistics import median
from omb_py.results.tune.agreement import Proposal, agreed, all_sizes, disputed, everywhere, summed_up
from omb_py.results.tune.elimination import DEFAULT_CANDIDATE
from omb_py.results.tune.points import Point
from omb_py.results.tune.rules import Rule, Setting
from omb_py.results.tune.search import Search
from omb_py.results.tune.segments import Segment, proved, rule_of, segments

Answers = Mapping[tuple[Point, int], Answer]
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
    def settings(self) -> tuple[Setting, ...]:
        """The candidates, the default first."""
        return self.searches[0].settings

    @property
    def proposals(self) -> list[Proposal]:
        """What each search proposes."""
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

    def segments(self) -> list[Segment]:
        """The ranges of sizes on whose setting all searches agree."""
        return segments(agreed(self.proposals), self.sizes)

    def disputed(self) -> list[int]:
        """Sizes in bytes at which the searches want different settings."""
        return disputed(self.proposals)

    def proposed(self) -> list[Rule]:
        """The rules before their proof."""
        benchmark, ranks = self.searches[0].point.place
        rules = [
            Rule(benchmark, ranks, s.first_bytes, s.last_bytes, self.settings[s.candidate], *_UNPROVEN)
            for s in self.segments()
        ]
        return [_unlimited(rule) for rule in rules] if self._one_for_all() else rules

    def proved(self, answers: Answers) -> list[Rule]:
        """The rules that fresh launches leave."""
        benchmark, ranks = self.searches[0].point.place
        by_place: dict[int, Answer] = {}
        for place, size in enumerate(self.sizes):
            of_size = [answers[searcher.point, size] for searcher in self.searches if (searcher.point, size) in answers]
            if of_size:
                by_place[place] = summed_up(of_size)
        if self._one_for_all():
            (whole,) = self.segments()
            verdicts = {by_place[place].verdict for place in whole.places if place in by_place}
            stands = "FASTER" in verdicts and "SLOWER" not in verdicts
            rules = [rule_of(whole, by_place, self.settings[whole.candidate], benchmark, ranks)] if stands else []
            return [_unlimited(rule) for rule in rules]
        return [
            rule_of(left, by_place, self.settings[left.candidate], benchmark, ranks)
            for left in proved(self.segments(), by_place, self.sizes)
        ]

    def _one_for_all(self) -> bool:
        return self.called and everywhere(self.segments(), agreed(self.proposals))


def _median(search: Search, place: int, candidate: int) -> float | None:
    """The log of the median time of a candidate's launches at a size; None where it has none."""
    times = search.states[place].times.get(candidate)
    return median(list(times.values())) if times else None


def _unlimited(rule: Rule) -> Rule:
    return replace(rule, first_bytes=0, last_bytes=None)


def groups_of(searching: Sequence[Searching], called: bool = False) -> list[Group]:
    """The groups of searches, in the order of their first ones."""
    places: dict[tuple[str, int], list[Searching]] = {}
    for searcher in searching:
        places.setdefault(searcher.point.place, []).append(searcher)
    return [Group(tuple(searches), called) for searches in places.values()]
