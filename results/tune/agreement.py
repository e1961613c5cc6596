"""One proposal for all points of a collective on as many ranks: a library's file cannot distinguish them. Pure.

A size has the setting that every search whose sizes reach so far proposes there; where they differ, nothing is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omb_py.results.compare.judge import WORDS, Answer
from omb_py.results.tune.elimination import DEFAULT_CANDIDATE
from omb_py.results.tune.segments import Segment, segments


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
    """Sizes in bytes at which the points want different settings, ascending."""
    wanted = {size: {proposal.at(size) for proposal in proposals} - {None} for size in all_sizes(proposals)}
    measured = {proposal.sizes[place] for proposal in proposals for place in proposal.choices}
    return [size for size, candidates in wanted.items() if size in measured and len(candidates) > 1]


def everywhere(ranges: Sequence[Segment], choices: Mapping[int, int]) -> bool:
    """Whether one setting was chosen for every measured size."""
    return len(ranges) == 1 and len(ranges[0].places) == len(choices)


def summed_up(answers: Sequence[Answer]) -> Answer:
    """The answer that stands for several points of one size.

    It is SLOWER if one of them is, else FASTER if one is; of those alike it has the largest ratio.
    """
    return min(answers, key=lambda answer: (WORDS.index(answer.verdict), -answer.ratio))
