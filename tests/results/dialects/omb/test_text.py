"""Texts as OMB 7.5 prints them (docs: measured runs of the original), and the values in them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from omb_py import __version__
from omb_py.errors import UsageError
from omb_py.results.dialects.omb import text as osu
from omb_py.results.dialects.omb.text import OsuText, text_of
from omb_py.results.dialects.omb.titles import TITLES, version_of

TAIL = (50, 90, 99)


def tail(p50: float, p90: float, p99: float) -> list[float]:
    """100 values whose 50th, 90th and 99th in order are these."""
    return [p50] * 50 + [p90] * 40 + [p99] * 9 + [1e6]


def printed(text: OsuText, dtype: str | None, *rows: dict) -> str:
    return text.header(dtype) + "".join(text.row(row) for row in rows)


LATENCY = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       6.11
2                       4.58
"""

LATENCY_C_Z = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
1                       3.10              Pass              3.05              3.27              4.95
"""

BW = """
# OSU MPI Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       2.66
"""

BW_Z = """
# OSU MPI Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s) P50 Tail BW(MB/s) P90 Tail BW(MB/s) P99 Tail BW(MB/s)
1                       1.61              1.92              6.49              6.94
"""

BIBW = """
# OSU MPI Bi-Directional Bandwidth Test v7.5
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       1.59
"""

MBW_MR = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 2 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
2                       5.58        2790383.86
"""

ALLREDUCE = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)
4                      35.01
"""

ALLREDUCE_F = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                      35.15             21.11             50.42          20
"""

ALLREDUCE_C = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)        Validation
4                      24.12              Pass
"""

ALLREDUCE_Z = """
# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
4                      30.70             24.13             41.10             61.08
"""

ALLREDUCE_FCZ = (
    "\n"
    "# OSU MPI Allreduce Latency Test v7.5\n"
    "# Datatype: MPI_INT.\n"
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation"
    "  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
    "4                      24.34             18.60             32.78          20              Pass"
    "             22.35             29.12             39.41\n"
)

BARRIER = """
# OSU MPI Barrier Latency Test v7.5
# Avg Latency(us)
            45.48
"""

BARRIER_F = """
# OSU MPI Barrier Latency Test v7.5
# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
            15.88             15.68             16.06          20
"""

IALLREDUCE = """
# OSU MPI Non-blocking Allreduce Latency Test v7.5
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_INT.
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
4                      46.60             22.02             20.32              0.00
"""

IALLREDUCE_F = (
    "# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)"
    "    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        Overlap(%)\n"
    "4                     482.73            157.28              3.38            321.73              0.13"
    "             50.03             40.94             65.98              0.00\n"
)

IBARRIER = """\
# Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
       155.01             33.56             31.71              0.00
