"""JSON of pytest-benchmark, pyperf and hyperfine."""

from __future__ import annotations

import json

import pytest

from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed

PYTEST = {
    "machine_info": {},
    "benchmarks": [{"fullname": "test_a.py::test_put", "stats": {"mean": 2e-6, "data": [1e-6, 2e-6, 3e-6]}}],
}
PYPERF = {
    "version": "1.0",
    "metadata": {"name": "put", "unit": "second"},
    "benchmarks": [{"runs": [{"warmups": [[1, 9.0]]}, {"values": [0.001, 0.002]}, {"values": [0.003]}]}],
}
HYPERFINE = {"results": [{"command": "sleep 1", "mean": 1.0, "times": [0.9, 1.1, 1.0]}]}


def read(document: object) -> Parsed:
    return parse(json.dumps(document).encode(), Context())


@pytest.mark.parametrize(
    ("document", "name", "median_us"),
    [(PYTEST, "test_a.py::test_put", 2.0), (PYPERF, "put", 2000.0), (HYPERFINE, "sleep 1", 1e6)],
)
def test_times_are_samples(document: object, name: str, median_us: float) -> None:
    (table,) = read(document).tables
    assert table.benchmark == name
    assert table.rows[0]["median_us"] == pytest.approx(median_us)
    assert table.rows[0]["iterations"] == 3


def test_without_times_the_mean_is_read() -> None:
    entry = {"fullname": "test_put", "stats": {"mean": 2e-6}}
    (table,) = read({"machine_info": {}, "benchmarks": [entry]}).tables
    assert (table.rows[0]["value"], table.rows[0].get("median_us")) == (2.0, None)


def test_pyperf_of_another_unit_is_left_out() -> None:
    (problem,) = read({**PYPERF, "metadata": {"name": "put", "unit": "byte"}}).problems
    assert "'byte', and only seconds" in problem.text


@pytest.mark.parametrize("document", [PYTEST, PYPERF, HYPERFINE])
def test_a_cut_file_is_a_problem(document: object) -> None:
    text = json.dumps(document)
    parsed = parse(text[: len(text) - 3].encode(), Context())
    assert not parsed.tables
    assert "is not whole" in parsed.problems[0].text
