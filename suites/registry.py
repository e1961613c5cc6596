"""All benchmarks by name: ours, and those of installed packages (entry-point group ``omb_py.benchmarks``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from omb_py.engine.benchmark import Benchmark
from omb_py.engine.layouts import laid_out
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.suites import (
    collective,
    congestion,
    guidelines,
    host,
    neighborhood,
    one_sided,
    pairs,
    partitioned,
    persistent,
    processes,
    pt2pt,
    ring,
    startup,
    threads,
)
from omb_py.suites.training import benchmark as training
from omb_py.suites.workloads import benchmark as workloads

ENTRY_POINTS = "omb_py.benchmarks"

_FAMILIES = (
    pt2pt, threads, processes, pairs, persistent, partitioned, congestion, collective, ring, neighborhood,
    one_sided, startup, host, workloads,
)  # fmt: skip

BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {b.name: laid_out(b) for family in _FAMILIES for b in family.BENCHMARKS}
)
"""The benchmarks that come with omb-py."""

BROKEN: dict[str, str] = {}
"""Third-party benchmarks that could not be loaded -> why."""


@cache
def _third_party() -> Mapping[str, Benchmark]:
    from importlib.metadata import entry_points  # slow to import, and needed for the names of others only

    found: dict[str, Benchmark] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
        except Exception as error:  # a broken plug-in must not break the tool
            BROKEN[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(loaded, Benchmark):
            found[loaded.name] = loaded
        else:
            BROKEN[entry.name] = f"{entry.value} is no Benchmark but of type {type(loaded).__name__}"
    return found


def names() -> list[str]:
    """Names of all benchmarks."""
    return [*BENCHMARKS, *(n for n in _third_party() if n not in BENCHMARKS)]


def find(name: str) -> Benchmark:
    """The benchmark called `name`, with or without OMB's ``osu_``.

    Raises:
        UsageError: there is none; with the nearest name.
        EnvironmentProblem: another package has it, but it cannot be loaded.
    """
    short = name.lower().removeprefix("osu_")
    ours = BENCHMARKS.get(short) or guidelines.BENCHMARKS.get(short) or training.BENCHMARKS.get(short)
    found = ours or _third_party().get(short)
    if found is None and short in BROKEN:
        raise EnvironmentProblem(f"benchmark {short} cannot be loaded: {BROKEN[short]}")
    if found is None:
        raise UsageError(f"unknown benchmark {name!r}: {nearest(short, names())}")
    return found
