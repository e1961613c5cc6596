"""OMB's text into the store and back, to the character; damaged and strange logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.results.dialects.omb.transcript import to_osu
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import BadTable, Context, Parsed, decimal, number
from omb_py.results.dialects.storing import ImportOptions, store_bytes
from omb_py.results.store.read import load_table, to_rows
from tests.results.dialects.texts import OMB


def read(text: str, **context: Any) -> Parsed:
    return parse(text.encode(), Context(**context))


def through_the_store(text: str, where: Path) -> str:
    store_bytes(text.encode(), "a.log", 1e9, where, ImportOptions())
    return to_osu(to_rows(load_table(where)))


@pytest.mark.parametrize("kind", OMB)
def test_a_table_of_every_kind_comes_back_to_the_character(kind: str, tmp_path: Path) -> None:
    found = read(OMB[kind])
    assert not found.problems
    wanted = kind.split(", ")[0].split(" -")[0].split()
    assert [table.benchmark for table in found.tables] == [
        wanted[-1] if wanted[0][0].isdigit() or wanted[0] == "xccl" else wanted[0]
    ]
    assert through_the_store(OMB[kind], tmp_path) == OMB[kind]


def test_all_kinds_in_one_log_with_noise_between() -> None:
    noise = "[node1:4711] PMIX ERROR: a warning\n2 more processes have sent help message help-mpi-btl.txt\n\n"
    text = noise.join(OMB.values()) + noise
    found = read(text)
    assert not found.problems
    assert len(found.tables) == len(OMB)
    assert [table.launch for table in found.tables] == list(range(len(OMB)))
    printed = to_osu([{**row, "launch_id": str(table.launch)} for table in found.tables for row in table.rows])
    for kind in OMB.values():
        assert kind in printed


def test_checked_atomics_of_several_types_are_one_launch(tmp_path: Path) -> None:
    """OMB repeats the title for each type, and prints the result of all checks below the last."""
    table, result = OMB["cas_latency -c"].split("-" * 43, 1)
    both = table + table.replace("MPI_CHAR", "MPI_INT") + "-" * 43 + result.replace("All 1 comb", "All 2 comb")
    assert [each.launch for each in read(both * 2).tables] == [0, 0, 2, 2]
    assert through_the_store(both, tmp_path) == both
    other = OMB["cas_latency -c"] + OMB["cas_latency -c"].replace("MPI_CHAR", "MPI_INT")
    assert [each.launch for each in read(other).tables] == [0, 1], "each has a result of its own"


class TestWhatARowSays:
    def test_a_collective(self) -> None:
        [table] = read(OMB["allreduce -f -c -z"]).tables
        assert (table.source, table.version, table.line) == ("OMB", "7.5", 2)
        [row] = table.rows
        known = {
            "benchmark": "allreduce",
            "family": "collective",
            "backend": "mpi",
            "dtype": "int32",
            "size_bytes": 4,
            "value": 24.34,
            "unit": "us",
            "iterations": 20,
            "validated": True,
            "ranks": None,
            "library": None,
            "binding": "c",
            "binding_version": "OMB 7.5",
            "process_sync": "barrier",
        }
        assert known.items() <= row.items()
        assert row["metrics"] == {
            "rank_min_us": 18.6,
            "rank_max_us": 32.78,
            "tail_p50": 22.35,
            "tail_p90": 29.12,
            "tail_p99": 39.41,
        }

    def test_lines_above_the_table(self) -> None:
        [row] = read(OMB["put_latency"]).tables[0].rows
        assert row["parameters"] == {"window_kind": "allocate", "sync": "flush"} and row["ranks"] == 2
        [row] = read(OMB["latency_mt"]).tables[0].rows
        assert row["parameters"] == {"thread_counts": "1:2"}
        [row] = read(OMB["neighbor_alltoallw"]).tables[0].rows
        assert (row["ranks"], row["metrics"]) == (4, {"topology_us": 223.91})
        [row] = read(OMB["xccl allreduce"]).tables[0].rows
        assert (row["backend"], row["library"], row["device"], row["ranks"]) == ("nccl", "NCCL", "cuda", 2)

    def test_a_sweep_over_windows(self) -> None:
        rows = read(OMB["mbw_mr -V"]).tables[0].rows
        assert [(row["window"], row["value"]) for row in rows][:2] == [(1, 0.11), (2, 0.26)]
        assert rows[-1]["metrics"] == {"message_rate": 3085271.29} and rows[0]["ranks"] == 4

    def test_a_sweep_over_windows_with_verdicts(self) -> None:
        """A window that fails ends its line, and what stood before it in the line was not judged."""
        sweep = (
            "# OSU MPI Multiple Bandwidth / Message Rate Test v7.5\n# [ pairs: 2 ] [ window size: varied ]\n\n"
            "# Uni-directional Bandwidth (MB/sec)\n# Datatype: MPI_CHAR.\n"
            "#                 1           2           4        Validation\n"
        )
        good = "1              0.11        0.26        0.50              Pass\n"
        found = read(f"{sweep}{good}2              0.22        0.52              Fail\n")
        assert not found.problems
        rows = found.tables[0].rows
        assert [(row["size_bytes"], row["window"], row["value"], row["validated"]) for row in rows] == [
            (1, 1, 0.11, True),
            (1, 2, 0.26, True),
            (1, 4, 0.5, True),
            (2, 1, 0.22, None),
            (2, 2, 0.52, False),
        ]
        assert read(sweep + good.replace("Pass", "Maybe")).problems, "no verdict"
        assert read(sweep + good.replace("        0.50", "")).problems, "a window is missing, and nothing failed"


class TestOtherVersions:
    def test_a_doubled_title_is_one_table(self) -> None:
        title = "# OSU MPI Multiple Bandwidth / Message Rate Test v6.1\n"
        text = f"{title}# [ pairs: 1 ] [ window size: 64 ]\n\n{title}# [ pairs: 1 ] [ window size: 64 ]\n"
        found = read(
            text + "# Size                  MB/s        Messages/s\n1                       2.89        2894732.38\n"
        )
        assert [len(table.rows) for table in found.tables] == [1] and not found.problems

    def test_the_head_of_a_barrier_of_8_has_no_sign(self) -> None:
        [table] = read("\n# OSU MPI Barrier Latency Test v8.0b\n   Avg Latency(us)\n             45.48\n").tables
        assert table.rows[0]["value"] == 45.48

    def test_percentiles_that_multi_lat_forgets(self) -> None:
        text = OMB["multi_lat"].replace("(us)\n", "(us)  P50 Tail Lat(us)\n")
        [row] = read(text).tables[0].rows
        assert row["value"] == 9.4 and row["metrics"] == {}

    def test_colours_prefixes_and_line_ends(self) -> None:
        lines = OMB["latency -c -z"].replace("Pass", "\x1b[32mPass\x1b[0m").splitlines()
        for prefix in ("", "[1,0]<stdout>: ", "[0] ", "0: "):
            found = read("\r\n".join(prefix + line for line in lines) + "\r\n")
            assert [table.rows[0]["validated"] for table in found.tables] == [True], prefix
        assert len(parse("\n".join(lines).encode("utf-16"), Context()).tables) == 1

    @pytest.mark.parametrize("name", ["uniband", "biband", "uniband_mt", "biband_mt"])
    def test_a_rate_of_a_benchmark_that_omb_lacks(self, name: str, tmp_path: Path) -> None:
        head = "# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n"
        text = f"\n# omb-py {name} Test v0.1.0\n{head}8                     496.12\n"
        [row] = read(text).tables[0].rows
        assert (row["metric"], row["unit"], row["value"]) == ("bandwidth", "MB/s", 496.12)
        assert through_the_store(text, tmp_path).endswith(text[1:])

    def test_a_time_of_a_benchmark_that_omb_lacks(self) -> None:
        text = "# omb-py pingping Test v0.1.0\n# Size       Avg Latency(us)\n8                       1.25\n"
        [row] = read(text).tables[0].rows
        assert (row["metric"], row["unit"], row["value"]) == ("latency", "us", 1.25)


class TestDamage:
    def test_a_row_cut_off_is_left_out(self) -> None:
        found = read(OMB["latency"] + OMB["allreduce -f -c -z"][:-30])
        assert [table.benchmark for table in found.tables] == ["latency"], "it was the only row of its table"
        assert list(map(str, found.problems)) == ["line 11: row left out: 7 of 9 columns"]

    @pytest.mark.parametrize("cut", range(1, 8))
    def test_a_last_line_cut_anywhere_is_noticed(self, cut: int) -> None:
        found = read(OMB["latency"][:-cut])
        whole = cut == 1  # only the line end is missing
        [table] = found.tables
        assert (len(table.rows), len(found.problems)) == ((2, 0) if whole else (1, 1))

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ("MPI_CHAR", "MPI_QUUX", "unknown datatype 'MPI_QUUX'"),
            ("Avg Latency(us)", "Avg Latency(us)  Power(W)", "unknown column 'Power(W)'"),
            ("Latency Test", "Teleport Test", "a benchmark that omb-py does not know"),
        ],
    )
    def test_what_is_wrong_is_said(self, old: str, new: str, says: str) -> None:
        found = read(OMB["latency"].replace(old, new))
        assert not found.tables
        assert says in str(found.problems[0])

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ("4.58", "4.5x", "'4.5x' is not a number"),
            ("4.58", "", "1 of 2 columns"),
            ("2    ", "99999999999999999999    ", "is not a whole number"),
        ],
    )
    def test_a_damaged_row_costs_itself(self, old: str, new: str, says: str) -> None:
        found = read(OMB["latency"].replace(old, new))
        [table], [problem] = found.tables, found.problems
        assert [row["size_bytes"] for row in table.rows] == [1]
        assert str(problem).startswith("line 6: row left out: ") and says in str(problem)

    def test_rates_that_are_cut_off(self) -> None:
        text = OMB["mbw_mr -V"]
        found = read(text[: text.index("\n1         110866")])
        assert not found.tables and "message rates of 0 of 1 sizes" in str(found.problems[0])

    def test_a_lost_title_is_asked_for(self) -> None:
        text = OMB["bw"].split("\n", 3)[3]
        found = read(text)
        assert "without its title; say what it is with --benchmark NAME" in str(found.problems[0])
        assert read(text, benchmark="bibw").tables[0].benchmark == "bibw"

    def test_a_benchmark_that_contradicts_the_head_is_refused(self) -> None:
        found = read(OMB["bw"].split("\n", 3)[3], benchmark="latency")
        assert not found.tables
        assert "the head says MB/s, and latency is measured in us" in str(found.problems[0])

    def test_two_benchmarks_with_one_title(self) -> None:
        assert read(OMB["bw"], benchmark="bw_fan_in").tables[0].benchmark == "bw_fan_in"
        assert read(OMB["bw"], benchmark="latency").tables[0].benchmark == "bw"


@pytest.mark.parametrize(("word", "good"), [("129.91", True), ("0.00", True), ("-0.00", True), ("-129.91", False)])
def test_nothing_is_measured_below_zero(word: str, good: bool) -> None:
    if good:
        assert decimal(word) == abs(float(word)) and number(word) == abs(float(word))
        return
    for read in (decimal, number):
        with pytest.raises(BadTable, match=r"^'-129\.91' is negative$"):
            read(word)
