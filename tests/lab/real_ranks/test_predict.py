"""The arithmetic of tests/lab/real_ranks/predict.py, and that its suite can be read."""

from __future__ import annotations

import pytest

from omb_py.cli.suite_options import CommandLine
from omb_py.orchestrate.suites.expand import expand
from omb_py.orchestrate.suites.suite_file import parse_suite
from omb_py.results.analysis.step_prediction import Predicted, observed
from tests.lab.real_ranks.predict import (
    AT_FOUR,
    WORKLOADS,
    Error,
    Forecast,
    distribution,
    errors_of,
    explained,
    held_out,
    percentile,
    suite,
)

ERRORS = [Error(f"w{j}", ratio) for j, ratio in enumerate((1.1, 0.5, 1.0, 1.25, 0.8))]


def test_twice_and_half_are_as_far_off() -> None:
    assert Error("a", 2.0).size == Error("a", 0.5).size == 1.0


def test_distribution() -> None:
    assert percentile(range(1, 11), 0.9) == 9 and percentile([3.0], 0.9) == 3.0
    assert distribution(ERRORS) == "n 5, median 25 %, p90 100 %, worst 100 % (w1), bias +0 %"
    assert distribution([]) == "n 0"


def test_why() -> None:
    metrics = [{"flight_us": 50.0, "serial_us": 100.0}, {"flight_us": 80.0, "serial_us": 100.0}]
    said = explained([Error("a", 2.0)], [Error("a", 1.1)], metrics, 4, 2)
    assert "explain a part of it (median 100 % from hot curves, 10 % from cold ones)" in said
    assert "65 % of one by one" in said and "4 ranks on 2 cores: oversubscribed" in said
    said = explained([Error("a", 1.1)], [Error("a", 2.0)], [], 2, 2)
    assert "do not explain it" in said and said.endswith("not oversubscribed")


def test_only_sizes_that_no_sweep_has_count() -> None:
    assert held_out("ddp:model=mlp", 2) and held_out("ring:model=mlp", 2)
    assert held_out("tensor:model=llama2-7b,layers=1,dtype=float32", 2) == set()  # 64 MiB
    for text in WORKLOADS:
        assert held_out(text, 2) or held_out(text, 4), text
    for text in AT_FOUR:
        assert held_out(text, 4), text


def test_rows_and_steps() -> None:
    side = {"ranks": 2}
    (row, other) = sorted(held_out("ddp:model=mlp", 2))
    found = Predicted({row: 10.0, other: 30.0})
    metrics = {f"serial.{row}": 20.0, f"serial.{other}": 20.0, "serial_us": 40.0}
    times = observed([{"metrics": metrics}])
    calls, whole = errors_of(Forecast("ddp:model=mlp", side, found, metrics, times))
    assert [e.ratio for e in calls] == [0.5, 1.5] and [e.ratio for e in whole] == [1.0]
    assert errors_of(Forecast("ddp:model=mlp", side, Predicted({row: 10.0, other: None}), metrics, times))[1] == []


@pytest.mark.parametrize("few", [True, False])
def test_the_suite_is_one(few: bool) -> None:
    text = suite(("hot", "rotate"), (*WORKLOADS, *AT_FOUR), 0.5, few)
    made = expand(parse_suite(text, "f.toml"), CommandLine(), {}, None)
    assert {request.benchmark for request in made.requests} >= {"allreduce", "bcast", "gather", "step"}
    assert {request.cache for request in made.requests if request.benchmark == "allreduce"} == {"hot", "rotate"}
