"""All benchmarks by name: ours, and those of installed packages (entry-point group ``omb_py.benchmarks``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.plug_ins import load_plug_ins
from omb_py.suites import functions, host_noise, one_sided, startup
from omb_py.suites.collective import calls, neighborhood, sendrecv
from omb_py.suites.guidelines import patterns
from omb_py.suites.imb import exchanges, random_pairs, stencils, windows
from omb_py.suites.imb import threads as imb_threads
from omb_py.suites.lookup import complete
from omb_py.suites.pt2pt import congestion, forked_children, multi_pair, partitioned, persistent, threads, two_ranks
from omb_py.suites.training import benchmark as training
from omb_py.suites.workloads import benchmark as workloads

ENTRY_POINTS = "omb_py.benchmarks"

FAMILIES = (
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
    {b.name: complete(b) for family in FAMILIES for b in family.BENCHMARKS}
)
"""The benchmarks that come with omb-py."""


def _third_party() -> Mapping[str, Benchmark]:
    loaded = load_plug_ins(ENTRY_POINTS, Benchmark, named=False).loaded
    return {benchmark.name: benchmark for benchmark in loaded.values()}


def broken() -> Mapping[str, str]:
    """Name of each third-party benchmark that could not be loaded -> the reason."""
    return load_plug_ins(ENTRY_POINTS, Benchmark, named=False).broken


def names() -> list[str]:
    """Names of all benchmarks."""
    return [*BENCHMARKS, *(n for n in _third_party() if n not in BENCHMARKS)]


def find(name: str) -> Benchmark:
    """The benchmark called `name`, with or without OMB's ``osu_``, or that which IMB calls so.

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
    if short in broken():
        raise EnvironmentProblem(f"benchmark {short} cannot be loaded: {broken()[short]}")
    from omb_py.results.dialects.imb.names import benchmark_of  # not needed for names of ours

    if ours := benchmark_of(short):
        return BENCHMARKS[ours]
    raise UsageError(f"unknown benchmark {name!r}: {nearest(short, names())}")
