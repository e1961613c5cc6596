"""pytest-benchmark itself reads what we write."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from omb_py.errors import UsageError
from omb_py.printing.export import export
from tests.support.machines.mpi import run_command


def cells(make_row, scale: float) -> list[dict]:
    common = {"dtype": "int32", "ranks": 4, "op": "sum", "library": "MPICH", "binding": "native"}
    return [
        make_row(size_bytes=size, value=2.0, samples_us=[scale * t for t in (1.0, 2.0, 9.0)], **common)
        for size in (4, 8)
    ]


@pytest.mark.slow
def test_pytest_benchmark_compares_two_files(tmp_path: Path, make_row) -> None:
    for name, scale in (("0001_base", 1.0), ("0002_new", 3.0)):
        (tmp_path / f"{name}.json").write_text(export(cells(make_row, scale), "pytest-benchmark"))
    program = "from pytest_benchmark.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        program,
        "compare",
        "--csv=out.csv",
        "--columns=median,rounds",
        "--group-by=name",
        "0001_base.json",
        "0002_new.json",
    ]
    done = run_command(command, timeout=60, cwd=tmp_path, check=True)
    assert "Failed to load" not in done.stdout + done.stderr
    lines = (tmp_path / "out.csv").read_text().splitlines()
    medians = [float(line.split(",")[-2]) for line in lines[1:]]
    assert sorted(medians) == pytest.approx([2e-6, 2e-6, 6e-6, 6e-6])
    assert "allreduce[mpi-native-int32-sum-n4-8]" in done.stdout


def test_several_launches_are_their_medians(make_row) -> None:
    rows = [make_row(launch_id=f"r1-{i}", size_bytes=8, samples_us=[1.0 + i, 1.0 + i, 100.0]) for i in range(4)]
    [found] = json.loads(export(rows, "pytest-benchmark"))["benchmarks"]
    assert found["stats"]["data"] == pytest.approx([1e-6, 2e-6, 3e-6, 4e-6])
    assert (found["stats"]["rounds"], found["extra_info"]["data"]) == (4, "launch medians")


def test_the_statistics_are_those_of_the_data(make_row) -> None:
    samples = np.random.default_rng(1).lognormal(size=200)
    [found] = json.loads(export([make_row(size_bytes=8, samples_us=samples.tolist())], "pytest-benchmark"))[
        "benchmarks"
    ]
    stats, seconds = found["stats"], samples * 1e-6
    assert stats["median"] == pytest.approx(np.median(seconds))
    assert stats["stddev"] == pytest.approx(np.std(seconds, ddof=1))
    assert (stats["q1"], stats["q3"]) == pytest.approx(tuple(np.percentile(seconds, [25, 75])))


def test_two_libraries_in_one_file_have_their_names(make_row) -> None:
    rows = [make_row(library=name, size_bytes=8, samples_us=[1.0]) for name in ("MPICH", "Open MPI")]
    names = {cell["name"] for cell in json.loads(export(rows, "pytest-benchmark"))["benchmarks"]}
    assert names == {"allreduce[mpi-8-MPICH]", "allreduce[mpi-8-Open MPI]"}


def test_rows_without_times_are_refused(make_row) -> None:
    with pytest.raises(UsageError, match="none of these rows has times"):
        export([make_row(unit="MB/s", metric="bandwidth", value=5.0)], "pytest-benchmark")
