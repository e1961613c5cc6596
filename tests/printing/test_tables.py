from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from omb_py.printing.tables import RUNS_FOLDED, RUNS_SPARE, SPARE, results_table, runs_table
from omb_py.printing.writers.terminal import fitted
from omb_py.results.store.runs import RunSummary
from tests.support.machines.mpi import run_command


def row(**values: Any) -> dict[str, Any]:
    base = {
        "launch_id": "r-0",
        "benchmark": "allreduce",
        "backend": "mpi",
        "library": "MPICH",
        "library_version": "5.0",
        "binding": "native",
        "dtype": "int32",
        "ranks": 2,
        "size_bytes": 8,
        "value": 1.234,
        "unit": "us",
        "median_us": 1.2,
        "p99_us": 2.0,
        "min_us": 1.0,
        "max_us": 9.0,
        "iterations": 1000,
        "stop_reason": "count",
    }
    return {**base, **values}


def lines(table: Table) -> list[str]:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return [line.strip() for line in capture.get().splitlines() if line.strip() and "──" not in line]


def words(line: str) -> list[str]:
    return [word.strip() for word in line.split("  ") if word.strip()]


def test_pairs_of_a_sweep_are_told_apart() -> None:
    sweep = [row(hosts=["n1", other], parameters={"pair": "0-1"}) for other in ("n2", "n3")]
    _, head, first, second = lines(results_table(sweep))
    assert words(head)[0] == "pair" and words(first)[0] == "n1 - n2" and words(second)[0] == "n1 - n3"
    title, *_ = lines(results_table([row(hosts=["n1", "n2"])]))
    assert "n1" not in title


def test_what_all_rows_share_is_the_title() -> None:
    title, head, first, second = lines(results_table([row(), row(size_bytes=8192, value=20.0, p99_us=None)]))
    assert title == "allreduce · mpi · MPICH · 5.0 · native · int32 · 2 ranks"
    assert words(head) == ["size", "value", "median µs", "p99 µs", "min µs", "max µs", "n", "stop"]
    assert words(first) == ["8 B", "1.23 µs", "1.20", "2.00", "1.00", "9.00", "1000", "count"]
    assert words(second) == ["8 KiB", "20.00 µs", "1.20", "-", "1.00", "9.00", "1000", "count"]


def test_what_differs_is_a_column() -> None:
    title, head, *body = lines(results_table([row(), row(binding="mpi4py"), row(backend="gloo", binding="torch")]))
    assert title == "allreduce · MPICH · 5.0 · int32 · 2 ranks"
    assert words(head)[:3] == ["backend", "binding", "size"]
    assert [words(line)[:2] for line in body] == [["mpi", "native"], ["mpi", "mpi4py"], ["gloo", "torch"]]


def test_nulls_of_pandas_and_brackets_of_libraries_do_no_harm() -> None:
    import pandas as pd

    table = results_table([row(validated=pd.NA, size_bytes=pd.NA, iterations=pd.NA, library="[red]x", ranks=pd.NA)])
    title, *_ = lines(table)
    assert "[red]x" in title


def test_forms_timings_and_settings_tell_rows_apart() -> None:
    rows = [
        dict(backend="nccl", timing="local_max", in_place=True, parameters={"timing_mode": "isolated"}),
        dict(backend="nccl", timing="graph", in_place=False, parameters={"nccl_log": "tuning", "nccl_max_ctas": "2"}),
    ]
    table = results_table(rows)
    columns = {str(column.header): [str(cell) for cell in column.cells] for column in table.columns}
    assert columns["form"] == ["in place", ""] and columns["timing"] == ["local_max", "graph"]
    assert columns["settings"] == ["", "log=tuning,max_ctas=2"]
    (alike,) = [str(results_table(rows[1:]).title)]
    assert "log=tuning,max_ctas=2" in alike and "graph" not in alike


def test_what_computes_beside_a_call_tells_rows_apart() -> None:
    rows = [dict(benchmark="iallreduce", parameters=more) for more in ({}, {"filler": "gpu"}, {"filler": "both"})]
    columns = {str(column.header): [str(cell) for cell in column.cells] for column in results_table(rows).columns}
    assert columns["cuda target"] == ["", "gpu", "both"]


def test_runs() -> None:
    run = RunSummary(
        "r1", "2026-11-21T10:00:00.123+00:00", ("a", "b", "c", "d", "e"), ("mpi",), ("MPICH 5.0",), (2, 4), 10, 2, 3
    )
    head, line = lines(runs_table([run]))
    assert words(head) == [
        "run",
        "started (UTC)",
        "benchmarks",
        "backend",
        "library",
        "ranks",
        "cells",
        "launches",
        "failed",
    ]
    assert words(line) == ["r1", "2026-11-21 10:00:00", "a, b, c, d +1", "mpi", "MPICH 5.0", "2, 4", "10", "2", "3"]


