"""All benchmarks by name: ours, and those of installed packages (entry-point group ``omb_py.benchmarks``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.concurrent_groups import grouped
from omb_py.engine.program.datatype_layouts import laid_out
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.suites import functions, host_noise, one_sided, startup
from omb_py.suites.collective import calls, neighborhood, sendrecv
from omb_py.suites.guidelines import patterns
from omb_py.suites.imb import exchanges, random_pairs, stencils, windows
from omb_py.suites.imb import threads as imb_threads
from omb_py.suites.pt2pt import congestion, forked_children, multi_pair, partitioned, persistent, threads, two_ranks
from omb_py.suites.training import benchmark as training
from omb_py.suites.workloads import benchmark as workloads

ENTRY_POINTS = "omb_py.benchmarks"

_FAMILIES = (
    two_ranks,
    threads,
    forked_children,
    multi_pair,
    persistent,
    partitioned,
    congestion,
    calls,
    sendrecv,
    neighborhood,
    one_sided,
    exchanges,
    random_pairs,
    stencils,
    windows,
    imb_threads,
    startup,
    host_noise,
    workloads,
)

BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {b.name: grouped(laid_out(b)) for family in _FAMILIES for b in family.BENCHMARKS}
)
"""The benchmarks that come with omb-py."""

BROKEN: dict[str, str] = {}
"""Name of each third-party benchmark that could not be loaded -> the reason."""


@cache
def _third_party() -> Mapping[str, Benchmark]:
    from importlib.metadata import entry_points  # slow to import, and needed for third-party benchmarks only

    benchmarks: dict[str, Benchmark] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
        except Exception as error:  # a broken plug-in must not break the tool
            BROKEN[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(loaded, Benchmark):
            benchmarks[loaded.name] = loaded
        else:
            BROKEN[entry.name] = f"{entry.value} is no Benchmark but of type {type(loaded).__name__}"
    return benchmarks


def names() -> list[str]:
    """Names of all benchmarks."""
    return [*BENCHMARKS, *(n for n in _third_party() if n not in BENCHMARKS)]


def find(name: str) -> Benchmark:
    """The benchmark called `name`, with or without OMB's ``osu_``.

    Raises:
        UsageError: there is no such benchmark; names the nearest one.
        EnvironmentProblem: a third-party package has it, but it cannot be loaded.
    """
    short = name.lower().removeprefix("osu_")
    own = BENCHMARKS.get(short) or patterns.BENCHMARKS.get(short) or training.BENCHMARKS.get(short)
    own = own or functions.BENCHMARKS.get(short)
    benchmark = own or _third_party().get(short)
    if benchmark is not None:
        return benchmark
    if short in BROKEN:
        raise EnvironmentProblem(f"benchmark {short} cannot be loaded: {BROKEN[short]}")
    raise UsageError(f"unknown benchmark {name!r}: {nearest(short, names())}")
