"""What ``omb-py tune`` shall tune, from its command line: the points of the grid, each with its candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.cli.commands.benchmark import request_of_line
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.options.request import DEFAULT_STORE, Request
from omb_py.orchestrate.planning.plan import CheckedRequest, check
from omb_py.orchestrate.tune.candidates import candidates, distinct
from omb_py.orchestrate.tune.knobs import library_of
from omb_py.orchestrate.tune.proof import STEP
from omb_py.orchestrate.tune.session import PointCandidates
from omb_py.orchestrate.tune.workload import requests_of, step_of
from omb_py.results.tune.rules import LibrarySetting
from omb_py.suites import find, names

_UNSTORED = "a tuning stores its launches: leave --no-store out"


@dataclass(frozen=True, slots=True)
class TuneGrid:
    """What the words of the command line name."""

    words: Sequence[str]
    """The collective and its options; with a workload the options alone."""
    ranks: Sequence[int]
    ops: Sequence[str] = ()
    """Reductions; empty: that of the collective."""
    in_place: Sequence[bool] = ()
    """Kinds of buffers; empty: as the collective's options say."""
    workload: str = ""

    def points(self, given: Mapping[str, Any]) -> tuple[list[CheckedRequest], CheckedRequest | None]:
        """The requests of all points, and that of a workload's step. Raises UsageError, EnvironmentProblem."""
        if not self.workload:
            return [point for ranks in self.ranks for point in self._of_collective(ranks, given)], None
        if self.words and not self.words[0].startswith("-"):
            raise UsageError(f"a workload names its collectives: leave {self.words[0]!r} or --workload out")
        if len(self.ranks) > 1 or self.ops or self.in_place:
            raise UsageError("a workload is tuned as it is called: one number of -n, and neither --op nor --in-place")
        request = request_of_line([STEP, *self.words, "-n", str(self.ranks[0])], unstored=_UNSTORED)
        step = step_of(_stored(request, given), self.workload)
        return list(requests_of(step)), step

    def _of_collective(self, ranks: int, given: Mapping[str, Any]) -> Iterator[CheckedRequest]:
        if not self.words or self.words[0].startswith("-"):
            raise UsageError("which collective? It comes first: omb-py tune allreduce -n 4")
        short = self.words[0].lower().removeprefix("osu_")
        collectives = [name for name in names() if find(name).family in ("collective", "non-blocking", "persistent")]
        if short not in collectives:
            raise UsageError(f"no collective {self.words[0]!r}: {nearest(short, collectives)}")
        request = request_of_line([*self.words, "-n", str(ranks)], unstored=_UNSTORED)
        for op, in_place in product(self.ops or (request.op,), self.in_place or (request.in_place,)):
            yield check(replace(_stored(request, given), op=op, in_place=in_place))


def _stored(request: Request, given: Mapping[str, Any]) -> Request:
    store = given["store"] or request.store or DEFAULT_STORE
    return replace(request, store=store, seed=given["seed"], quiet=given["quiet"])


def parts_of(
    points: Sequence[CheckedRequest], given: Sequence[LibrarySetting], knobs: Mapping[str, Sequence[str]]
) -> tuple[tuple[PointCandidates, ...], LibraryKnobs | None]:
    """The points with their candidates, and what can be set in the library.

    Args:
        given: candidates of the command line; those need no known library: its files are then left out.

    Raises:
        UsageError: there is no such knob or value, or two candidates are alike.
        EnvironmentProblem: the library has nothing to set.
    """
    try:
        library = library_of(points[0].request.backends[0])
    except EnvironmentProblem as problem:
        if given and not knobs:
            return tuple(PointCandidates(point, distinct(given)) for point in points), None
        raise EnvironmentProblem(f"{problem}: or name settings to try: --candidate NAME=VARIABLE=VALUE") from None
    if given and not knobs:
        return tuple(PointCandidates(point, distinct(given)) for point in points), library
    of_each = {name: candidates(library, name, knobs) for name in {point.benchmark.name for point in points}}
    return tuple(
        PointCandidates(point, distinct([*given, *of_each[point.benchmark.name]])) for point in points
    ), library
