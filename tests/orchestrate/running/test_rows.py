"""A row says what was measured: every number here is computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import omb_py
from omb_py.engine.measuring.cell_result import CellResult, LapSeries, PairRound
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.program.pair_schedule import Pair, Schedule
from omb_py.engine.rank.launch_facts import LaunchFacts
from omb_py.options.table import make_cell
from omb_py.orchestrate.running.rows import LaunchIdentity, make_row, pair_rows
from omb_py.results.store.row import Row
from omb_py.results.store.schema import COLUMNS

FACTS: LaunchFacts = {
    "ranks": 4,
    "hosts": ["a", "a", "b", "b"],
    "library": "MPICH",
    "library_version": "5.0.2",
    "binding_version": "mpi4py 4.1.2",
    "thread_level": "funneled",
}


def cell(benchmark: str, **changes: Any) -> Cell:
    return make_cell(benchmark, "mpi", "native", changes.pop("size", 1000), **changes)


def message(cell: Cell, slowest: list[float], average: list[float], means: list[float], **more: Any) -> CellResult:
    values = {
        "series": {"time": LapSeries(max=np.array(slowest), avg=np.array(average))},
        "laps": {"time": means},
        "slowest_rank_share": [0.0] * len(means),
        "skew_us": 0.5,
        **more,
    }
    return CellResult(cell, len(slowest), "fixed", "abc", **values)


def row(result: CellResult, facts: LaunchFacts = FACTS) -> Row:
    return make_row(LaunchIdentity("run", "run-0", 0, "2026-11-21T00:00:00+00:00", facts, "env"), result)


def test_every_column_is_there_and_no_other() -> None:
    made = row(message(cell("allreduce", dtype="int32"), [3.0], [2.0], [1.0, 2.0, 2.0, 3.0]))
    assert set(made) == {column.name for column in COLUMNS}
    assert [c.name for c in COLUMNS if c.required and made[c.name] is None] == []


def test_collective_value_is_the_mean_of_the_ranks_means_and_statistics_are_of_the_maximum() -> None:
    made = row(message(cell("allreduce", dtype="int32"), [4.0, 6.0], [3.0, 4.0], [3.0, 3.0, 4.0, 4.0]))
    assert made["value"] == 3.5
    assert made["unit"] == "us"
    assert (made["mean_us"], made["min_us"], made["max_us"], made["median_us"]) == (5.0, 4.0, 6.0, 5.0)
    assert made["samples_us"] == [4.0, 6.0]
    assert made["samples_avg_us"] == [3.0, 4.0]


def test_busbw_of_an_allreduce() -> None:
    made = row(message(cell("allreduce", size=4000, dtype="int32"), [2.0], [2.0], [2.0] * 4))
    # 4000 B in 2 µs are 2 GB/s; on the wire 2 (n-1)/n = 1.5 times as much
    assert made["algbw_gbps"] == pytest.approx(2.0)
    assert made["busbw_gbps"] == pytest.approx(3.0)
    assert made["bw_formula"] == "nccl-tests:all_reduce"
    assert (made["bytes_per_rank"], made["bytes_total"], made["count"]) == (4000, 4000, 1000)


def test_only_whole_elements_count() -> None:
    made = row(message(cell("allreduce", size=4003, dtype="int32"), [2.0], [2.0], [2.0] * 4))
    assert (made["size_bytes"], made["bytes_per_rank"], made["bytes_total"], made["count"]) == (4003, 4000, 4000, 1000)
    assert (made["algbw_gbps"], made["busbw_gbps"]) == (pytest.approx(2.0), pytest.approx(3.0))


def test_busbw_of_a_nonblocking_collective_is_that_of_call_and_wait_alone() -> None:
    told = message(cell("iallreduce", size=4000, dtype="int32"), [8.0], [8.0], [8.0] * 4)
    told.series = {"overall": told.series["time"], "pure.time": told.series["time"]}
    laps = {"overlap.init": [1.0] * 4, "overlap.compute": [4.0] * 4, "overlap.wait": [3.0] * 4, "overall": [8.0] * 4}
    told.laps = {"pure.time": [1.0, 3.0, 2.0, 2.0], **laps}
    made = row(told)
    # 4000 B in the 2 µs of call and wait, not in the 8 µs that hold the computing
    assert (made["value"], made["algbw_gbps"], made["busbw_gbps"]) == (8.0, pytest.approx(2.0), pytest.approx(3.0))
    assert made["bw_formula"] == "nccl-tests:all_reduce:pure"


def test_total_of_an_allgather_is_the_gathered_vector() -> None:
    made = row(message(cell("allgather"), [2.0], [2.0], [2.0] * 4))
    assert (made["bytes_per_rank"], made["bytes_total"]) == (1000, 4000)
    assert made["algbw_gbps"] == pytest.approx(2.0)
    assert made["busbw_gbps"] == pytest.approx(1.5)


def test_bandwidth_is_bytes_of_all_windows_over_all_time() -> None:
    facts = {**FACTS, "ranks": 2, "hosts": ["a", "b"]}
    told = message(cell("bw"), [100.0, 300.0], [100.0, 300.0], [200.0], bytes_moved=64_000)
    made = row(told, facts)
    assert made["value"] == pytest.approx(320.0)  # 64 000 B in 200 µs, MB = 10^6 B
    assert made["unit"] == "MB/s"
    assert made["metrics"] == {"bytes_moved": 64_000.0}
    assert made["sync_limited"] is None


@pytest.mark.parametrize(("mean", "us"), [("loop", 0.11), ("lap", 0.08)])
def test_a_one_sided_mean_is_omb_s_of_the_whole_loop_unless_another_is_asked_for(mean: str, us: float) -> None:
    """OMB 7.5 reads the clock twice in each iteration, and divides the time of the whole loop."""
    laps = {"clock": [0.03], "time": [0.08]}
    one = {"laps": laps, "bytes_moved": None}
    made = row(message(cell("put_latency", mean=mean), [0.08], [0.08], [0.08], **one), FACTS | {"ranks": 2})
    assert made["value"] == pytest.approx(us)
    assert (made["median_us"], made["parameters"]["mean"]) == (0.08, mean)
    rate = row(message(cell("put_bw", mean=mean), [0.08], [0.08], [0.08], **one | {"bytes_moved": 64}), FACTS)
    assert rate["value"] == pytest.approx(64 / us)


def test_a_median_under_three_skews_is_limited_by_synchronisation() -> None:
    near = row(message(cell("bcast"), [1.4] * 3, [1.0] * 3, [1.0] * 4))
    far = row(message(cell("bcast"), [1.6] * 3, [1.0] * 3, [1.0] * 4))
    assert (near["sync_limited"], far["sync_limited"]) == (True, False)


def test_reductions_of_chars_are_of_signed_chars() -> None:
    made = row(message(cell("allreduce", dtype="char"), [1.0], [1.0], [1.0] * 4))
    assert made["dtype"] == "int8"


def test_layout_of_ranks_on_nodes() -> None:
    made = row(message(cell("bcast"), [1.0], [1.0], [1.0] * 4))
    assert (made["ranks"], made["nodes"], made["ranks_per_node"], made["hosts"]) == (4, 2, 2, ["a", "a", "b", "b"])
    uneven = row(message(cell("bcast"), [1.0], [1.0], [1.0] * 3), {**FACTS, "ranks": 3, "hosts": ["a", "a", "b"]})
    assert uneven["ranks_per_node"] is None


def test_options_without_a_column_are_kept_as_parameters() -> None:
    told = message(cell("ialltoallv", tests=7, imbalance=0.5), [3.0], [2.0], [2.0])
    told.laps = {
        "pure.time": [4.0],
        "overlap.init": [1.0],
        "overlap.compute": [4.0],
        "overlap.wait": [3.0],
        "overall": [8.0],
    }
    told.series = {"overall": told.series["time"]}
    told.extra = {"topology_us": 12.5}
    made = row(told)
    assert made["parameters"] == {"tests": "7", "imbalance": "0.5"}
    assert made["value"] == 8.0
    assert made["metrics"]["overlap_pct"] == 0.0 and made["metrics"]["pure"] == 4.0
    assert made["metrics"]["topology_us"] == 12.5


def test_a_rotating_root_has_no_number() -> None:
    told = message(cell("gather", root=-1, in_place=True), [3.0], [2.0], [2.0])
    made = row(told)
    assert (made["root"], made["parameters"], made["in_place"]) == (None, {"root": "rotate"}, True)
    assert row(message(cell("gather", root=2), [3.0], [2.0], [2.0]))["root"] == 2


@pytest.mark.parametrize("name", ["latency", "bw"])
def test_each_pair_of_a_round_has_the_row_that_it_has_when_it_is_measured_alone(name: str) -> None:
    what = cell(name, pairs=Schedule(1).text(), iterations=3, auto=False)
    pairs: list[Pair] = [(0, 1), (2, 0), (1, 2), (2, 3)]
    samples = np.array([[1, 2, 3], [4, 4, 4], [9, 2, 1], [5, 6, 9]], np.float32)
    launch = LaunchIdentity("run", "run-0", 0, "2026-11-21T00:00:00+00:00", FACTS, "env")

    def rows(pairs: list[Pair], samples: np.ndarray) -> list[Row]:
        return list(pair_rows(launch, PairRound(what, 2, True, pairs, samples, "abc", 1000, skew_us=0.5)))

    together = rows(pairs, samples)
    assert together == [rows([pair], samples[[k]])[0] for k, pair in enumerate(pairs)]
    assert [made["hosts"] for made in together] == [["a", "a"], ["b", "a"], ["a", "b"], ["b", "b"]]
    assert len({made["comparability_key"] for made in together}) == 2
    assert [made["median_us"] for made in together] == [2.0, 4.0, 2.0, 6.0]


@pytest.mark.parametrize(
    ("benchmark", "ranks", "dtype", "size", "moved"),
    [
        ("allreduce", 2, "int32", 6, 4),
        ("bw", 2, "float64", 12, 8),
        ("allgather", 4, "float64", 15, 8),
        ("bcast", 2, "float32", 7, 4),
    ],
)
def test_of_a_size_that_is_no_multiple_of_the_element_the_bytes_that_moved_count(
    benchmark: str, ranks: int, dtype: str, size: int, moved: int
) -> None:
    frame = omb_py.run(
        benchmark, backends=["mock"], ranks=ranks, dtypes=[dtype], sizes=f"{size}:{size}", store=None
    ).frame
    (got,) = frame.to_dict("records")
    assert (got["size_bytes"], got["bytes_per_rank"], got["count"]) == (size, moved, 1)
    if benchmark != "bw":
        whole = moved * (ranks if benchmark == "allgather" else 1)
        assert got["algbw_gbps"] == pytest.approx(whole / got["mean_us"] / 1000, rel=0.01)
