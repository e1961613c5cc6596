"""nccl-tests' text, every generation of heads, its JSON, and rccl-tests' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from omb_py.results.dialects.nccl.json_text import rows_to_json
from omb_py.results.dialects.nccl.text import to_nccl
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from omb_py.results.dialects.storing import ImportOptions, store_bytes
from omb_py.results.store.provenance import provenance_of
from omb_py.results.store.read import files, load_table, read_provenance, to_rows
from tests.results.dialects import nccl_texts as texts


def read(text: str, **context: Any) -> Parsed:
    return parse(text.encode(), Context(**context))


def rows_of(text: str, **context: Any) -> list[dict[str, Any]]:
    found = read(text, **context)
    assert not found.problems
    return [row for table in found.tables for row in table.rows]


def stored(text: str, where: Path) -> list[dict[str, Any]]:
    store_bytes(text.encode(), "a.log", 1e9, where, ImportOptions())
    return to_rows(load_table(where))


def exported(text: str, folder: Path) -> str:
    return to_nccl(stored(text, folder), provenance_of(folder))


def test_a_program_that_failed_in_the_middle_is_named_once_and_its_rows_stay() -> None:
    cut = texts.FOURTH[: texts.FOURTH.index("    33554432")]
    ranks = [f"nid00710{host}: Test NCCL failure common.cu:279 'unhandled system error / '\n" for host in (6, 9)]
    found = read(cut + "".join(ranks) + " .. nid007106 pid 15784: Test failure common.cu:401\n")
    assert [row["size_bytes"] for table in found.tables for row in table.rows] == [1048576] * 2
    (problem,) = map(str, found.problems)
    assert problem.startswith('line 13: the program failed here, and measured no further size: "nid007106: Test NCCL')


@pytest.mark.parametrize(
    ("launches", "timing", "parameters"),
    [(0, "pipelined", {}), (1, "graph", {}), (10, "graph", {"nccl_replays": "10"})],
)
def test_how_often_a_graph_was_launched_is_kept(
    launches: int, timing: str, parameters: dict[str, str], tmp_path: Path
) -> None:
    """``-G 10`` divides by ten launches, so it is no like of ``-G 1``; in text and JSON, and back."""
    texts_of = (
        texts.FOURTH.replace("graph: 0", f"graph: {launches}"),
        texts.JSON.replace('"graph":0', f'"graph":{launches}'),
    )
    for at, text in enumerate(texts_of):
        rows = stored(text, tmp_path / str(at))
        assert {(row["timing"], *row["parameters"].items()) for row in rows} == {(timing, *parameters.items())}
        again = json.loads(rows_to_json(rows, {}))["config"]["graph"]
        assert again == launches
        assert ("launched 10 times" in to_nccl(rows)) == (launches == 10)


class TestText:
    def test_the_first_generation_counts_in_ms(self) -> None:
        first, second, *_ = rows_of(texts.FIRST)
        known = {
            "source": "nccl-tests",
            "benchmark": "allreduce",
            "backend": "nccl",
            "library": "NCCL",
            "dtype": "char",
            "op": "sum",
            "root": None,
            "in_place": False,
            "value": 286.0,
            "algbw_gbps": 34.98,
            "busbw_gbps": 52.47,
            "bytes_total": 10_000_000,
            "size_bytes": 10_000_000,
            "ranks": 4,
            "nodes": 1,
            "hosts": ["ncrh"] * 4,
            "device": "cuda",
            "device_name": "GeForce RTX 2080 Ti",
            "iterations": 20,
            "warmup": 5,
        }
        assert known.items() <= first.items()
        assert (second["in_place"], second["value"]) == (True, 303.0)

    def test_the_second_has_a_difference_for_a_verdict(self) -> None:
        first, *_ = rows_of(texts.SECOND)
        assert (first["benchmark"], first["root"], first["op"], first["validated"]) == ("bcast", 0, None, True)
        first, *_ = rows_of(texts.SECOND.replace("0e+00", "  N/A"))
        assert first["validated"] is None, "the footer says OK where nothing was checked too"

    def test_each_size_below_an_element_for_each_rank_is_printed_as_0(self, tmp_path: Path) -> None:
        lines = texts.FOURTH.splitlines(keepends=True)
        at = next(number for number, line in enumerate(lines) if line.startswith("     1048576"))
        empty = lines[at].replace("    1048576        262144", "          0             0")
        text = "".join([*lines[:at], empty, empty, *lines[at:]])
        assert [row["parameters"].get("pass") for row in rows_of(text)] == [None, None, "1", "1", *[None] * 4]
        assert to_nccl(stored(text, tmp_path)).count(empty) == 2

    def test_the_third(self) -> None:
        first, _, third, fourth = rows_of(texts.THIRD)
        assert (first["benchmark"], first["library_version"], first["value"]) == ("allreduce", "2.20.5", 105.9)
        assert (third["value"], third["validated"], fourth["validated"]) == (90330.0, True, None)
        assert first["iterations"] == 100

    def test_a_list_of_devices_that_the_bandwidths_contradict_says_nothing(self) -> None:
        first, *_ = rows_of(texts.THIRD)  # 17.33 / 9.90 GB/s is 2·7/8: six of eight lines are missing
        assert (first["ranks"], first["nodes"], first["devices"], first["hosts"]) == (None,) * 4

    @pytest.mark.parametrize("text", [texts.FOURTH, texts.ALLTOALL], ids=["allreduce", "alltoall"])
    def test_a_table_comes_back_to_the_character(self, text: str, tmp_path: Path) -> None:
        table = text[text.index("#\n#      ") :]
        assert to_nccl(stored(text, tmp_path)).endswith(table)

    def test_the_mean_of_a_table_is_that_of_numbers_that_are_not_rounded(self, tmp_path: Path) -> None:
        whole = texts.FOURTH.replace("bandwidth    : 183.475 ", "bandwidth    : 183.472 ")
        assert "# Avg bus bandwidth    : 183.472 \n" in exported(whole, tmp_path / "whole")
        other = texts.FOURTH.replace("bandwidth    : 183.475 ", "bandwidth    : 200 ")
        assert "# Avg bus bandwidth    : 183.475 \n" in exported(other, tmp_path / "other"), "of other rows"

    def test_two_starts_are_two_launches(self) -> None:
        found = read(texts.FOURTH + "some noise\n" + texts.FOURTH)
        assert [table.launch for table in found.tables] == [0, 1]

    def test_rccl_tests_prints_the_same(self) -> None:
        text = texts.THIRD.replace("# Using devices", "rccl-tests: Version develop:3f7f785\n# Using devices")
        first, *_ = rows_of(text)
        assert (first["source"], first["library"], first["device"]) == ("rccl-tests", "RCCL", "rocm")

    def test_one_placement(self) -> None:
        out = texts.FOURTH.replace("    27.49   38.15   66.76       0", "").replace(
            "   195.40  171.73  300.52     N/A", ""
        )
        assert [row["in_place"] for row in rows_of(out)] == [False, False]

    def test_a_cut_row_is_left_out(self) -> None:
        found = read(texts.THIRD[: texts.THIRD.index("116.78")] + "\n")
        [problem] = found.problems
        [table] = found.tables
        assert [row["size_bytes"] for row in table.rows] == [1048576, 1048576]
        assert str(problem) == "line 12: row left out: 10 of 13 columns"


class TestWhichCollective:
    BLOCKS = texts.ALLTOALL.split("\n", 1)[1].replace("# Collective test concluded: alltoall_perf\n", "")

    def test_it_is_asked_for_when_nothing_says_it(self) -> None:
        found = read(self.BLOCKS)
        assert not found.tables and "which collective?" in str(found.problems[0])

    def test_the_user_the_command_or_the_files_name_says_it(self) -> None:
        assert rows_of(self.BLOCKS, benchmark="all_gather")[0]["benchmark"] == "allgather"
        assert rows_of("$ srun ./alltoall_perf -b 8\n" + self.BLOCKS)[0]["benchmark"] == "alltoall"
        assert rows_of(self.BLOCKS, name="nccl-all_gather-8gpus.log")[0]["benchmark"] == "allgather"

    def test_or_the_rows_allow_one_only(self) -> None:
        assert rows_of(texts.THIRD)[0]["benchmark"] == "allreduce"
        rooted = texts.THIRD.replace("sum      -1", "sum       0")
        assert rows_of(rooted)[0]["benchmark"] == "reduce"
        assert rows_of(rooted.replace(" sum ", "none "))[0]["benchmark"] == "bcast"


class TestJson:
    def test_a_row(self) -> None:
        first, second = rows_of(texts.JSON)
        known = {
            "benchmark": "allgather",
            "library_version": "2.30.7",
            "ranks": 2,
            "nodes": 2,
            "hosts": ["n1", "n2"],
            "bytes_total": 1024,
            "size_bytes": 512,
            "value": 12.5,
            "samples_us": [12.0, 13.0, 12.5],
            "median_us": 12.5,
            "iterations": 3,
            "batch": 2,
            "validated": True,
            "root": None,
        }
        assert known.items() <= first.items()
        assert (second["value"], second["validated"], second["iterations"]) == (None, None, 20)

    def test_secrets_are_dropped(self, tmp_path: Path) -> None:
        store_bytes(texts.JSON.encode(), "a.json", 1e9, tmp_path, ImportOptions())
        [path] = files(tmp_path)
        assert b"hunter2" not in path.read_bytes()
        facts = read_provenance(path)["imported"]
        assert facts["environment"] == {"NCCL_API_TOKEN": "<redacted>", "NCCL_DEBUG": "INFO"}
        assert "hunter2" not in json.dumps(facts)
        assert to_rows(load_table(tmp_path))[0]["started_at"].startswith("2026-07-09T10:11:12")

    @pytest.mark.parametrize("whole", [1, 2])
    def test_of_a_file_that_ends_early_the_whole_results_are_read(self, whole: int) -> None:
        result = texts.JSON[texts.JSON.index('{"size"') : texts.JSON.index("}],") + 1]
        text = texts.JSON.replace(result, f"{result},\n{result.replace('1024', '2048').replace('128', '256')}")
        ends = {1: text.index('"size":2048') + 60, 2: text.index('"out_of_bounds"') + 9}
        found = read(text[: ends[whole]])
        [table] = found.tables
        assert [row["bytes_total"] for row in table.rows] == [1024, 1024, 2048, 2048][: 2 * whole]
        assert table.started_at == "2026-07-09T10:11:12" and table.rows[0]["ranks"] == 2
        [problem] = found.problems
        assert "not whole JSON" in str(problem)

    def test_of_a_file_that_ends_before_its_results_nothing_is_read(self) -> None:
        found = read(texts.JSON[:500])
        assert not found.tables and "not whole JSON" in str(found.problems[0])

    def test_files_that_were_put_together_are_a_launch_each(self) -> None:
        found = read(texts.JSON + texts.JSON.replace("2026-07-09 10:11:12", "2026-07-10 10:11:12"))
        assert not found.problems and [table.launch for table in found.tables] == [0, 1]
        assert [table.started_at for table in found.tables] == ["2026-07-09T10:11:12", "2026-07-10T10:11:12"]

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ('"version":3', '"version":4', "its version is 4, known are 1 to 3"),
            ('"size":1024', '"size":"x"', "a result without size"),
            ('"results":[', '"other":[', "no results"),
            ('"type":"float"', '"type":"quux"', "unknown type 'quux'"),
        ],
    )
    def test_what_is_wrong_is_said(self, old: str, new: str, says: str) -> None:
        found = read(texts.JSON.replace(old, new))
        assert not found.tables and says in str(found.problems[0])


class TestRccl:
    def test_csv_whose_head_lacks_a_column(self) -> None:
        first, second = rows_of(texts.RCCL_CSV)
        known = {
            "source": "rccl-tests",
            "benchmark": "allreduce",
            "ranks": 8,
            "nodes": 2,
            "ranks_per_node": 4,
            "value": 19.18415,
            "validated": True,
            "in_place": False,
            "op": "sum",
            "dtype": "float32",
            "parameters": {"cycle": "0"},
        }
        assert known.items() <= first.items()
        assert (second["in_place"], second["validated"]) == (True, None)

    def test_ranks_of_several_devices_each_are_told_by_the_bandwidths(self) -> None:
        assert {
            row["ranks"] for row in rows_of(texts.RCCL_CSV.replace("0.0799", "0.0999").replace("0.0771", "0.0964"))
        } == {16}

    def test_json(self) -> None:
        first, second = rows_of(texts.RCCL_JSON)
        assert (first["benchmark"], first["dtype"], first["nodes"], first["ranks_per_node"]) == (
            "bcast",
            "float16",
            1,
            8,
        )
        assert (second["validated"], second["metrics"]) == (False, {"wrong_elements": 3.0})

    def test_json_of_lines(self) -> None:
        assert [row["in_place"] for row in rows_of(texts.RCCL_JSON_LINES)] == [False, True]

    @pytest.mark.parametrize(
        ("text", "line"),
        [(texts.RCCL_CSV[:-20], 3), (texts.RCCL_JSON_LINES[:-20], 2), (texts.RCCL_JSON[:-20], 3)],
        ids=["csv", "lines", "json"],
    )
    def test_of_a_file_that_ends_early_the_whole_rows_are_read(self, text: str, line: int) -> None:
        found = read(text)
        assert [len(table.rows) for table in found.tables] == [1] and [each.line for each in found.problems] == [line]

    def test_a_damaged_row_of_csv_is_left_out_alone(self) -> None:
        lines = texts.RCCL_CSV.splitlines(keepends=True)
        found = read("".join([*lines[:2], '0,"AllRed\n', lines[2]]))
        assert [len(table.rows) for table in found.tables] == [2]
        assert [str(each) for each in found.problems] == ["line 3: row left out: 2 of 13 columns"]

    def test_lists_that_were_put_together(self) -> None:
        found = read(texts.RCCL_JSON + texts.RCCL_JSON)
        assert not found.problems and [(table.launch, len(table.rows)) for table in found.tables] == [(0, 2), (1, 2)]


class TestOurOwnText:
    KNOWN: ClassVar[dict[str, Any]] = {
        "backend": "mpi",
        "library": "Open MPI",
        "library_version": "5.0.7",
        "binding": "native",
        "device": "cpu",
        "ranks": 2,
        "timing": "local_max",
    }

    def test_is_of_what_it_says(self, make_row) -> None:
        row = make_row(**self.KNOWN, op="sum", dtype="float32", size_bytes=8, value=1.0, in_place=False)
        for text in (to_nccl([row]), rows_to_json([row], {})):
            [again] = read(text).tables[0].rows
            assert again["source"] == "omb-py text", text
            assert {key: again[key] for key in self.KNOWN} == self.KNOWN

    def test_is_of_nothing_known_where_it_says_nothing(self, make_row) -> None:
        row = make_row(op="sum", dtype="float32", size_bytes=8, value=1.0) | dict.fromkeys(self.KNOWN)
        [again] = read(to_nccl([row])).tables[0].rows
        assert {key: again[key] for key in self.KNOWN} == dict.fromkeys(self.KNOWN)
