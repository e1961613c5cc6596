"""The arithmetic of the fidelity benchmark, and that it can fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.lab.fidelity import plan as fidelity_plan
from tests.lab.fidelity import run as fidelity
from tests.lab.fidelity.ratios import judge, orders
from tests.lab.fidelity.reference import FAMILIES


def test_the_interval_is_students_and_must_lie_inside_the_bar() -> None:
    from scipy import stats

    launches = [0.001, 0.002, -0.001, 0.003, 0.0]
    verdict = judge(launches, 0.03)
    low, high = stats.t.interval(0.95, 4, np.mean(launches), stats.sem(launches))
    assert (verdict.low, verdict.high) == pytest.approx((math.expm1(low), math.expm1(high)))
    assert verdict.inside
    assert not judge([x + 0.04 for x in launches], 0.03).inside
    assert not judge([-0.05, 0.05, 0.0], 0.03).inside  # right on the mean, but not known well enough
    assert not judge([0.0], 0.03).inside


@pytest.mark.parametrize(
    ("launches", "word"),
    [
        ([0.0, 0.001, -0.001], "PASS"),
        ([0.028, 0.03, 0.032], "FAIL"),  # known well enough to say that it is not known to be inside
        ([-0.05, 0.05, 0.0], "UNDECIDED"),
        ([0.0], "UNDECIDED"),
        ([0.5, 0.6, 0.7], "FAIL"),  # wide, but nowhere near
    ],
)
def test_an_interval_wider_than_the_bar_decides_nothing(launches: list[float], word: str) -> None:
    assert judge(launches, 0.03).word == word


def cell(a: float, b: float) -> dict[str, Any]:
    runs = [{"order": o, "values": [a if side == "A" else b for side in o]} for o in orders(4)]
    return {"benchmark": "latency", "size": 8, "iterations": 10, "runs": runs, "extra_values": [1.0]}


def launches_with(ratio: float) -> list[dict[str, Any]]:
    facts = {"library": "L", "library_version": "1", "thread_level": "funneled", "ranks": 2}
    return [{**facts, "cells": [cell(ratio * (1 + 1e-3 * k), 1.0)]} for k in range(-3, 4)]


@pytest.mark.parametrize(("ratio", "verdict", "word"), [(1.0, True, "PASS"), (1.06, False, "FAIL")])
def test_the_verdict_is_printed_for_every_cell(
    capsys: pytest.CaptureFixture[str], ratio: float, verdict: bool, word: str
) -> None:
    assert fidelity.show_verdicts(fidelity_plan.NATIVE[0], launches_with(ratio)) is verdict
    said = capsys.readouterr().out
    assert word in said and f"{100 * (ratio - 1):.2f}%" in said


@pytest.mark.slow
@pytest.mark.mpi
def test_one_short_launch_of_every_series(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Real ranks, both sides in one process; no verdict is asked of one launch."""
    import json

    for mode in ("native", "mpi4py", "late", "families"):
        file = tmp_path / f"{mode}.json"
        benchmarks = {"late": "allreduce", "families": ",".join(FAMILIES)}.get(mode, "latency,bw,allreduce,bcast")
        code = fidelity.main(
            [
                "--mode",
                mode,
                "--launches",
                "1",
                "--sizes",
                "8",
                "--benchmarks",
                benchmarks,
                "--effort",
                "0.05",
                "--patience",
                "0",
                "--json",
                str(file),
            ]
        )
        if code == 3:
            pytest.skip(f"no C compiler here: {capsys.readouterr().err.strip()}")
        assert code == 1  # one launch decides nothing
        for series in json.loads(file.read_text()):
            (launch,) = series["launches"]
            assert [c["benchmark"] for c in launch["cells"]] == benchmarks.split(",")
            assert all(v > 0 for c in launch["cells"] for run in c["runs"] for v in run["values"])
            if mode == "families":
                nothing_moves = {"A": None, "B": None}
                for c in launch["cells"]:
                    assert c["wrong_bytes"] == (nothing_moves if c["benchmark"] == "comm_dup" else {"A": 0, "B": 0})
