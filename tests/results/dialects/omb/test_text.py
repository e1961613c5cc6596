"""Texts as OMB 7.5 prints them (docs: measured runs of the original), and the values in them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from omb_py import __version__
from omb_py.errors import UsageError
from omb_py.results.dialects.omb import text as osu
from omb_py.results.dialects.omb.names import sync_of, window_of
from omb_py.results.dialects.omb.text import OsuText, details, text_of
from omb_py.results.dialects.omb.titles import TITLES, version_of
from omb_py.results.dialects.omb.transcript import to_osu
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from tests.results.dialects.texts import OMB

TAIL = (50, 90, 99)


def tail(p50: float, p90: float, p99: float) -> list[float]:
    """100 values whose 50th, 90th and 99th in order are these."""
    return [p50] * 50 + [p90] * 40 + [p99] * 9 + [1e6]


def printed(text: OsuText, dtype: str | None, *rows: dict) -> str:
    return text.header(dtype) + "".join(text.row(row) for row in rows)


FCZ_ROW = {
    "size_bytes": 4,
    "value": 24.34,
    "rank_mean_us": [18.60, 32.78, 20.0, 25.98],
    "iterations": 20,
    "validated": True,
    "samples_avg_us": tail(22.35, 29.12, 39.41),
}


class TestGolden:
    def test_bw_percentiles_are_of_each_iterations_rate_the_best_last(self) -> None:
        times = [64 / rate for rate in tail(1.92, 6.49, 6.94)]
        row = {"size_bytes": 1, "value": 1.61, "metrics": {"bytes_moved": 64.0}, "samples_avg_us": times}
        assert printed(OsuText("bw", percentiles=TAIL), "char", row) == OMB["bw -z"]

    def test_every_column_of_a_collective(self) -> None:
        text = OsuText("allreduce", full=True, validation=True, percentiles=TAIL)
        assert printed(text, "int32", FCZ_ROW) == OMB["allreduce -f -c -z"]

    def test_barrier_has_no_size_and_an_odd_width(self) -> None:
        row = {"size_bytes": None, "value": 15.88, "rank_mean_us": [15.68, 16.06], "iterations": 20}
        assert printed(OsuText("barrier", full=True), None, row) == OMB["barrier -f"]

    def test_percentiles_of_non_blocking_are_of_overall_and_stand_last(self) -> None:
        metrics = {"overall": 46.6, "compute": 22.02, "pure": 20.32, "overlap_pct": 0.0}
        row = {"size_bytes": 4, "metrics": metrics, "samples_avg_us": tail(45.1, 50.2, 60.3), "validated": True}
        head, line = printed(OsuText("iallreduce", validation=True, percentiles=TAIL), "int32", row).splitlines()[-2:]
        assert head == OMB["iallreduce"].splitlines()[-2] + "        Validation" + "".join(
            f"  P{p} Tail Lat(us)" for p in TAIL
        )
        assert line == OMB["iallreduce"].splitlines()[-1] + "              Pass" + "".join(
            f"{value:18.2f}" for value in (45.1, 50.2, 60.3)
        )
        head, line = printed(OsuText("ibarrier", percentiles=(99,)), None, row).splitlines()[-2:]
        assert (head[-18:], line[-18:]) == ("  P99 Tail Lat(us)", f"{60.3:18.2f}")

    def test_percentiles_that_omb_does_not_take_keep_a_blank_before_them(self) -> None:
        row = {"size_bytes": 1, "value": 3.1, "samples_avg_us": tail(3.05, 3.27, 4.95)}
        head, line = printed(OsuText("latency", percentiles=(50, 99.9)), "char", row).splitlines()[-2:]
        assert head.endswith("  P50 Tail Lat(us) P99.9 Tail Lat(us)")
        assert len(head) == len(line) and line.split()[-1] == "4.95"

    @pytest.mark.parametrize(("name", "head"), [("latency", "  P100 Tail Lat(us)"), ("bw", " P100 Tail BW(MB/s)")])
    def test_the_head_of_p100_is_a_character_wider_than_its_values_as_in_omb(self, name: str, head: str) -> None:
        row = {"size_bytes": 1, "value": 3.1, "samples_avg_us": tail(3.05, 3.27, 4.95), "metrics": {}}
        above, line = printed(OsuText(name, percentiles=(100,)), "char", row).splitlines()[-2:]
        assert above.endswith(f"){head}") and len(above) == len(line) + 1 == 10 + 18 + 19


class TestWindows:
    def test_of_nccl_are_said_in_its_own_words_which_are_read_again(self) -> None:
        parameters = {"window_kind": "allocate", "sync": "pscw"}
        row = {"benchmark": "put_latency", "family": "one-sided", "backend": "nccl", "parameters": parameters}
        lines = details(row)
        assert lines == ["# Window creation: ncclCommWindowRegister", "# Synchronization: ncclSignal/ncclWaitSignal"]
        window, sync = (line.partition(": ")[2] for line in lines)
        assert {"window_kind": window_of(window), "sync": sync_of(sync)} == parameters


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

    def test_numpy_columns_are_as_good_as_lists(self) -> None:
        import numpy as np

        arrays = {
            **FCZ_ROW,
            "rank_mean_us": np.array([18.60, 32.78]),
            "samples_avg_us": np.array(FCZ_ROW["samples_avg_us"]),
        }
        text = OsuText("allreduce", full=True, validation=True, percentiles=TAIL)
        assert text.row(arrays) == OMB["allreduce -f -c -z"].splitlines(keepends=True)[-1]


class TestTitles:
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


@pytest.mark.parametrize(
    ("name", "metrics", "line"),
    [
        ("bw", {}, "12                    372.09"),
        ("mbw_mr", {}, "12                    372.09       31007500.00"),
        ("bw", {"transmit_size": 8.0}, "12                    248.06                 8"),
    ],
)
def test_mb_s_count_the_size_as_c_does_and_not_what_moves(make_row, name: str, metrics: dict[str, float], line: str):
    """OMB 7.5 sends size // itemsize elements and counts `size`; with a derived type it counts what it sends."""
    sizes = {"size_bytes": 12, "bytes_per_rank": 8, "metrics": metrics}
    row = make_row(benchmark=name, dtype="float64", unit="MB/s", value=248.06, family="pt2pt", **sizes)
    assert text_of(row, False, False, ()).row(row) == line + "\n"


