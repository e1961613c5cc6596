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
    """Take where benchmarks are declared (:func:`omb_py.suites.registry.home_of`): a rank has it from its parent."""
    _homes.update(homes)


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
