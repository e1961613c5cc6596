"""Requests for the mock-ups that criteria name: the guideline's program measures both sides in every launch."""

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
    """Find the guideline of a benchmark by its mock-up (``reduce + bcast``), its number (``gl5``) or its whole name.

    Raises:
        UsageError: the benchmark has no guideline, or none of that name; the message has the nearest.
    """
    candidates = [g for g in GUIDELINES.values() if g.left == benchmark]
    if not candidates:
        known = ", ".join(dict.fromkeys(g.left for g in GUIDELINES.values()))
        raise UsageError(f"there is no mock-up of {benchmark}: there are some of {known}")
    plain = " + ".join(part.strip().removeprefix("osu_") for part in word.split("+"))
    by_word = {name: g for g in candidates for name in (g.name, g.name.partition("_")[0], words_of(g))}
    if plain not in by_word:
        raise UsageError(f"no mock-up of {benchmark} is called {word!r}: {nearest(plain, by_word)}")
    return by_word[plain]


def words_of(guideline: Guideline) -> str:
    """Return the right side of a guideline: ``reduce + bcast``."""
    return guideline.text.partition(" ≤ ")[2]


def with_mock_ups(
    checked: Sequence[CheckedRequest], criteria: Iterable[Criterion]
) -> tuple[list[CheckedRequest], list[Skip]]:
    """Add the requests of the mock-ups that criteria compare with; those that are impossible here are skipped.

    A mock-up is measured wherever the suite measures the criterion's benchmark: on the same ranks and backends, with
    the criterion's sizes or else those of the benchmark.
    """
    mock_ups: dict[str, Request] = {}
    skips: dict[Skip, None] = {}
    for criterion in criteria:
        if not criterion.program:
            continue
        guideline = GUIDELINES[criterion.program]
        for request in (measured.request for measured in checked):
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
            mock = replace(_fitting(request, criterion.program), sizes=sizes)
            mock_ups.setdefault(repr(replace(mock, part=None)), mock)
    return [*checked, *map(check, mock_ups.values())], list(skips)


def _fitting(request: Request, program: str) -> Request:
    """Turn a request into one for a guideline's program, without the options that it does not take."""
    benchmark = GUIDELINES[program].benchmark
    usual: dict[str, Any] = {field.name: field.default for field in fields(Request)}
    changed: dict[str, Any] = {o.name: usual[o.name] for o in TABLE if o.lacks and not o.takes(benchmark)}
    changed |= {"benchmark": program, "cache": None, "process_sync": None}
    return replace(request, **changed)
