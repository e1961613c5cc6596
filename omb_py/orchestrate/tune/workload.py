"""The collectives that the step of a workload calls, as requests that can be tuned, and the step itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.options.request import Request
from omb_py.options.table import takes
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.resolution import CheckedRequest, resolve
from omb_py.orchestrate.tune.proof import STEP, at_sizes
from omb_py.orchestrate.workloads.prediction import asks
from omb_py.results.analysis.step_prediction import MESSAGES, Ask
from omb_py.suites import BENCHMARKS, find
from omb_py.suites.workloads.families import parse_workload

_UNTUNED = {MESSAGES, "barrier"}
"""Calls without an algorithm to choose by size."""


@dataclass(frozen=True, slots=True)
class Called:
    """Calls of one collective that differ in size alone."""

    benchmark: str
    ranks: int
    dtype: str
    in_place: bool
    sizes: tuple[int, ...]
    """In bytes, as the benchmark counts them, ascending."""
    times: int
    """How often a step calls it, on the rank that calls it most often."""

    def __str__(self) -> str:
        kind = ", ".join(filter(None, (self.dtype, "in place" if self.in_place else "")))
        return f"{self.benchmark} on {self.ranks} ranks{f', {kind}' if kind else ''}: {self.times} calls a step"


def called(text: str, ranks: int) -> list[Called]:
    """The collectives that a step calls, in the order of its first calls.

    Args:
        text: the workload, as ``ddp:model=resnet50``.

    Raises:
        UsageError: there is no such workload, it does not fit the ranks, or it calls no collective.
    """
    sizes: dict[tuple[str, int, str, bool], dict[int, int]] = {}
    counts: dict[tuple[str, int, str, bool], int] = {}
    for of_rank in asks(parse_workload(text), ranks):
        own: dict[tuple[str, int, str, bool], int] = {}
        for ask in of_rank:
            if (key := _key(ask, ranks)) is not None and ask.size_bytes:
                sizes.setdefault(key, {})[ask.size_bytes] = 1
                own[key] = own.get(key, 0) + 1
        for key, count in own.items():
            counts[key] = max(count, counts.get(key, 0))
    if not sizes:
        raise UsageError(f"{text} calls no collective on {ranks} ranks: there is nothing to tune")
    return [Called(*key, tuple(sorted(of_key)), counts[key]) for key, of_key in sizes.items()]


def _key(ask: Ask, world: int) -> tuple[str, int, str, bool] | None:
    ranks = len(ask.members) or world
    return None if ask.benchmark in _UNTUNED or ranks < 2 else (ask.benchmark, ranks, ask.dtype, ask.in_place)


def step_of(request: Request, text: str) -> CheckedRequest:
    """The request of the step itself. Raises UsageError, EnvironmentProblem."""
    parse_workload(text)
    return resolve(parse(request.changed(benchmark=STEP, workload=text)))


def requests_of(step: CheckedRequest) -> Iterator[CheckedRequest]:
    """The collectives of a step, each in the form in which the step calls it: non-blocking where the backend has that.

    Raises:
        UsageError, EnvironmentProblem: as :func:`called`, or the backend has no such collective.
    """
    request, ranks = step.request, step.request.ranks
    assert ranks is not None  # the command line has filled it in
    for each in called(request.options.workload or "", ranks):
        form = _form(request, each)
        yield at_sizes(form, each.sizes)


def _form(request: Request, each: Called) -> CheckedRequest:
    names = [name for name in (f"i{each.benchmark}", each.benchmark) if name in BENCHMARKS]
    refused: EnvironmentProblem | UsageError | None = None
    for name in names:
        benchmark = find(name)
        dtypes = (each.dtype,) if each.dtype and takes(benchmark, "type") else ()
        wanted = request.changed(
            benchmark=name,
            workload=None,
            ranks=each.ranks,
            dtypes=dtypes,
            in_place=each.in_place and takes(benchmark, "in_place"),
        )
        try:
            return resolve(parse(wanted))
        except (EnvironmentProblem, UsageError) as error:
            refused = refused or error
    raise refused or UsageError(f"no benchmark measures {each}")


def held_compute(text: str, compute_us: float) -> str:
    """The workload with so much computing, where it had as much as its calls take (``compute=auto``).

    Without this, faster calls would shorten the computing, too.

    >>> held_compute("ddp:model=resnet50", 120.4)
    'ddp:model=resnet50,compute=120us'
    """
    name, _, settings = text.partition(":")
    kept = [part for part in settings.split(",") if part and not part.strip().startswith("compute=")]
    return f"{name}:{','.join([*kept, f'compute={max(1, round(compute_us))}us'])}"


def computes_as_long_as_it_calls(text: str) -> bool:
    """Whether the workload's computing lasts as long as its calls, by definition."""
    return parse_workload(text).values["compute"] is None