def test_the_text_of_gloo_names_gloo_shows_the_bus_and_comes_back(make_row) -> None:
    who = {"backend": "gloo", "library": "torch gloo", "library_version": "2.9", "binding": "torch", "device": "cpu"}
    values = {**who, "busbw_gbps": 5.51e-05, "value": 145.0, "size_bytes": 8}
    row = make_row(benchmark="allreduce", dtype="int32", **values)
    text = printed(text_of(row, False, False, ()), "int32", row)
    assert text == (
        "\n# OSU Gloo Allreduce Latency Test v7.5\n"
        "# [ backend: gloo ] [ library: torch gloo ] [ library_version: 2.9 ] [ binding: torch ] [ device: cpu ]\n"
        "# Datatype: MPI_INT.\n# Size       Avg Latency(us)      Bus BW(GB/s)\n"
        "8                     145.00         0.0000551\n"
    )
    ((again,),) = (table.rows for table in parse(text.encode(), Context()).tables)
    assert {name: again[name] for name in values} == values
    assert (again["source"], again["binding_version"]) == ("omb-py text", None), "7.5 is the version of OMB"


@pytest.mark.parametrize("name", ["latency", "pingping", "init", "put_latency"])
def test_what_measured_is_said_and_read_where_omb_cannot_have_measured(make_row, name: str) -> None:
    """Of MPI and NCCL the text is OMB's to the character; of others a comment that its parsers skip names them."""
    who = {"library": "L", "library_version": "1.0", "binding": "native", "device": "cpu"}
    family = {"put_latency": "one-sided", "init": "startup"}.get(name, "pt2pt")
    more = {"family": family, "ranks": 2, "dtype": "char", "size_bytes": None if name == "init" else 8, "value": 1000.0}
    for backend in ("mock", "mpi"):
        row = make_row(benchmark=name, backend=backend, **who, **more)
        text = to_osu([row])
        comment = (
            f"# [ backend: {backend} ] [ library: L ] [ library_version: 1.0 ] [ binding: native ] [ device: cpu ]\n"
        )
        assert (comment in text) == (backend == "mock")
        ((again,),) = (table.rows for table in parse(text.encode(), Context()).tables)
        assert again["backend"] == backend
        assert again["library"] == ("L" if backend == "mock" else None)
        assert again["binding"] == {"mock": "native", "mpi": None if name == "pingping" else "c"}[backend]
        assert to_osu([make_row(**{**again, "launch_id": "a-0"})]) == text


def test_a_further_title_that_is_lost_leaves_its_table_out(make_row) -> None:
    text = to_osu(
        [make_row(benchmark="latency", backend="mock", library="mock", family="pt2pt", size_bytes=8, value=1.0)]
    )
    second = text.partition("v7.5\n")[2]
    problems = parse((text + second).encode(), Context()).problems
    assert ["title of a further table is missing" in problem.text for problem in problems] == [True]


def test_a_log_without_the_line_of_its_receivers_comes_back_without_it() -> None:
    sender = "# Number of forked processes in sender: 2\n"
    head = "# OSU MPI Multi-process Latency Test v5.8\n# Size          Latency (us)\n"
    (table,) = parse(f"{sender}{head}{8:<10}{1.5:18.2f}\n".encode(), Context()).tables
    assert osu.lines_before(table.rows[0])[0] == sender.strip()


@pytest.mark.parametrize(
    ("name", "given", "senders", "receivers"),
    [("allreduce_mt", "1:4", 4, 4), ("pingpong_mt", "4:4", 4, 4), ("latency_mt", "1:4", 1, 4)],
)
def test_every_rank_of_imb_mt_has_as_many_threads(make_row, name: str, given: str, senders: int, receivers: int):
    lines = [f"# Number of Sender threads: {senders} ", f"# Number of Receiver threads: {receivers}"]
    assert osu.lines_before(make_row(benchmark=name, parameters={"thread_counts": given})) == lines
