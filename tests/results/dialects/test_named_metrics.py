"""Numbers that the user names."""

from __future__ import annotations

import json

import pytest

from omb_py.errors import UsageError
from omb_py.results.dialects.named_metrics import MetricReader, parse_metric
from omb_py.results.dialects.reading import Context, Parsed
from omb_py.results.statistics.launch_time import printed_text, time_of


def read(metric: str, text: str) -> Parsed:
    return MetricReader([parse_metric(metric)]).read_whole(text, Context())


def test_a_time_becomes_microseconds() -> None:
    (table,) = read("step ms lower took ([0-9.]+) ms", "took 1.5 ms\n").tables
    assert {name: table.rows[0][name] for name in ("benchmark", "unit", "value")} == {
        "benchmark": "step",
        "unit": "us",
        "value": 1500.0,
    }


def test_several_times_are_samples() -> None:
    (table,) = read("step us lower took ([0-9.]+)", "".join(f"took {k}\n" for k in range(1, 6))).tables
    assert (table.rows[0]["median_us"], table.rows[0]["value"], table.rows[0]["iterations"]) == (3.0, 3.0, 5)


def test_what_is_better_is_kept_with_other_units() -> None:
    (table,) = read("rate req/s higher ([0-9,]+) per second", "12,500 per second").tables
    assert (table.rows[0]["unit"], table.rows[0]["value"]) == ("req/s", 12500.0)
    assert table.rows[0]["parameters"] == {"better": "higher"}
    assert read("power W lower ([0-9]+) W", "300 W").tables[0].rows[0]["parameters"] == {"better": "lower"}


@pytest.mark.parametrize("unit", ["us", "ms", "rounds"])
def test_more_is_faster_where_higher_is_better(unit: str) -> None:
    """Of microseconds, too: the time between two failures."""
    few, many = (read(f"between {unit} higher ([0-9]+)", text).tables[0].rows[0] for text in ("100", "200"))
    assert time_of(few) == 2 * time_of(many)
    assert printed_text(few, time_of(few)) == f"100.00 {unit}"


def test_a_size_can_be_named() -> None:
    (table,) = read(r"put us lower ^(?P<size>\d+) +(?P<value>[0-9.]+)$", "8 1.5\n16 2.5\n").tables
    assert [(row["size_bytes"], row["value"]) for row in table.rows] == [(8, 1.5), (16, 2.5)]


def test_a_path_into_json() -> None:
    text = json.dumps({"runs": [{"values": [1.0, 3.0]}, {"values": [2.0]}], "a": {"b": 4}})
    assert read("x J lower json:runs[*].values[*]", text).tables[0].rows[0]["value"] == 2.0
    assert read("x J lower json:$.a.b", text).tables[0].rows[0]["value"] == 4.0


@pytest.mark.parametrize(
    ("metric", "text", "reason"),
    [
        ("x J lower json:a.c", '{"a": {"b": 1}}', "no 'c' there: valid: b"),
        ("x J lower json:a[2]", '{"a": [1]}', r"no element \[2\]"),
        ("x J lower json:a", '{"a": "fast"}', '"fast".* is no number'),
        ("x J lower json:a", '{"a": 1', "the output is no JSON"),
        ("x J lower took ([0-9]+)", "nothing", "no line has what"),
        ("x J lower took (.*) s", "took long s", "'long' is no number"),
        ("x J lower took ([0-9]+)", "took 0", "only numbers above 0"),
        ("x J lower took ([a-z]+)", "took nan", "only numbers above 0"),
    ],
)
def test_what_cannot_be_read_is_a_problem(metric: str, text: str, reason: str) -> None:
    parsed = read(metric, text)
    assert not parsed.tables
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(parsed.problems[0].text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("step ms lower", "takes 'NAME UNIT"),
        ("step ms best x([0-9])", "'best' does not say which numbers are better"),
        ("step ms lower took [0-9]+", "put parentheses around the number"),
        ("step ms lower took ([0-9]+", "is no regular expression"),
        (r"step ms lower ^(\d+) ([0-9]+)", "name that of the number"),
        ("9step ms lower ([0-9]+)", "a name begins with a letter"),
    ],
)
def test_another_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_metric(text)
