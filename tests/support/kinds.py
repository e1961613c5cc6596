"""One benchmark of each kind: what a test needs that shows something of all benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from omb_py.engine.program.benchmark import Benchmark
from omb_py.suites.registry import BENCHMARKS

ONE_OF_EACH = frozenset(
    (
        *("latency", "bw", "bibw", "mbw_mr", "latency_mt", "latency_mp", "bw_persistent", "partitioned_latency"),
        *("bw_fan_in", "barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "gather", "scatterv", "allgatherv"),
        *("alltoallw", "iallreduce", "ialltoallv", "allgather_persistent", "reduce_scatter_block_persistent"),
        *("neighbor_alltoallw", "ineighbor_allgather", "put_latency", "get_bw", "put_bibw", "get_acc_latency"),
        *("cas_latency", "uniband", "sendrecv_replace", "pingpong_any_source", "reduce_local", "corandom", "stencil2d"),
        *("one_put_all", "exchange_get", "passive_put", "sendrecv_mt", "bcast_mt", "hypercube", "init", "comm_split"),
        *("noise", "step"),
    )
)


def one_of_each(names: Iterable[str]) -> list[str]:
    """Those of the names that stand for a kind of benchmark: for quick tests, since others are built the same way."""
    return sorted(name for name in names if name in ONE_OF_EACH)


def one_of_each_family(names: Iterable[str]) -> list[str]:
    """Those of :func:`one_of_each` of another family or unit, with or without sizes: others take the same words."""
    chosen: dict[tuple[object, ...], str] = {}
    for name in one_of_each(names):
        benchmark = BENCHMARKS[name]
        chosen.setdefault((benchmark.family, benchmark.sizes is None, benchmark.metric.unit), name)
    return list(chosen.values())


def checkable(benchmark: Benchmark) -> bool:
    """Whether a benchmark moves data that can be checked."""
    return "validation" in benchmark.options
