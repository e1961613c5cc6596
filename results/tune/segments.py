"""From the candidate of each size to ranges of sizes, and what the proof leaves of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from omb_py.results.compare.judge import WORDS, Answer
from omb_py.results.tune.elimination import DEFAULT_CANDIDATE
from omb_py.results.tune.rules import LibrarySetting, Rule


@dataclass(frozen=True, slots=True)
class SizeRange:
    """A range of sizes for which one candidate was chosen, other than the default."""

    candidate: int
    first_bytes: int
    last_bytes: int
    places: tuple[int, ...]
    """Places of the sizes that were measured in it, ascending."""


def segments(choices: Mapping[int, int], sizes: Sequence[int]) -> list[SizeRange]:
    """Join neighbors with the same candidate.

    A range ends at the size before the next setting's first one. Nothing is said of sizes beyond the measured ones, nor
    of those between two measured ones with different settings that are not next to each other in the list.

    Args:
        choices: place of each measured size -> its candidate.
        sizes: all sizes in bytes, ascending.

    >>> segments({0: 0, 1: 2, 3: 2, 4: 1}, [8, 16, 32, 64, 128])  # doctest: +NORMALIZE_WHITESPACE
    [SizeRange(candidate=2, first_bytes=16, last_bytes=127, places=(1, 3)),
     SizeRange(candidate=1, first_bytes=128, last_bytes=128, places=(4,))]
    """
    joined: list[SizeRange] = []
    places = sorted(choices)
    for number, place in enumerate(places):
        candidate = choices[place]
        if joined and number and choices[places[number - 1]] == candidate != DEFAULT_CANDIDATE:
            last = joined.pop()
            joined.append(replace(last, last_bytes=sizes[place], places=(*last.places, place)))
        elif candidate != DEFAULT_CANDIDATE:
            joined.append(SizeRange(candidate, sizes[place], sizes[place], (place,)))
    return [
        replace(segment, last_bytes=other.first_bytes - 1)
        if other is not None and other.places[0] == segment.places[-1] + 1
        else segment
        for segment, other in zip_longest(joined, joined[1:])
    ]


def proved(ranges: Sequence[SizeRange], answers: Mapping[int, Answer], sizes: Sequence[int]) -> list[SizeRange]:
    """Cut ranges back to what fresh launches show to be faster.

    Args:
        answers: place of a size -> the verdict on its median, default against tuned.
        sizes: all sizes in bytes, ascending.

    Returns:
        Ranges that begin and end with a FASTER size; a range with a SLOWER one is split there.
    """
    left: list[SizeRange] = []
    for segment in ranges:
        run: list[int] = []
        for place in (*segment.places, None):
            slower = place is not None and place in answers and answers[place].verdict == "SLOWER"
            if place is not None and not slower:
                run.append(place)
                continue
            if kept := _faster(run, answers):
                whole_end = place is None and kept[-1] == segment.places[-1]
                last = segment.last_bytes if whole_end else sizes[kept[-1]]
                left.append(SizeRange(segment.candidate, sizes[kept[0]], last, kept))
            run = []
    return left


def _faster(run: Sequence[int], answers: Mapping[int, Answer]) -> tuple[int, ...]:
    """The part of a run from its first to its last FASTER size."""
    at = [n for n, place in enumerate(run) if place in answers and answers[place].verdict == "FASTER"]
    return tuple(run[at[0] : at[-1] + 1]) if at else ()


def rule_of(
    segment: SizeRange, answers: Mapping[int, Answer], setting: LibrarySetting, collective: str, ranks: int
) -> Rule:
    """The rule of a range: its ratio is the geometric mean over its measured sizes, its interval holds theirs.

    Args:
        segment: a range that :func:`proved` has left.
        answers: place of a size -> the verdict on its median.
    """
    known = [answers[place] for place in segment.places if place in answers]
    ratio = math.exp(math.fsum(math.log(answer.ratio) for answer in known) / len(known))
    low, high = min(answer.low for answer in known), max(answer.high for answer in known)
    return Rule(collective, ranks, segment.first_bytes, segment.last_bytes, setting, ratio, low, high)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the search of one point proposes."""

    sizes: Sequence[int]
    """All of its sizes in bytes, ascending."""
    choices: Mapping[int, int]
    """Place of each measured size -> its candidate."""

    def at(self, nbytes: int) -> int | None:
        """The candidate for a size; None beyond its measured sizes, of which it says nothing."""
        measured = [self.sizes[place] for place in self.choices]
        if not measured or not min(measured) <= nbytes <= max(measured):
            return None
        ranges = segments(self.choices, self.sizes)
        return next((s.candidate for s in ranges if s.first_bytes <= nbytes <= s.last_bytes), DEFAULT_CANDIDATE)


def all_sizes(proposals: Sequence[Proposal]) -> list[int]:
    """The sizes of all points in bytes, ascending."""
    return sorted({size for proposal in proposals for size in proposal.sizes})


def agreed(proposals: Sequence[Proposal]) -> dict[int, int]:
    """Place in :func:`all_sizes` of each size that some point has measured -> the candidate on which all agree.

    Where they differ it is the default. With one proposal it is that one.
    """
    sizes = all_sizes(proposals)
    measured = {proposal.sizes[place] for proposal in proposals for place in proposal.choices}
    chosen = {}
    for place, size in enumerate(sizes):
        if size in measured:
            wanted = {candidate for proposal in proposals if (candidate := proposal.at(size)) is not None}
            chosen[place] = wanted.pop() if len(wanted) == 1 else DEFAULT_CANDIDATE
    return chosen


def disputed(proposals: Sequence[Proposal]) -> list[int]:
    wanted = {size: {proposal.at(size) for proposal in proposals} - {None} for size in all_sizes(proposals)}
    measured = {proposal.sizes[place] for proposal in proposals for place in proposal.choices}
    return [size for size, candidates in wanted.items() if size in measured and len(candidates) > 1]


def everywhere(ranges: Sequence[SizeRange], choices: Mapping[int, int]) -> bool:
    """Whether one setting was chosen for every measured size."""
    return len(ranges) == 1 and len(ranges[0].places) == len(choices)


def summed_up(answers: Sequence[Answer]) -> Answer:
    """The answer that stands for several points of one size.

    It is SLOWER if one of them is, else FASTER if one is; of those alike it has the largest ratio.
    """
    return min(answers, key=lambda answer: (WORDS.index(answer.verdict), -answer.ratio))
