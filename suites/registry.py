"""All benchmarks by name: ours, and those of installed packages (entry-point group ``omb_py.benchmarks``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from omb_py.engine.program.benchmark import Benchmark
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.plug_ins import PlugIns, load_plug_ins
from omb_py.suites.lookup import find_benchmark, learn_homes

ENTRY_POINTS = "omb_py.benchmarks"

FAMILIES = (
    "pt2pt.two_ranks",
    "pt2pt.threads",
    "pt2pt.forked_children",
    "pt2pt.multi_pair",
    "pt2pt.persistent",
    "pt2pt.partitioned",
    "pt2pt.congestion",
    "collective.calls",
    "collective.sendrecv",
    "collective.neighborhood",
    "one_sided",
    "imb.exchanges",
    "imb.random_pairs",
    "imb.stencils",
    "imb.windows",
    "imb.threads",
    "startup",
    "host_noise",
    "workloads.benchmark",
)
"""Modules of benchmarks that are commands, in the order of help."""
_WITHOUT_COMMANDS = ("guidelines.patterns", "training.benchmark", "functions")


def home_of(name: str) -> str:
    """The module that declares a benchmark which needs no other module to be known; empty for all others."""
    homes = (f"{__package__}.{family}" for family in FAMILIES)
    return next((home for home in homes if any(b.name == name for b in _load_declared(home))), "")


def _load_declared(home: str) -> Sequence[Benchmark]:
    declared: Sequence[Benchmark] = import_module(home).BENCHMARKS
    return declared


class _OurBenchmarks(Mapping[str, Benchmark]):
    """Loads families until one has the name that is asked for: a command that measures needs one of them."""

    def __getitem__(self, name: str) -> Benchmark:
        if not (home := home_of(name)):
            raise KeyError(name)
        learn_homes({name: home})
        return find_benchmark(name)

    def __iter__(self) -> Iterator[str]:
        return (benchmark.name for family in FAMILIES for benchmark in _load_declared(f"{__package__}.{family}"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


BENCHMARKS: Mapping[str, Benchmark] = _OurBenchmarks()
"""The benchmarks that come with omb-py."""


def _third_party() -> Mapping[str, Benchmark]:
    loaded = _plug_ins().loaded
    return {benchmark.name: benchmark for benchmark in loaded.values()}


def broken() -> Mapping[str, str]:
    """Name of each third-party benchmark that could not be loaded -> the reason."""
    return _plug_ins().broken


def _plug_ins() -> PlugIns[Benchmark]:
    return load_plug_ins(ENTRY_POINTS, Benchmark, ours=home_of, named=False)


def names() -> list[str]:
    """Names of all benchmarks."""
    return [*BENCHMARKS, *_third_party()]


def find(name: str) -> Benchmark:
    """The benchmark called `name`, with or without OMB's ``osu_``, or that which IMB calls so.

    Raises:
        UsageError: there is no such benchmark; names the nearest one.
        EnvironmentProblem: a third-party package has it, but it cannot be loaded.
    """
    short = name.lower().removeprefix("osu_")
    more = (import_module(f"{__package__}.{home}").BENCHMARKS.get(short) for home in _WITHOUT_COMMANDS)
    benchmark = BENCHMARKS.get(short) or next(filter(None, more), None) or _third_party().get(short)
    if benchmark is not None:
        return benchmark
    if short in broken():
        raise EnvironmentProblem(f"benchmark {short} cannot be loaded: {broken()[short]}")
    from omb_py.results.dialects.imb.names import benchmark_of  # not needed for names of ours

    if ours := benchmark_of(short):
        return BENCHMARKS[ours]
    raise UsageError(f"unknown benchmark {name!r}: {nearest(short, names())}")