"""

PUT_LATENCY = """\
# OSU MPI_Put Latency Test v7.5
# Window creation: MPI_Win_allocate
# Synchronization: MPI_Win_flush
# Datatype: MPI_CHAR.
# Size          Latency (us)
1                       0.18
"""

FCZ_ROW = {
    "size_bytes": 4,
    "value": 24.34,
    "rank_mean_us": [18.60, 32.78, 20.0, 25.98],
    "iterations": 20,
    "validated": True,
    "samples_avg_us": tail(22.35, 29.12, 39.41),
}


class TestGolden:
    def test_latency(self) -> None:
        rows = [{"size_bytes": 1, "value": 6.11}, {"size_bytes": 2, "value": 4.581}]
        assert printed(OsuText("latency"), "char", *rows) == LATENCY

    def test_latency_with_validation_and_percentiles(self) -> None:
        row = {"size_bytes": 1, "value": 3.1, "validated": True, "samples_avg_us": tail(3.05, 3.27, 4.95)}
        assert printed(OsuText("latency", validation=True, percentiles=TAIL), "char", row) == LATENCY_C_Z

    def test_bw(self) -> None:
        assert printed(OsuText("bw"), "char", {"size_bytes": 1, "value": 2.66}) == BW

    def test_bw_percentiles_are_of_each_iterations_rate_the_best_last(self) -> None:
        times = [64 / rate for rate in tail(1.92, 6.49, 6.94)]
        row = {"size_bytes": 1, "value": 1.61, "metrics": {"bytes_moved": 64.0}, "samples_avg_us": times}
        assert printed(OsuText("bw", percentiles=TAIL), "char", row) == BW_Z

    def test_bibw(self) -> None:
        assert printed(OsuText("bibw"), "char", {"size_bytes": 1, "value": 1.59}) == BIBW

    def test_mbw_mr(self) -> None:
        text = OsuText("mbw_mr", details=["# [ pairs: 2 ] [ window size: 64 ]"])
        assert printed(text, "char", {"size_bytes": 2, "value": 5.58076772}) == MBW_MR

    @pytest.mark.parametrize(
        ("options", "row", "expected"),
        [
            ({}, {"value": 35.01}, ALLREDUCE),
            ({"full": True}, {"value": 35.15, "rank_mean_us": [21.11, 50.42, 33.0], "iterations": 20}, ALLREDUCE_F),
            ({"validation": True}, {"value": 24.12, "validated": True}, ALLREDUCE_C),
            ({"percentiles": TAIL}, {"value": 30.7, "samples_avg_us": tail(24.13, 41.10, 61.08)}, ALLREDUCE_Z),
            ({"full": True, "validation": True, "percentiles": TAIL}, FCZ_ROW, ALLREDUCE_FCZ),
        ],
        ids=["plain", "f", "c", "z", "fcz"],
    )
    def test_allreduce(self, options, row, expected: str) -> None:
        assert printed(OsuText("allreduce", **options), "int32", {"size_bytes": 4, **row}) == expected

    def test_barrier_has_no_size_and_an_odd_width(self) -> None:
        row = {"size_bytes": 0, "value": 45.48}
        assert printed(OsuText("barrier"), "char", row) == BARRIER
        row = {"size_bytes": None, "value": 15.88, "rank_mean_us": [15.68, 16.06], "iterations": 20}
        assert printed(OsuText("barrier", full=True), None, row) == BARRIER_F

    def test_non_blocking(self) -> None:
        metrics = {"overall": 46.6, "compute": 22.02, "pure": 20.32, "overlap_pct": 0.0}
        assert printed(OsuText("iallreduce"), "int32", {"size_bytes": 4, "metrics": metrics}) == IALLREDUCE
        metrics = {"overall": 155.01, "compute": 33.56, "pure": 31.71, "overlap_pct": 0.0}
        assert printed(OsuText("ibarrier"), "char", {"size_bytes": 0, "metrics": metrics}).endswith("\n" + IBARRIER)

    def test_non_blocking_in_full(self) -> None:
        metrics = {
            "overall": 482.73,
            "compute": 157.28,
            "init": 3.38,
            "test": 321.73,
            "wait": 0.13,
            "pure": 50.03,
            "min_comm": 40.94,
            "max_comm": 65.98,
            "overlap_pct": 0.0,
        }
        text = printed(OsuText("iallreduce", full=True), "int32", {"size_bytes": 4, "metrics": metrics})
        assert text.endswith("\n" + IALLREDUCE_F)

    def test_percentiles_of_non_blocking_are_of_overall_and_stand_last(self) -> None:
        metrics = {"overall": 46.6, "compute": 22.02, "pure": 20.32, "overlap_pct": 0.0}
        row = {"size_bytes": 4, "metrics": metrics, "samples_avg_us": tail(45.1, 50.2, 60.3), "validated": True}
        head, line = printed(OsuText("iallreduce", validation=True, percentiles=TAIL), "int32", row).splitlines()[-2:]
        assert head == IALLREDUCE.splitlines()[-2] + "        Validation" + "".join(
            f"  P{p} Tail Lat(us)" for p in TAIL
        )
        assert line == IALLREDUCE.splitlines()[-1] + "              Pass" + "".join(
            f"{value:18.2f}" for value in (45.1, 50.2, 60.3)
        )
        head, line = printed(OsuText("ibarrier", percentiles=(99,)), None, row).splitlines()[-2:]
        assert (head[-18:], line[-18:]) == ("  P99 Tail Lat(us)", f"{60.3:18.2f}")

    def test_percentiles_that_omb_does_not_take_keep_a_blank_before_them(self) -> None:
        row = {"size_bytes": 1, "value": 3.1, "samples_avg_us": tail(3.05, 3.27, 4.95)}
        head, line = printed(OsuText("latency", percentiles=(50, 99.9, 100)), "char", row).splitlines()[-2:]
        assert head.endswith("  P50 Tail Lat(us) P99.9 Tail Lat(us) P100 Tail Lat(us)")
        assert len(head) == len(line) and line.split()[-2:] == ["4.95", "1000000.00"]

    def test_one_sided(self) -> None:
        details = ["# Window creation: MPI_Win_allocate", "# Synchronization: MPI_Win_flush"]
        row = {"size_bytes": 1, "value": 0.18}
        assert printed(OsuText("put_latency", details=details), "char", row) == PUT_LATENCY


class TestTypes:
    def test_each_type_of_all_repeats_the_datatype_line_and_the_head(self) -> None:
        text = OsuText("latency")
        row = text.row({"size_bytes": 4, "value": 1.0})
        out = text.header("char") + row + text.header("int32", first=False) + row + text.header("float32", False) + row
        assert out == (
            "\n# OSU MPI Latency Test v7.5\n"
            "# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n4                       1.00\n"
            "# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n4                       1.00\n"
            "# Datatype: MPI_FLOAT.\n# Size       Avg Latency(us)\n4                       1.00\n"
        )

    def test_a_reduction_of_char_is_of_signed_char(self) -> None:
        assert "# Datatype: MPI_SIGNED_CHAR.\n" in OsuText("allreduce").header("char")
        assert "# Datatype: MPI_CHAR.\n" in OsuText("bcast").header("char")


class TestRows:
    def test_a_failed_row_and_the_line_after_it(self) -> None:
        text = OsuText("allreduce", validation=True)
        row = {"size_bytes": 8, "value": 1.0, "validated": False}
        assert text.row(row) == "8                       1.00              Fail\n"
        assert text.failure(row, "osu_allreduce") == (
            "DATA VALIDATION ERROR: osu_allreduce exited with status 1 on message size 8.\n"
        )

    def test_wide_numbers_push_and_do_not_cut(self) -> None:
        row = {"size_bytes": 2**40, "value": 1e16}
        assert OsuText("latency").row(row) == "1099511627776" + "10000000000000000.00\n"

    def test_what_was_not_measured_is_nan(self) -> None:
        row = {"size_bytes": 1, "value": None, "validated": None, "iterations": 5}
        text = OsuText("allreduce", full=True, validation=True, percentiles=[50])
        assert text.row(row).split() == ["1", "nan", "nan", "nan", "5", "-", "nan"]

    def test_percentiles_of_a_table_with_any_list(self) -> None:
        text = OsuText("latency", percentiles=[99.9, 1])
        assert (
            text.header("char").splitlines()[-1] == "# Size       Avg Latency(us) P99.9 Tail Lat(us)   P1 Tail Lat(us)"
        )
        assert text.row({"size_bytes": 1, "value": 1.0, "samples_avg_us": [3.0, 1.0, 2.0]}).split() == [
            "1",
            "1.00",
            "2.00",
            "1.00",
        ]

    def test_numpy_columns_are_as_good_as_lists(self) -> None:
        import numpy as np

        arrays = {
            **FCZ_ROW,
            "rank_mean_us": np.array([18.60, 32.78]),
            "samples_avg_us": np.array(FCZ_ROW["samples_avg_us"]),
        }
        text = OsuText("allreduce", full=True, validation=True, percentiles=TAIL)
        assert text.row(arrays) == ALLREDUCE_FCZ.splitlines(keepends=True)[-1]


class TestTitles:
    @pytest.mark.parametrize(
        ("name", "line"),
        [
            ("alltoall", "# OSU MPI All-to-All Personalized Exchange Latency Test v7.5"),
            ("alltoallw", "# OSU MPI All-to-Allw Personalized Exchange Latency Test v7.5"),
            ("alltoall_persistent", "# OSU MPI All-to-All Personalized Exchange Persistent Latency Test v7.5"),
            ("ialltoall", "# OSU MPI Non-blocking All-to-All Latency Test v7.5"),
            ("ialltoallv", "# OSU MPI Non-blocking All-to-Allv Personalized Exchange Latency Test v7.5"),
            ("bcast", "# OSU MPI Broadcast Latency Test v7.5"),
            ("ibcast", "# OSU MPI Non-Blocking Broadcast Latency Test v7.5"),
            ("reduce_scatter_block", "# OSU MPI Reduce_scatter_block Latency Test v7.5"),
            ("allreduce_persistent", "# OSU MPI Allreduce Persistent Latency Test v7.5"),
            ("neighbor_allgather", "# OSU MPI Neighborhood Allgather Latency Test v7.5"),
            ("neighbor_alltoall", "# OSU MPI Neighborhood Alltoall Latency Test v7.5"),
            ("neighbor_alltoallv", "# OSU MPI Neighborhood All-to-Allv Latency Test v7.5"),
            ("neighbor_alltoallw", "# OSU MPI All-to-Allw Personalized Exchange Latency Test v7.5"),
            ("ineighbor_allgather", "# OSU MPI Non-blocking Neighborhood Allgather Latency Test v7.5"),
            ("ineighbor_alltoallv", "# OSU MPI Non-blocking Neighborhood Alltoallv Latency Test v7.5"),
            ("ineighbor_alltoallw", "# OSU MPI Non-blocking Neighborhood Alltoallw Latency Test v7.5"),
            ("ineighbor_alltoall", "# OSU MPI Non-blocking Neighbor Alltoall Latency Test v7.5"),
            ("latency_mt", "# OSU MPI Multi-threaded Latency Test v7.5"),
            ("latency_mp", "# OSU MPI Multi-process Latency Test v7.5"),
            ("multi_lat", "# OSU MPI Multi Latency Test v7.5"),
            ("bibw_persistent", "# OSU MPI Bi-Directional Bandwidth Persistent Test v7.5"),
            ("bw_fan_in", "# OSU MPI Bandwidth Test v7.5"),
            ("partitioned_latency", "# OSU MPI Partitioned Latency Test v7.5"),
            ("get_latency", "# OSU MPI_Get latency Test v7.5"),
            ("fop_latency", "# OSU MPI_Fetch_and_op latency Test v7.5"),
            ("put_bibw", "# OSU MPI_Put Bi-directional Bandwidth Test v7.5"),
            ("init", "# OSU MPI Init Test v7.5"),
            ("hello", "# OSU MPI Hello World Test v7.5"),
        ],
    )
    def test_odd_titles(self, name: str, line: str) -> None:
        assert TITLES[name].line() == line

    def test_the_accelerator_stands_after_mpi_except_where_omb_forgets_it(self) -> None:
        assert TITLES["allreduce"].line("-CUDA") == "# OSU MPI-CUDA Allreduce Latency Test v7.5"
        assert TITLES["put_latency"].line("-ROCM") == "# OSU MPI_Put-ROCM Latency Test v7.5"
        assert OsuText("latency", accel="-CUDA").header("char").startswith("\n# OSU MPI-CUDA Latency Test v7.5\n")
        without = {name for name, title in TITLES.items() if title.line("-CUDA") == title.line()}
        assert without == {"mbw_mr", "multi_lat", "get_acc_latency", "init", "hello"}

    def test_there_are_as_many_as_omb_has(self) -> None:
        # 7.5: 8 point-to-point, 3 persistent, 2 congestion; 3 kinds of 15 collectives; 10 neighborhood; 9; 2
        ours = {"rput_latency", "rget_latency"}
        assert len(set(TITLES) - ours) == 8 + 3 + 2 + 45 + 10 + 9 + 2

    def test_every_benchmark_of_ours_that_omb_has_can_be_printed(self) -> None:
        from omb_py.suites import BENCHMARKS

        assert {name for name in TITLES if name not in BENCHMARKS} == set(), "OMB has what we lack"
        for name in TITLES:
            text = OsuText(name, full=True, validation=True, percentiles=TAIL)
            row = {
                "size_bytes": 8,
                "value": 1.0,
                "iterations": 3,
                "validated": True,
                "samples_avg_us": [1.0],
                "ranks": 2,
            }
            assert text.header("char").count("\n") >= (1 if BENCHMARKS[name].once else 2)
            assert text.row(row).endswith("\n")

    def test_what_omb_does_not_have_is_refused(self) -> None:
        with pytest.raises(UsageError, match="OMB has no text for 'alreduce': did you mean allreduce"):
            OsuText("alreduce")

    def test_what_only_we_have_does_not_say_osu(self) -> None:
        row = {"benchmark": "comm_dup", "family": "startup", "unit": "us", "size_bytes": 0, "value": 2.5, "ranks": 2}
        text = text_of(row, False, False, ())
        assert text.header("char") == f"\n# omb-py comm_dup Test v{__version__}\n# Avg Latency(us)\n"
        assert text.row(row) == "             2.50\n"


class TestStartUp:
    """One sentence a launch (reference section 3.5)."""

    def test_init_says_whole_milliseconds(self) -> None:
        text = OsuText("init")
        row = {"ranks": 4, "rank_mean_us": [135_000.0, 180_400.0, 148_600.0, 148_000.0]}
        assert text.header(None) + text.row(row) == (
            "# OSU MPI Init Test v7.5\nnprocs: 4, min: 135 ms, max: 180 ms, avg: 153 ms\n"
        )

    def test_hello(self) -> None:
        text = OsuText("hello")
        assert text.header(None) + text.row({"ranks": 4}) == (
            "# OSU MPI Hello World Test v7.5\nThis is a test with 4 processes\n"
        )


class TestNeighborhood:
    """Lines before the table, and the table (reference section 3.6)."""

    ROW: ClassVar = {
        "benchmark": "neighbor_allgather",
        "family": "neighborhood",
        "unit": "us",
        "size_bytes": 1,
        "value": 10.13,
        "ranks": 4,
        "parameters": {"neighborhood": "cart:1:1"},
        "metrics": {"topology_us": 223.91},
    }

    def test_a_grid(self) -> None:
        text = text_of(self.ROW, False, False, ())
        assert text.header("char") + text.row(self.ROW) == (
            "Dimensions size = 4 \n"
            "Time took to create topology graph:223.91 us.\n"
            "\n"
            "# OSU MPI Neighborhood Allgather Latency Test v7.5\n"
            "# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)\n"
            "1                      10.13\n"
        )

    def test_a_graph_has_no_dimensions(self) -> None:
        row = {**self.ROW, "parameters": {"neighborhood": "graph:0>1,1>0"}}
        assert (
            text_of(row, False, False, ())
            .header("char")
            .startswith("Time took to create topology graph:223.91 us.\n\n")
        )

    def test_a_grid_of_two_dimensions(self) -> None:
        row = {**self.ROW, "parameters": {"neighborhood": "cart:2:1"}}
        assert text_of(row, False, False, ()).header("char").startswith("Dimensions size = 2 2 \n")


def test_a_dialect_knows_both_numbers_of_its_version() -> None:
    assert version_of("omb-5.6").number == (5, 6)


@pytest.mark.parametrize(
    ("metrics", "full"), [({"rank_min_us": 1.0}, True), ({"min_comm": 1.0}, True), ({}, False), (None, False)]
)
def test_an_imported_row_says_whether_it_was_printed_in_full(metrics: dict[str, float] | None, full: bool) -> None:
    assert osu.printed({"metrics": metrics}) == (full, ())