def test_a_run_without_its_end_says_how_it_stands() -> None:
    whole = RunSummary("r1", "2026-11-21T10:00:00", ("a",), ("mpi",), ("MPICH 5.0",), (2,), 10, 2, 0)
    head, *rows = lines(runs_table([whole, replace(whole, run_id="r2", state="interrupted")]))
    assert words(head)[-1] == "state"
    assert [words(row)[-1] for row in rows] == ["2", "interrupted"]


@pytest.mark.parametrize(("values", "text"), [(("a", "b", "c"), "rack=a or b or c"), ("abcd", "rack=(4 values)")])
def test_many_values_of_a_tag_are_counted(values: tuple[str, ...], text: str) -> None:
    run = RunSummary(
        "r1", "2026-11-21T10:00:00", ("a",), ("mpi",), ("MPICH 5.0",), (2,), 10, 2, 0, {"rack": tuple(values)}
    )
    assert words(lines(runs_table([run]))[1])[-1] == text


@pytest.mark.parametrize(
    ("width", "heads", "left_out"),
    [
        (80, ["run", "benchmarks", "library", "ranks", "tags"], "started (UTC), backend, launches, cells"),
        (40, ["run", "benchmarks"], "started (UTC), backend, launches, cells, library, ranks, tags"),
    ],
)
def test_runs_on_a_narrow_terminal_keep_id_and_benchmarks(width: int, heads: list[str], left_out: str) -> None:
    """What can be long is folded, and the others stay on one line."""
    tags = {"machine": ("a-long-name-of-a-machine",), "night": ("2026-11-21",)}
    run = RunSummary(
        "20261121T100000-abcdef", "2026-11-21T10:00:00", ("allreduce",), ("mpi",), ("MPICH 5.0",), (2,), 10, 2, 0, tags
    )
    console = Console(width=width)
    with console.capture() as shown:
        console.print(fitted(lambda without: runs_table([run], without), RUNS_SPARE, console, "json", RUNS_FOLDED))
    text = shown.get()
    assert max(map(len, text.splitlines())) <= width
    head, line, *_, last = [line for line in text.splitlines() if line.strip() and "─" not in line]
    assert words(head) == heads
    assert words(line)[:2] == ["20261121T100000-abcdef", "allreduce"]
    assert f"left out of {width} columns: {left_out}" in " ".join(text.split()) and last.endswith("has all)")


def test_on_a_narrow_terminal_size_value_median_and_verdict_stay() -> None:
    rows = [
        row(backend=backend, binding=binding, launch_id=f"20261123T061026-99627{k}-{k}", validated=True, busbw_gbps=1.5)
        for k, (backend, binding) in enumerate((("mpi", "native"), ("gloo", "torch")))
    ]
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(fitted(partial(results_table, rows, None), SPARE, console, "csv"))
    shown, _, note = capture.get().partition("left out of 80 columns: ")
    _, head, *body = [line.rstrip() for line in shown.splitlines() if line.strip() and "──" not in line]
    assert words(head)[:5] == ["backend", "binding", "size", "value", "median µs"] and "validation" in words(head)
    assert len(body) == 2 and all("…" not in line and len(line) <= 80 and "Pass" in line for line in body)
    assert note.split() == "n, stop, min µs, max µs, launch, p99 µs (--format csv has all)".split()
    assert {"size", "value", "median µs", "validation"}.isdisjoint(SPARE), "however narrow"


def test_the_share_of_a_link_is_a_column_where_a_row_has_a_peak() -> None:
    rows = [row(unit="MB/s", value=rate, metrics={"peak.PCIe 4 x16": 31.5}) for rate in (25_830.0, 31_500.0)]
    head, *body = lines(results_table(rows))[1:]
    assert "of peak" in words(head)
    assert ["82% of PCIe 4 x16" in line for line in body] == [True, False]
    assert "of peak" not in "".join(lines(results_table([row()])))


@pytest.mark.slow
def test_a_table_of_one_side_loads_no_scipy() -> None:
    code = (
        "import json, sys\n"
        "from omb_py.printing.tables import results_table\n"
        "assert results_table(json.loads(sys.argv[1])).row_count == 2\n"
        "assert not {'scipy', 'pyarrow'} & set(sys.modules)"
    )
    words = [sys.executable, "-c", code, json.dumps([row(), row(size_bytes=16)])]
    done = run_command(words)
    assert done.returncode == 0, done.stderr
