"""Mock-ups that criteria ask for: the guideline's own program is measured, both sides in every launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from omb_py.backends.registry import capabilities_of
from omb_py.errors import UsageError, nearest
from omb_py.options.request import Request
from omb_py.options.table import TABLE
from omb_py.orchestrate.planning.plan import CheckedRequest, check, check_ranks
from omb_py.orchestrate.planning.skip import Skip
from omb_py.results.accept.criteria import Criterion
from omb_py.suites.guidelines.patterns import GUIDELINES, Guideline, lacks


def mock_up(benchmark: str, word: str) -> Guideline:
    """The guideline of a benchmark whose mock-up is called `word`: ``reduce + bcast``, ``gl5``, or its whole name.

    Raises UsageError with the nearest, or that the benchmark has none.
    """
    mine = [g for g in GUIDELINES.values() if g.left == benchmark]
    if not mine:
        known = ", ".join(dict.fromkeys(g.left for g in GUIDELINES.values()))
        raise UsageError(f"there is no mock-up of {benchmark}: there are some of {known}")
    told = " + ".join(part.strip().removeprefix("osu_") for part in word.split("+"))
    by_word = {name: g for g in mine for name in (g.name, g.name.partition("_")[0], words_of(g))}
    if told not in by_word:
        raise UsageError(f"no mock-up of {benchmark} is called {word!r}: {nearest(told, by_word)}")
    return by_word[told]


def words_of(guideline: Guideline) -> str:
    """Its right side in words: ``reduce + bcast``."""
    return guideline.text.partition(" ≤ ")[2]


def with_mock_ups(
    checked: Sequence[CheckedRequest], criteria: Iterable[Criterion]
) -> tuple[list[CheckedRequest], list[Skip]]:
    """The requests of a suite and those of the programs that its criteria compare with; what cannot be had is skipped.

    A program is measured wherever the suite measures the criterion's benchmark: on the same ranks and backends, of
    the criterion's sizes, else of the same.
    """
    made: dict[str, Request] = {}
    skips: dict[Skip, None] = {}
    for criterion in criteria:
        if not criterion.program:
            continue
        guideline = GUIDELINES[criterion.program]
        for request in (each.request for each in checked):
            if request.benchmark != criterion.benchmark or request.ranks != criterion.where.get("ranks", request.ranks):
                continue
            offers = capabilities_of(request.backends)
            why = [lacks(guideline, offers[b]) for b in request.backends]
            try:
                check_ranks(guideline.benchmark, request.ranks or 0)
            except UsageError as error:
                why.append(str(error))
            if reason := next(filter(None, why), ""):
                skips[Skip(criterion.program, reason)] = None
                continue
            sizes = ",".join(map(str, criterion.sizes)) or request.sizes
            one = replace(_fitting(request, criterion.program), sizes=sizes)
            made.setdefault(repr(replace(one, part=None)), one)
    mock_ups = [check(request) for request in made.values()]
    return [*checked, *mock_ups], list(skips)


def _fitting(request: Request, program: str) -> Request:
    """The request for a guideline's program, without options that it does not take."""
    benchmark = GUIDELINES[program].benchmark
    usual: dict[str, Any] = {field.name: field.default for field in fields(Request)}
    changed: dict[str, Any] = {o.name: usual[o.name] for o in TABLE if o.lacks and not o.takes(benchmark)}
    changed |= {"benchmark": program, "cache": None, "process_sync": None}
    return replace(request, **changed)
