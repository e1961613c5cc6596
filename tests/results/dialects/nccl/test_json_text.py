"""nccl-tests' JSON of rows that were measured here: what is written is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.results.dialects.nccl import NcclTests
from omb_py.results.dialects.nccl.json_text import rows_to_json
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context

SAME = tuple("benchmark size_bytes bytes_total dtype op root in_place value algbw_gbps busbw_gbps".split())


def test_each_line_is_read_back_as_it_was(make_row) -> None:
    common = {"dtype": "float32", "ranks": 2, "library_version": "2.30.7", "timing": "pipelined", "batch": 20}
    common |= {"iterations": 1, "warmup": 1, "hosts": ["a", "b"], "algbw_gbps": 2.0, "busbw_gbps": 2.0}
    rows = [
        make_row(**common, op=op, size_bytes=size, bytes_total=size, in_place=inside, value=size + 0.25, wrong_bytes=0)
        for op in ("sum", "max")
        for size in (8, 1 << 20)
        for inside in (False, True)
    ]
    text = rows_to_json(rows, {})
    (table,) = parse(text.encode(), Context()).tables
    assert [{key: row[key] for key in SAME} for row in table.rows] == [{key: row[key] for key in SAME} for row in rows]
    assert {(row["library_version"], row["ranks"], row["iterations"], row["validated"]) for row in table.rows} == {
        ("2.30.7", 2, 20, True)
    }


def test_a_half_that_was_not_measured_is_none_and_wrong_elements_are_counted(make_row) -> None:
    row = make_row(benchmark="bcast", dtype="int32", ranks=1, size_bytes=8, value=1.0, root=0, wrong_bytes=5)
    document = json.loads(rows_to_json([row], {}))
    (line,) = document["results"]
    assert line["in_place"] is None and (line["redop"], line["root"]) == ("none", "     0")
    assert (line["out_of_place"]["nwrong"], line["out_of_place"]["bus_bw"]) == (2, 0.0)
    assert document["out_of_bounds"] == {"count": 1, "okay": "false"} and document["nccl_version"] == 0


def test_no_row_is_no_document() -> None:
    assert NcclTests().to_json([], {}) == ""


def test_a_file_is_written_beside_the_text_and_never_over_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "allreduce --backend mock -m 8:16 -i 5 -x 1 --no-store --json".split()
    file = tmp_path / "rows.json"
    assert main([*words, str(file)]) == 0
    assert [row["size_bytes"] for row in json.loads(file.read_text())] == [8, 16]
    assert "# OSU MPI Allreduce Latency Test" in capsys.readouterr().out
    assert main([*words, str(file)]) == 2
    assert f"--json {file} exists already: name another file" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "absent" / "rows.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_several_reductions_stand_in_one_table_where_its_rows_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    words = "allreduce --backend mock -m 8:8 -i 5 -x 1 --no-store --op MPI_SUM,max".split()
    assert main([*words, "--format", "nccl-tests"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line[:1] == " "]
    assert [line[3] for line in lines] == ["sum", "max"]
    assert main(words) == 2
    said = "--format osu does not say which reduction a row is of: one --op at a time, or --format table"
    assert said in capsys.readouterr().err
