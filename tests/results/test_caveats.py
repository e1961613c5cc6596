"""Rows whose bytes moved otherwise than on an ordinary device say so in every text."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from omb_py.printing.export import to_csv
from omb_py.printing.tables import results_table
from omb_py.results.caveats import caveat_line, caveat_text, caveats, parameters_of_caveats
from omb_py.results.dialects.nccl.text import header, to_nccl
from omb_py.results.dialects.omb.text import text_of
from omb_py.results.dialects.omb.transcript import to_osu
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context

SHARED = {"ranks_per_device": "2"}
CASES = [
    ({"staging": "staged", "ranks_per_device": "1"}, "# [ staging: copied through host memory ]"),
    ({"staging": "torch"}, "# [ staging: copied by PyTorch ]"),
    ({"placement": "M M", **SHARED}, "# [ buffers: M M ] [ ranks per device: 2 ]"),
    ({"rotation": "512 of 2048 MiB"}, "# [ cache rotation: 512 of 2048 MiB ]"),
    ({"staging": "direct", "placement": "D D", "ranks_per_device": "1"}, ""),
    ({}, ""),
]


def row_of(make_row: Any, benchmark: str, family: str, parameters: dict[str, str], **more: Any) -> dict[str, Any]:
    given = {"device": "cuda", "dtype": "char", "ranks": 2, "size_bytes": 8, "unit": "us", "value": 1.5, **more}
    return dict(make_row(benchmark=benchmark, family=family, parameters=parameters, **given))


@pytest.mark.parametrize(("parameters", "line"), CASES)
def test_the_header_of_omb_says_them_below_the_title(make_row, parameters: dict[str, str], line: str) -> None:
    row = row_of(make_row, "bcast", "collective", parameters)
    head = text_of(row, False, False, ()).header("char").splitlines()
    assert head[1] == "# OSU MPI-CUDA Broadcast Latency Test v7.5"
    assert head[2:-2] == ([line] if line else [])
    assert caveat_line(caveats(row)) == line


def test_point_to_point_names_both_buffers_as_omb_does(make_row) -> None:
    row = row_of(make_row, "latency", "pt2pt", {"placement": "H MD", "staging": "staged"})
    assert text_of(row, False, False, ()).header("char").splitlines()[2:4] == [
        "# Send Buffer on HOST (H) and Receive Buffer on MANAGED (MD)",
        "# [ staging: copied through host memory ]",
    ]


@pytest.mark.parametrize(("parameters", "line"), CASES)
def test_they_survive_the_import_of_the_text(make_row, parameters: dict[str, str], line: str) -> None:
    text = to_osu([row_of(make_row, "bcast", "collective", parameters)])
    parsed = parse(text.encode(), Context())
    (read,) = parsed.tables
    assert not parsed.problems
    assert caveats(read.rows[0]) == caveats({"parameters": parameters})
    assert parameters_of_caveats("# [ pairs: 2 ] [ window size: 64 ]") == {}


def test_a_column_of_csv_and_of_tables_says_them(make_row) -> None:
    rows = [row_of(make_row, "bcast", "collective", parameters) for parameters in (SHARED, {})]
    assert [row["caveats"] for row in csv.DictReader(io.StringIO(to_csv(rows)))] == ["ranks per device: 2", ""]
    table = results_table(rows)
    assert "caveats" in [column.header for column in table.columns]
    assert caveat_text(rows[0]) in str(results_table(rows[:1]).title)


def test_the_text_of_nccl_tests_has_a_comment_and_a_table_for_them(make_row) -> None:
    given = {"bytes_total": 8, "algbw_gbps": 1.0, "busbw_gbps": 1.0, "op": "sum"}
    rows = [row_of(make_row, "allreduce", "collective", p, **given) for p in ({}, SHARED)]
    text = to_nccl(rows)
    assert text.count(header()) == 2
    assert text.count("# [ ranks per device: 2 ]\n") == 1
    assert text.index("# [ ranks") > text.index("# Out of bounds")
