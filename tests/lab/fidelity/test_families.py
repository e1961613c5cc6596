"""Which benchmarks the fidelity benchmark compares, and that it looks at their data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from omb_py.engine.program.benchmark import Family
from tests.lab.fidelity import run as fidelity
from tests.lab.fidelity.plan import BENCHMARKS, GLOO, LOOP, OF_FAMILIES, SERIES, Series, chosen, declared, plan
from tests.lab.fidelity.rank import LEAST_QUADS, printed, quad_orders
from tests.lab.fidelity.reference import FAMILIES, NoCompiler, compile_reference, in_c
from tests.lab.fidelity.run import DISTURBED, counted

(SERIES_OF_FAMILIES,) = OF_FAMILIES


NO_LOOP_IN_C = {"guideline", "workload", "host", "training", "function"}
"""Families of several calls of those that are compared, or of none."""


def test_every_family_has_a_row() -> None:
    assert {declared(row).family for row in (*BENCHMARKS, *FAMILIES)} == set(get_args(Family)) - NO_LOOP_IN_C
    assert set(OF_FAMILIES) < set(SERIES["all"])  # what `make bench-fidelity` runs


def test_a_benchmark_without_a_size_is_measured_once() -> None:
    cells = plan(SERIES_OF_FAMILIES, FAMILIES, (8, 65536), 1.0)
    assert [c["size"] for c in cells if c["benchmark"] == "comm_dup"] == [0]
    assert {c["benchmark"]: [d["size"] for d in cells if d["benchmark"] == c["benchmark"]] for c in cells} == {
        row: [0] if row == "comm_dup" else [8, 65536] for row in FAMILIES
    }
    assert all(c["iterations"] > c["warmup"] > 0 and c["quads"] % 2 == 0 for c in cells)


def test_gloos_cells_end_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    (series,) = GLOO
    cells = plan(series, series.rows, series.sizes, 0.5)
    assert [(c["size"], c["seconds"]) for c in cells] == [(size, 6.0) for size in series.sizes]
    now = iter(range(1000))
    monkeypatch.setattr("tests.lab.fidelity.rank.time.monotonic", lambda: next(now))
    session = SimpleNamespace(share=lambda value: value)
    assert list(quad_orders(session, {"quads": 200, "seconds": 8})) == ["ABBA", "BAAB"] * 4
    assert list(quad_orders(session, {"quads": 200, "seconds": 1})) == ["ABBA", "BAAB"] * (LEAST_QUADS // 2)
    assert len(list(quad_orders(session, {"quads": 20}))) == 20


def test_a_disturbed_launch_counts_unless_only_quiet_ones_do() -> None:
    launches = [{"other_cores": cores} for cores in (0.0, DISTURBED, None, 0.5)]
    assert counted(launches, only_quiet=False) == launches
    assert [one["other_cores"] for one in counted(launches, only_quiet=True)] == [0.0, None]


def test_of_the_rows_asked_for_each_series_takes_its_own() -> None:
    both = [(series.name, rows) for series, rows in chosen("all", ["mbw_mr", "latency"])]
    assert both[:2] == [("native", ("latency",)), ("families", ("mbw_mr",))]
    assert [rows for _, rows in both[2:]] == [("latency",)] * 2
    judged = tuple(row for row in FAMILIES if row != LOOP)
    assert [rows for _, rows in chosen("all", None)] == [BENCHMARKS, judged, BENCHMARKS, BENCHMARKS]
    assert [rows for _, rows in chosen("families", [LOOP])] == [(LOOP,)]


@pytest.mark.parametrize(
    ("mode", "row", "hint"),
    [("native", "latencyy", "did you mean latency?"), ("mpi4py", "comm_dup", ""), ("late", "latency", "")],
)
def test_a_row_that_no_series_has_is_one_line(
    capsys: pytest.CaptureFixture[str], mode: str, row: str, hint: str
) -> None:
    assert fidelity.main(["--mode", mode, "--benchmarks", row]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--mode {mode} has no benchmark {row!r}" in line and hint in line


def test_every_row_has_its_loop_in_c() -> None:
    from tests.lab.fidelity.reference import SOURCES

    text = "".join(source.read_text() for source in SOURCES)
    assert all(f"SIGNATURE({in_c(row)})" in text for row in FAMILIES)


@pytest.mark.parametrize(
    ("part", "value"), [("pure", 2.0), ("exposed", 1.5 + 3.5)], ids=["call and wait", "overall - compute"]
)
def test_of_a_non_blocking_collective_a_part_counts(part: str, value: float) -> None:
    laps = {
        "pure.time": [1.0, 3.0],
        "overlap.init": [1.0, 2.0],
        "overlap.compute": [50.0, 60.0],
        "overlap.wait": [3.0, 4.0],
        "overall": [54.0, 66.0],
    }
    assert printed(SimpleNamespace(laps=laps, bytes_moved=None), "us", part) == pytest.approx(value)


def test_a_rate_is_bytes_over_the_mean_lap_and_only_rank_0_prints() -> None:
    assert printed(SimpleNamespace(laps={"time": [2.0]}, bytes_moved=100), "MB/s") == pytest.approx(50)
    assert printed(SimpleNamespace(laps={"time": []}, bytes_moved=100), "MB/s") == 0


def test_wrong_data_are_said_with_cell_and_side() -> None:
    cells: list[dict[str, Any]] = [
        {"benchmark": "put_latency", "size": 8, "wrong_bytes": {"A": 0, "B": 8}},
        {"benchmark": "comm_dup", "size": 0, "wrong_bytes": {"A": None, "B": None}},
        {"benchmark": "latency", "size": 8},
    ]
    assert fidelity.wrong_data({"cells": cells}) == "put_latency at 8 bytes: 8 wrong bytes after side B"
    assert fidelity.wrong_data({"cells": cells[1:]}) == ""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_side_that_moves_no_data_is_found_out() -> None:
    """Real ranks; side A does nothing."""
    series = Series("idle", ("idle", "c", None), "funneled", 0.03)
    rows = [row for row in FAMILIES if row != "comm_dup"]
    cells = [{**cell, "iterations": 10, "warmup": 2, "quads": 2} for cell in plan(series, rows, (8,), 0.01)]
    try:
        result = fidelity.launch(fidelity.mpiexec(), series, cells, compile_reference())
    except NoCompiler as error:
        pytest.skip(f"no C compiler here: {error}")
    for cell in result["cells"]:
        assert cell["wrong_bytes"]["A"] >= 8, cell["benchmark"]
        assert cell["wrong_bytes"]["B"] == 0, cell["benchmark"]
