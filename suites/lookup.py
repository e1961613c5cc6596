"""Benchmarks by name for a rank, which loads those that it measures and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from omb_py.engine.program.benchmark import Benchmark
from omb_py.engine.program.datatype_layouts import laid_out
from omb_py.engine.program.groups import grouped

_homes: dict[str, str] = {}
"""Benchmark -> the module with its declaration."""


def learn_homes(homes: Mapping[str, str]) -> None:
    """Take from the parent where the benchmarks of this launch are declared (:func:`home_of`)."""
    _homes.update(homes)


def home_of(name: str) -> str:
    """The module that declares a benchmark which needs no other module to be known; empty for all others."""
    from omb_py.suites import registry

    own = name in registry.BENCHMARKS
    return next((f.__name__ for f in registry.FAMILIES if own and any(b.name == name for b in f.BENCHMARKS)), "")


@cache
def find_benchmark(name: str) -> Benchmark:
    """The benchmark called `name`. Raises as :func:`omb_py.suites.registry.find` does."""
    if name not in _homes:
        from omb_py.suites.registry import find

        return find(name)
    declared: Iterable[Benchmark] = import_module(_homes[name]).BENCHMARKS
    return complete(next(benchmark for benchmark in declared if benchmark.name == name))


def complete(benchmark: Benchmark) -> Benchmark:
    """A benchmark of ours with what every one has: groups of ranks, and layouts of types."""
    return grouped(laid_out(benchmark))
