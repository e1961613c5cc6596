from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pytest

from omb_py.errors import UsageError
from omb_py.printing.export import CSV_COLUMNS, export, left_out, to_csv, to_json
from omb_py.results.dialects.omb.transcript import to_osu
from omb_py.results.store import schema
from omb_py.results.store.read import load
from omb_py.results.store.write import write_launch


@pytest.fixture
def rows(make_row) -> list[dict]:
    common = {"dtype": "int32", "ranks": 2, "iterations": 20, "rank_mean_us": [1.0, 3.0], "tags": {"site": "a,b"}}
    return [
        make_row(size_bytes=4, value=2.0, samples_us=[1.5, 2.5], samples_avg_us=[1.5, 2.5], **common),
        make_row(size_bytes=8, value=1 / 3, validated=True, hosts=["n1", "n2"], **common),
    ]


class TestJson:
    def test_is_a_list_of_objects_with_every_column_in_full_precision(self, rows) -> None:
        first, second = json.loads(to_json(rows))
        assert list(first) == list(schema.NAMES)
        assert first["samples_us"] == [1.5, 2.5]
        assert second["value"] == 1 / 3
        assert second["hosts"] == ["n1", "n2"]
        assert first["device"] is None

    def test_is_strict(self, make_row) -> None:
        text = to_json([make_row(value=math.nan, ess=math.inf, samples_us=[math.nan, 1.0])])
        [row] = json.loads(text, parse_constant=lambda word: pytest.fail(word))
        assert (row["value"], row["ess"], row["samples_us"]) == (None, None, [None, 1.0])


class TestCsv:
    @pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-1+2", "@SUM(A1)", " =1"])
    def test_no_text_is_a_formula(self, make_row, text: str) -> None:
        (row,) = csv.DictReader(io.StringIO(to_csv([make_row(library_version=text, value=-1.5)])))
        assert row["library_version"] == f"'{text}" and row["value"] == "-1.5"

    def test_has_all_but_the_samples(self, rows) -> None:
        first, second = csv.DictReader(io.StringIO(to_csv(rows)))
        assert tuple(first) == CSV_COLUMNS
        assert set(schema.NAMES) - set(CSV_COLUMNS) == set(schema.FLOAT_LISTS)
        assert float(second["value"]) == 1 / 3
        assert (first["validated"], second["validated"]) == ("", "true")
        assert json.loads(first["tags"]) == {"site": "a,b"}
        assert json.loads(second["hosts"]) == ["n1", "n2"]


class TestOsu:
    def test_is_a_table_a_benchmark_with_its_types_in_it(self, rows, make_row) -> None:
        rows += [
            make_row(size_bytes=4, value=3.0, dtype="float32", ranks=2, iterations=20, rank_mean_us=[3.0]),
            make_row(benchmark="barrier", size_bytes=0, value=9.0, dtype="char"),
            make_row(size_bytes=4, value=5.0, dtype="int32", launch_id="r1-1", launch_index=1, validated=False),
        ]
        assert to_osu(rows) == (
            "\n# OSU MPI Allreduce Latency Test v7.5\n"
            "# Datatype: MPI_INT.\n"
            "# Size       Avg Latency(us)        Validation\n"
            "4                       2.00                 -\n"
            "8                       0.33              Pass\n"
            "# Datatype: MPI_FLOAT.\n"
            "# Size       Avg Latency(us)        Validation\n"
            "4                       3.00                 -\n"
            "\n# OSU MPI Barrier Latency Test v7.5\n"
            "# Avg Latency(us)\n"
            "             9.00\n"
            "\n# OSU MPI Allreduce Latency Test v7.5\n"
            "# Datatype: MPI_INT.\n"
            "# Size       Avg Latency(us)        Validation\n"
            "4                       5.00              Fail\n"
            "DATA VALIDATION ERROR: omb-py exited with status 1 on message size 4.\n"
        )


def test_rows_of_a_loaded_store_export_the_same(tmp_path, rows) -> None:
    write_launch(tmp_path, rows, {})
    loaded = load(tmp_path).to_dict("records")
    assert to_osu(loaded, percentiles=[50], full=True) == to_osu(rows, percentiles=[50], full=True)
    stored, direct = json.loads(to_json(loaded)), json.loads(to_json(rows))
    assert stored == direct
    assert to_csv(loaded) == to_csv(rows)


@pytest.mark.parametrize(
    ("form", "known", "why"),
    [
        (
            "osu",
            {"unit": "img/sec", "value": 325.75},
            "OMB's text has times and MB/s: bcast is in img/sec: --format csv",
        ),
        ("osu", {"value": None}, "OMB's text has times and MB/s: bcast has no value: --format csv"),
        (
            "nccl-tests",
            {"dtype": None},
            "none of these rows is a collective of nccl-tests with type and time: --format csv",
        ),
    ],
)
def test_what_a_text_has_no_place_for_is_left_out(rows, make_row, form: str, known: dict[str, Any], why: str) -> None:
    other = make_row(**{"benchmark": "bcast", "value": 1.0, "dtype": "char", **known})
    assert export([*rows, other], form) == export(rows, form)
    assert left_out([*rows, other], form) == {"bcast": 1}
    with pytest.raises(UsageError, match=why):
        export([other], form)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(
        UsageError,
        match="unknown format 'xml': valid: csv, json, osu, nccl-tests, imb, imb-multi, pytest-benchmark, openmetrics",
    ):
        export([], "xml")
