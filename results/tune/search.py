"""The search for the fastest setting of each size on one number of ranks. It asks for launches and knows no launcher.

Blocks of launches are asked for, one launch of each candidate that is left, in an order that was drawn. After each
check the candidates that cannot win at a size are dropped there; between two sizes with different settings the boundary
is found by bisection. What it asks for depends on its seed and the results alone, so it can be made again from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from omb_py.results.tune.elimination import (
    DEFAULT_CANDIDATE,
    SearchDesign,
    Standing,
    WantedLaunch,
    block_of,
    first_places,
    stand,
)


@dataclass(slots=True)
class SizeState:
    """What is known at one size."""

    times: dict[int, dict[int, float]]
    """Candidate -> block -> log of the median of its launch; of every candidate that was measured here."""
    left: list[int]
    """Candidates that were not dropped, in order."""
    check: int = 0
    """Looks that are over."""
    standing: Standing | None = None
    """The latest; None before the first check."""
    blocks: int = 0

    def done(self, design: SearchDesign) -> bool:
        """Whether nothing more is asked for here."""
        return self.check == len(design.checks) or (
            self.standing is not None and (len(self.left) == 1 or self.standing.settled)
        )


@dataclass(slots=True)
class Search:
    """The search on one number of ranks."""

    sizes: Sequence[int]
    """All sizes that may be measured, in bytes, ascending."""
    candidates: int
    """Number of candidates with the default, which is number 0."""
    design: SearchDesign
    states: dict[int, SizeState] = field(default_factory=dict)
    """Place of a size -> its state, of the sizes that were chosen so far."""
    excluded: set[int] = field(default_factory=set)
    """Candidates that failed or computed wrong results."""
    block: int = 0
    spent: int = 0
    """Launches times sizes so far."""

    def __post_init__(self) -> None:
        for place in first_places(len(self.sizes), self.design.step):
            self._open(place, range(self.candidates))

    def next_block(self) -> tuple[WantedLaunch, ...]:
        """The launches of the next block; empty when the search is over."""
        while True:
            places: dict[int, list[int]] = {}
            for place, state in self.states.items():
                if not state.done(self.design) and state.blocks < self.design.checks[state.check]:
                    for candidate in state.left:
                        places.setdefault(candidate, []).append(place)
            if places:
                return block_of(self.block, places, self.design.seed)
            if not (self._check() or self._bisect()):
                return ()

    def add(self, launches: Mapping[int, Mapping[int, float]]) -> None:
        """Take the results of the block that :meth:`next_block` asked for.

        Args:
            launches: candidate -> place of a size -> log of the median. A candidate that was excluded may be missing,
                and so may a size.
        """
        for place, state in self.states.items():
            if state.done(self.design) or state.blocks >= self.design.checks[state.check]:
                continue
            state.blocks += 1
            for candidate, of_one in launches.items():
                if place in of_one and candidate in state.left:
                    state.times[candidate][self.block] = of_one[place]
        self.spent += sum(map(len, launches.values()))
        self.block += 1

    def exclude(self, candidate: int) -> None:
        """Leave a candidate out from now on. Raises ValueError for the default."""
        if candidate == DEFAULT_CANDIDATE:
            raise ValueError("the default cannot be left out")
        self.excluded.add(candidate)
        for state in self.states.values():
            state.times.pop(candidate, None)
            if candidate in state.left:
                state.left.remove(candidate)
            if state.standing is not None and state.standing.leader == candidate:
                # the others were dropped for being slower than this one: they may win now
                state.left, state.standing, state.check, state.blocks = sorted(state.times), None, 0, 0

    @property
    def open_places(self) -> list[int]:
        """Places of the sizes that are not decided, of those that were chosen so far."""
        return [place for place, state in sorted(self.states.items()) if not state.done(self.design)]

    def most_left(self) -> int:
        """The most launches that the sizes which were chosen so far can still need."""
        most: dict[int, int] = {}
        for place in self.open_places:
            state = self.states[place]
            for candidate in state.left:
                more = max(0, self.design.checks[-1] - state.blocks)
                most[candidate] = max(most.get(candidate, 0), more)
        return sum(most.values())

    def choices(self) -> dict[int, int]:
        """Place of each size that was measured -> its candidate; neighbors share one where that costs nothing."""
        chosen: dict[int, int] = {}
        before = DEFAULT_CANDIDATE
        for place, state in sorted(self.states.items()):
            if state.standing is not None:
                chosen[place] = before = choice(state, before, self.design)
        return chosen

    def gains(self) -> list[list[float]]:
        """For each size with another candidate than the default: the log of its gain in each block that has both."""
        chosen = [item for item in self.choices().items() if item[1] != DEFAULT_CANDIDATE]
        return [gained for place, candidate in chosen if (gained := self._list_gains(place, candidate))]

    def leader(self, place: int) -> tuple[int, float, int]:
        """The fastest candidate at a size so far, the log of its mean time over the default's, and in how many blocks.

        It is decided by nothing. Where no block has another candidate beside the default: the default, 0 and 0.
        """
        best = DEFAULT_CANDIDATE, 0.0, 0
        for candidate in self.states[place].left:
            gained = self._list_gains(place, candidate)
            if gained and candidate != DEFAULT_CANDIDATE:
                best = min(best, (candidate, -sum(gained) / len(gained), len(gained)), key=lambda each: each[1])
        return best

    def _list_gains(self, place: int, candidate: int) -> list[float]:
        """The log of a candidate's gain over the default at a size, in each block that has both."""
        usual, own = (self.states[place].times[each] for each in (DEFAULT_CANDIDATE, candidate))
        return [usual[block] - own[block] for block in sorted(set(usual) & set(own))]

    def _open(self, place: int, candidates: Sequence[int]) -> None:
        left = [c for c in candidates if c not in self.excluded]
        self.states[place] = SizeState({c: {} for c in left}, left)

    def _check(self) -> bool:
        """Judge every size that has the launches of its next check, and drop what cannot win there."""
        due = [state for state in self.states.values() if not state.done(self.design) and _comparable(state)]
        if not due:
            for state in self.states.values():  # nothing that could be compared came back: no more is asked for
                if not state.done(self.design):
                    state.check = len(self.design.checks)
            return False
        times = [{c: state.times[c] for c in state.left if state.times[c]} for state in due]
        for state, standing in zip(due, stand(times, self.design, self.candidates), strict=True):
            state.standing = standing
            state.check += 1
            state.left = [c for c in state.left if c in state.times and state.times[c] and c not in standing.slower]
        return True

    def _bisect(self) -> bool:
        """Choose a size half way between neighbors with different settings; whether there was any."""
        chosen = self.choices()
        places = sorted(chosen)
        middles = {
            (low + high) // 2: (low, high)
            for low, high in pairwise(places)
            if chosen[low] != chosen[high] and high - low > 1
        }
        for middle, ends in middles.items():
            self._open(middle, self._contenders(ends, {chosen[end] for end in ends}))
        return bool(middles)

    def _contenders(self, ends: tuple[int, int], winners: set[int]) -> list[int]:
        """The default, the winners at both ends, and what was not far behind at one of them."""
        near = {DEFAULT_CANDIDATE, *winners}
        for end in ends:
            state = self.states[end]
            fastest = min(_mean(state.times[c]) for c in state.times if state.times[c])
            near |= {c for c, t in state.times.items() if t and _mean(t) - fastest < math.log(self.design.far)}
        return sorted(near)


def choice(state: SizeState, before: int, design: SearchDesign) -> int:
    """The candidate for a size: the default unless another is faster by the margin and a tie, the neighbor's in a tie.

    Args:
        state: what is known of the size, after a check.
    """
    standing = state.standing
    assert standing is not None
    # what gains hardly more than the margin would be cut back by the proof, with all sizes up to the one before it
    if standing.leader == DEFAULT_CANDIDATE or standing.behind.get(DEFAULT_CANDIDATE, math.inf) <= design.tie:
        return DEFAULT_CANDIDATE
    if before != DEFAULT_CANDIDATE and before in state.left and standing.behind.get(before, 0.0) <= design.tie:
        return before
    return standing.leader


def _comparable(state: SizeState) -> bool:
    blocks = [set(times) for c, times in state.times.items() if c in state.left and times]
    return bool(blocks) and bool(set.intersection(*blocks))


def _mean(times: Mapping[int, float]) -> float:
    return sum(times.values()) / len(times)
