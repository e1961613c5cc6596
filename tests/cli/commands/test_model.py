"""``omb-py model`` on stores with known curves."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from omb_py.cli import main
from omb_py.results.store.write import write_launch
from tests.support.rows import row_of

SIZES = [1 << k for k in range(21)]
ALPHA, BETA = 0.5, 1e-4


def collective(size: int, ranks: int) -> float:
    """Half as fast as it could be."""
    return 2 * (math.log2(ranks) * ALPHA + 2 * (ranks - 1) / ranks * size * BETA)


def message(size: int, ranks: int) -> float:
    return ALPHA + BETA * size


def fill(
    store: Path,
    benchmark: str,
    time,
    ranks: int = 4,
    sizes=tuple(SIZES),
    launches: int = 3,
    version: str = "5",
    run: str = "",
    **more,
) -> None:
    rng = np.random.default_rng(ranks)
    for launch in range(launches):
        rows = [
            row_of(
                run or f"{benchmark}{ranks}",
                launch,
                started_at="2026-10-01T12:00:00",
                benchmark=benchmark,
                binding="native",
                library="MPICH",
                library_version=version,
                ranks=ranks,
                device="cpu",
                buffer="numpy",
                size_bytes=size,
                bytes_total=size,
                bw_formula="nccl-tests:all_reduce" if benchmark == "allreduce" else None,
                median_us=time(size, ranks) * rng.lognormal(0, 0.01),
                **more,
            )
            for size in sizes
        ]
        write_launch(store, rows, {})


@pytest.fixture
def run(tmp_path, capsys):
    def call(line: str) -> tuple[int, str, str]:
        code = main([*f"model {line}".split(), "--store", str(tmp_path)])
        return code, *capsys.readouterr()

    return call


@pytest.mark.slow
def test_curve_and_efficiency(run, tmp_path) -> None:
    fill(tmp_path, "allreduce", collective)
    fill(tmp_path, "latency", message, ranks=2)
    code, out, err = run("allreduce --format json")
    assert (code, err) == (0, "")
    (found,) = json.loads(out)
    (segment,) = found["segments"]
    assert segment["alpha_us"] == pytest.approx(2 * 2 * ALPHA, rel=0.03)
    assert segment["bandwidth_mb_s"] == pytest.approx(1 / (2 * 1.5 * BETA), rel=0.03)
    assert found["cells"][0]["efficiency"] == pytest.approx(0.5, rel=0.05)
    assert found["cells"][-1]["efficiency"] == pytest.approx(0.5, rel=0.05) and found["cells"][0]["launches"] == 3
    code, out, _ = run("osu_allreduce")
    assert (
        code == 0 and "allreduce · 21 sizes, 1 B to 1 MiB · 4 ranks · mpi · MPICH 5 · native" in out and "50 %" in out
    )


@pytest.mark.slow
def test_faster_than_the_bound_is_offload(run, tmp_path) -> None:
    fill(tmp_path, "allreduce", lambda size, ranks: 0.3 * collective(size, ranks))
    fill(tmp_path, "latency", message, ranks=2)
    assert "offload" in run("allreduce")[1]


def test_without_latency_there_is_no_bound_and_that_is_said(run, tmp_path) -> None:
    fill(tmp_path, "allreduce", collective)
    code, out, err = run("allreduce")
    assert code == 0 and "%" not in out.partition("efficiency")[2]
    assert err == (
        f"omb-py: no lower bound without messages between two ranks: measure omb-py latency -n 2 --store {tmp_path}\n"
    )


@pytest.mark.slow
def test_prediction(run, tmp_path) -> None:
    for ranks in (2, 4, 8):
        fill(tmp_path, "allreduce", collective, ranks, sizes=(8, 1024))
    code, out, _ = run("allreduce --predict 32 --format json")
    (found,) = json.loads(out)
    assert code == 0 and found["measured_ranks"] == [2, 4, 8]
    small = found["predictions"][0]
    assert small["term"] == "log2 p" and small["time_us"] == pytest.approx(collective(8, 32), rel=0.1)
    assert small["low_us"] < small["time_us"] < small["high_us"]
    assert "predicted at 32 ranks from 2, 4, 8" in run("allreduce --predict 32")[1]
    code, out, err = run("allreduce --predict 64")
    assert (code, out) == (2, "") and "64 ranks are more than 4 times the largest measured (8)" in err
    assert f"measure other numbers of ranks with omb-py allreduce -n RANKS --store {tmp_path}" in err
    code, _, err = run("allreduce --predict 8 --where ranks=8")
    assert code == 2 and "at 3 or more numbers of ranks, and there is one: 8" in err


@pytest.mark.slow
def test_bad_input(run, tmp_path) -> None:
    code, _, err = run("allreduce")
    assert code == 2 and f"is empty: measure with omb-py allreduce --store {tmp_path}" in err
    fill(tmp_path, "allreduce", collective, sizes=(8, 16, 32))
    fill(tmp_path, "bw", message, 2, metric="bandwidth", unit="MB/s")
    for line, says in (
        ("allreduce", "3 sizes are too few for a model: 4 are needed; measure more with omb-py allreduce -m 1:4M"),
        ("bcast", "no cell of bcast in"),
        ("bw", "bw measures bandwidth, and a model is of times: see latency"),
        ("allreduce --where benchmark=x", "the benchmark is an argument"),
        ("allreduce --predict 1", "ranks must be 2 or more, not 1"),
    ):
        code, out, err = run(line)
        assert (code, out) == (2, "") and says in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["barrier", "init"])
def test_a_benchmark_without_message_size_has_no_model(run, tmp_path, name: str) -> None:
    fill(tmp_path, name, message, sizes=(0,))
    code, out, err = run(name)
    assert (code, out) == (2, "") and err.count("\n") == 1 and "-m" not in err.split("--predict")[0]
    assert f"{name} has no message size, so there is no model over sizes: omb-py model {name} --predict RANKS" in err


def test_one_number_of_ranks_is_no_prediction(run, tmp_path) -> None:
    fill(tmp_path, "allreduce", collective, sizes=(8,))
    code, _, err = run("allreduce --predict 64")
    assert code == 2 and "a prediction needs times at 3 or more numbers of ranks, and there is one: 4; measure" in err


def test_versions_and_sides_have_a_model_each(run, tmp_path) -> None:
    """A median over them is the time of none."""
    for number, (version, side, factor) in enumerate((("5", "BASE", 1), ("5", "NEW", 2), ("6", "BASE", 4))):
        more = {"version": version, "tags": {"compare_side": side}, "run": f"r{number}"}
        fill(tmp_path, "allreduce", lambda size, ranks, by=factor: by * collective(size, ranks), **more)
    code, out, _ = run("allreduce --format json")
    found = [(one["facts"]["library_version"], one["facts"]["side"], one["cells"][0]) for one in json.loads(out)]
    assert code == 0 and [each[:2] for each in found] == [("5", "BASE"), ("5", "NEW"), ("6", "BASE")]
    first = collective(1, 4)
    assert [cell["measured_us"] / first for *_, cell in found] == pytest.approx([1, 2, 4], rel=0.05)
    assert {cell["launches"] for *_, cell in found} == {3}
