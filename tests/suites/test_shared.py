"""Sizes, counts, rank rules and printed numbers against reference values of OMB 7.5."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.datatype_layouts import volume_of
from omb_py.engine.program.language import Region, Step, walk
from omb_py.suites.imb import exchanges, random_pairs, stencils, threads, windows
from omb_py.suites.imb.threads import IN_THREADS
from omb_py.suites.registry import BENCHMARKS
from omb_py.suites.shared import PER_CALL
from tests.support.kinds import one_of_each
from tests.support.machines.simulated import cell, measured

MIB = 1 << 20
_EXCHANGES = tuple(each.name for each in exchanges.BENCHMARKS)
EXCHANGES = ("sendrecv", "hypercube", *_EXCHANGES, *(name for name, alone in IN_THREADS.items() if alone in _EXCHANGES))
"""Benchmarks of several steps, or of a step that takes no time of the series."""


LATENCY, BANDWIDTH = ((10000, 100), (1000, 10)), ((100, 10), (20, 2))
COLLECTIVE = ((1000, 100), (100, 10))
REDUCTIONS = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "reduce_local")
IMB = {each.name for family in (exchanges, random_pairs, stencils, threads, windows) for each in family.BENCHMARKS}
"""Benchmarks whose ranks are looked at in tests/suites/imb."""
SPREAD = ("collective", "non-blocking", "persistent", "neighborhood")


def kind_of(name: str) -> str:
    """The blocking form of a collective, also of one in threads."""
    return name.removesuffix("_persistent").removesuffix("_mt").removeprefix("i")


def omb_sizes() -> list[tuple[str, int, int, tuple[int, int], tuple[int, int]]]:
    """Reference section 1.1: (name, smallest, largest, small counts, large counts)."""
    rows = [("latency", 1, 4 * MIB, *LATENCY), ("bw", 1, 4 * MIB, *BANDWIDTH), ("bibw", 1, 4 * MIB, *BANDWIDTH)]
    rows += [("put_latency", 1, 4 * MIB, *LATENCY), ("put_bibw", 1, 4 * MIB, *BANDWIDTH)]
    for name, benchmark in BENCHMARKS.items():
        if benchmark.family in SPREAD and kind_of(name) != "barrier":
            rows.append((name, 4 if kind_of(name) in REDUCTIONS else 1, MIB, *COLLECTIVE))
    return rows


def test_sizes_and_counts_are_omb_s() -> None:
    for name, smallest, largest, small, large in omb_sizes():
        benchmark = BENCHMARKS[name]
        assert benchmark.sizes is not None, name
        assert (benchmark.sizes.minimum, benchmark.sizes.maximum) == (smallest, largest), name
        assert [benchmark.counts.of(size) for size in (1, 8192, 8193, largest)] == [small, small, large, large], name


@pytest.mark.parametrize("name", one_of_each(set(BENCHMARKS) - IMB))
def test_the_rank_rule_is_what_it_says(name: str) -> None:
    rule = BENCHMARKS[name].ranks
    admitted = [n for n in range(1, 6) if rule.admits(n)]
    if name in ("multi_lat", "mbw_mr"):
        assert (rule.text, admitted) == ("an even number of ranks", [2, 4])
    elif rule.over_nodes:
        assert (rule.text, admitted) == ("several nodes with equally many ranks on each", [2, 3, 4, 5])
    elif BENCHMARKS[name].family in ("pt2pt", "one-sided"):
        assert (rule.text, admitted) == ("exactly 2 ranks", [2])
    elif name == "hypercube":
        assert (rule.text, admitted) == ("2, 4, 8, … ranks", [2, 4])
    elif BENCHMARKS[name].family in SPREAD:
        assert (rule.text, admitted) == ("2 ranks or more", [2, 3, 4, 5])


@pytest.mark.parametrize("name", one_of_each(BENCHMARKS))
def test_only_what_has_data_can_be_validated_and_typed(name: str) -> None:
    benchmark = BENCHMARKS[name]
    options = benchmark.options
    has_data = benchmark.sizes is not None or benchmark.one_element or "workload" in options
    assert ("validation" in options) == has_data
    if benchmark.family in SPREAD:
        assert ("type" in options) == (benchmark.sizes is not None)
        assert ("op" in options) == (kind_of(name) in REDUCTIONS)
        assert {"full", "process_sync"} <= options


@pytest.mark.parametrize(
    ("name", "total", "formula"),
    [
        ("bcast", 100, "broadcast"),
        ("allreduce", 100, "all_reduce"),
        ("allgather", 400, "all_gather"),
        ("alltoall", 400, "alltoall"),
        ("barrier", 0, None),
        ("latency", 100, None),
        ("bw", 100, None),
        ("bibw", 100, None),
        ("reduce", 100, "reduce"),
        ("reduce_scatter_block", 100, "reduce_scatter"),
        ("gather", 400, "gather"),
        ("scatter", 400, "scatter"),
    ],
)
def test_the_bytes_of_the_whole_operation_are_nccl_tests_(name: str, total: int, formula: str | None) -> None:
    assert BENCHMARKS[name].bytes_total(100, 4) == total
    assert BENCHMARKS[name].bandwidth == formula


@pytest.mark.parametrize(
    "name", one_of_each(name for name, b in BENCHMARKS.items() if b.sizes and "type" in b.options and b.runs is None)
)
def test_only_whole_elements_move_and_count(name: str) -> None:
    """What is stored and divided is what the calls move: at 99 B of float64 that of 96 B."""
    benchmark = BENCHMARKS[name]
    hosts = ("a", "a", "b", "b") if benchmark.ranks.over_nodes else ()
    ranks = next(n for n in (4, 2, *range(64)) if benchmark.ranks.admits(n))
    odd, whole = (cell(name, size, dtype="float64") for size in (99, 96))
    worlds = [World(rank, ranks, hosts) for rank in range(min(ranks, 4))]
    assert [benchmark.program(world, odd) for world in worlds] == [benchmark.program(world, whole) for world in worlds]
    assert volume_of(benchmark, odd, ranks) == volume_of(benchmark, whole, ranks)
    metric = benchmark.metric
    if metric.bytes_of:
        assert metric.bytes_of(odd, ranks) == metric.bytes_of(whole, ranks) > 0
    if metric.bytes_over:
        assert metric.bytes_over(odd, hosts) == metric.bytes_over(whole, hosts) > 0


@pytest.mark.parametrize(
    ("name", "ranks", "options", "moved"),
    [
        ("reduce_scatter_block", 3, {}, 36),
        ("reduce_scatter", 3, {}, 40),
        ("partitioned_latency", 2, {"partitions": 3}, 36),
        ("allreduce", 3, {}, 40),
    ],
)
def test_what_blocks_leave_out_is_not_counted(name: str, ranks: int, options: dict[str, int], moved: int) -> None:
    assert volume_of(BENCHMARKS[name], cell(name, 40, dtype="int32", **options), ranks).bytes_per_rank == moved


class TestPrinted:
    """The printed number from times that are known, by OMB's formulas worked out by hand."""

    def test_latency_is_the_sum_over_twice_the_iterations(self) -> None:
        done = measured("latency", 2, "series=3us/5us/10us", iterations=3)
        assert sum(done.laps["time"]) == pytest.approx((6 + 10 + 20) / (2 * 3))

    def test_bw_is_all_bytes_over_all_time(self) -> None:
        done = measured("bw", 2, "series=100us/300us", size=1000, iterations=2, window=64)
        by_hand = 1000 / 1e6 * 2 * 64 / (200e-6 + 600e-6)
        assert done.bytes_moved is not None
        assert done.bytes_moved / done.laps["time"][0] == pytest.approx(by_hand) == pytest.approx(160.0)

    def test_bibw_counts_twice_the_bytes(self) -> None:
        done = measured("bibw", 2, "series=100us/300us", size=1000, iterations=2, window=64)
        assert done.bytes_moved is not None
        assert done.bytes_moved / done.laps["time"][0] == pytest.approx(2 * 1000 / 1e6 * 2 * 64 / 400e-6)

    # a sample of an exchange holds three steps or more, of which each takes a time of the series; that of a host none
    @pytest.mark.parametrize(
        "name",
        [
            name
            for name in one_of_each(BENCHMARKS)
            if BENCHMARKS[name].metric is PER_CALL
            and BENCHMARKS[name].family != "host"
            and name not in (*EXCHANGES, "barrier")
        ],
    )
    def test_collectives_are_the_mean_over_ranks_of_their_means(self, name: str) -> None:
        done = measured(name, 3, "series=1us/3us:10us/30us:4us/4us", iterations=2)
        assert done.laps["time"] == [2, 20, 4]

    def test_a_barrier_that_follows_another_holds_the_wait_for_the_slowest(self) -> None:
        """Back to back, as in OMB: rank 1 is out of the first after 10 us, and the others wait for it in the second."""
        done = measured("barrier", 3, "series=1us/3us:10us/30us:4us/4us", iterations=2)
        assert done.laps["time"] == [(1 + 9 + 3) / 2, 20, (4 + 6 + 4) / 2]


@pytest.mark.parametrize(
    "name", one_of_each(n for n, b in BENCHMARKS.items() if b.sizes and b.ranks.admits(2) and not b.ranks.over_nodes)
)
def test_odd_sizes_move_whole_elements_within_their_buffers(name: str) -> None:
    for distinct in (False, True):
        program = BENCHMARKS[name].program(World(1, 2), cell(name, 13, dtype="int32", distinct=distinct))
        sizes = {buffer.name: buffer.nbytes for buffer in program.buffers}
        for node, k in walk(program.stages[0].variants[0]):
            for operand in node.operands.values() if isinstance(node, Step) else ():
                if isinstance(operand, Region):
                    region = operand.at(k)
                    assert region.nbytes in (0, 1, 4, 8, 12, 24)
                    assert region.offset + region.nbytes <= sizes[region.buffer]
    done = measured(name, 2, size=13, dtype="int32", validate=True)
    assert done.validated is True
