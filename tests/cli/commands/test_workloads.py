"""``omb-py workloads`` on the simulated backend."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.orchestrate.suites.expand import load_suite
from omb_py.results.store.read import load
from tests.support.tiers import few_quick

Run = Callable[[str], tuple[int, str, str]]
BUCKETS = "ddp:scale=1/64,compute=1ms"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(line: str) -> tuple[int, str, str]:
        code = main([*line.split(), "--store", str(tmp_path)])
        return code, *capsys.readouterr()

    return call


def sweep(run: Run, line: str) -> None:
    assert run(f"{line} --backend mock -i 3 --quiet --format json")[0] == 0


@pytest.mark.slow
def test_predicted_beside_measured(run: Run) -> None:
    """The simulated network does what the curves say: the error is that of a fit."""
    sweep(run, "allreduce -n 4 -T float32 -l -m 4:256K")
    assert run(f"step --workload {BUCKETS} --backend mock -n 4 -i 3 --quiet")[0] == 0
    code, out, err = run(f"workloads {BUCKETS} -n 4 --predict")
    assert (code, err) == (0, "") and "predicted from stored sweeps" in out
    code, out, err = run(f"workloads {BUCKETS} -n 4 --predict --format json")
    (found,) = json.loads(out)
    assert (code, found["missing"], found["run"], found["scaled"]) == (0, [], [], [])
    assert found["side"]["ranks"] == 4 and found["side"]["backend"] == "mock"
    assert all(abs(line["error"]) < 0.01 for line in found["lines"]) and len(found["lines"]) == 3
    assert found["lines"][-1]["what"] == "all calls, one by one"


@pytest.mark.slow
def test_what_is_missing_is_told_and_helps_when_typed(run: Run, tmp_path: Path) -> None:
    assert run("step --workload knn --backend mock -n 4 -i 3 --quiet")[0] == 0
    code, _, err = run("workloads knn -n 4 --predict")
    assert code == 0 and "no model for bcast at 4 ranks: not measured: run omb-py bcast -n 4" in err
    for line in err.splitlines():
        words = shlex.split(line.partition(": run omb-py ")[2])
        assert main([*words, "-i", "3", "--quiet", "--format", "json"]) == 0
    code, _, err = run("workloads knn -n 4 --predict")
    assert (code, err) == (0, "")


@pytest.mark.slow
def test_before_the_step_is_measured_there_is_a_prediction(run: Run) -> None:
    sweep(run, "allreduce -n 2 -T float32 -m 4:256K")
    code, out, _ = run(f"workloads {BUCKETS} -n 2 --predict --format json")
    lines = json.loads(out)[0]["lines"]
    assert code == 0 and all(one["predicted_us"] > 0 and one["measured_us"] is None for one in lines)


def test_no_sweep_at_all(run: Run, tmp_path: Path) -> None:
    code, _, err = run("workloads ddp --predict")
    assert code == 2 and f"no sweep at 2 ranks and no step of ddp in '{tmp_path}'" in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("workloads ddp --scaling", "ddp:compute=5ms (weak scaling)"),
        ("workloads ddp:compute=5ms --scaling", "no step of ddp:compute=5ms in this store: measure omb-py step"),
        ("workloads --scaling", "write omb-py workloads NAME --scaling"),
    ],
)
def test_bad_input(run: Run, line: str, said: str) -> None:
    code, out, err = run(line)
    assert (code, out) == (2, "") and said in err


@pytest.mark.parametrize(("compute", "kind"), [("1ms", "weak"), ("4ms/n", "strong")])
def test_scaling(run: Run, compute: str, kind: str) -> None:
    text = f"ddp:scale=1/64,compute={compute}"
    for ranks in (2, 4, 8):
        assert run(f"step --workload {text} --backend mock -n {ranks} -i 3 --quiet")[0] == 0
    code, out, _ = run(f"workloads {text} --scaling --format json")
    (found,) = json.loads(out)
    steps = found["steps"]
    assert (code, found["kind"], [one["ranks"] for one in steps]) == (0, kind, [2, 4, 8])
    assert steps[0]["efficiency"] == 1 and steps[0]["efficiency"] > steps[1]["efficiency"] > steps[2]["efficiency"] > 0
    computed = [one["compute_us"] for one in steps]
    wanted = [1000, 1000, 1000] if kind == "weak" else [2000, 1000, 500]
    assert computed == pytest.approx(wanted, rel=0.01)
    base = steps[0]["step_us"] * (2 if kind == "strong" else 1)
    for one in steps:
        ratio = base / (one["step_us"] * (one["ranks"] if kind == "strong" else 1))
        assert one["efficiency"] == pytest.approx(ratio) and one["alone"] < 1
    code, out, _ = run(f"workloads {text} --scaling")
    assert code == 0 and f"{kind} scaling" in out and "against 1 rank" in out


@pytest.mark.slow
def test_real_products_are_counted_and_scale(run: Run, tmp_path: Path) -> None:
    """Of data parallel training each rank computes the same, of a divided layer its part."""
    for text, kind in (("ddp:scale=1/64,compute=matmul", "weak"), ("tensor:seq=32,layers=1,compute=matmul", "strong")):
        for ranks in (2, 4):
            code, out, _ = run(f"step --workload {text} --backend mock --mock gflops=20 -n {ranks} -i 3 --quiet")
            assert code == 0 and "20.00 GFLOP/s a rank" in out
        code, out, _ = run(f"workloads {text} --scaling --format json")
        (found,) = json.loads(out)
        computed = [one["compute_us"] for one in found["steps"]]
        assert (code, found["kind"]) == (0, kind)
        assert computed[0] == pytest.approx(computed[1] * (2 if kind == "strong" else 1), rel=0.01)
    metrics = [dict(found) for found in load(tmp_path)["metrics"]]
    assert all(found["gflops"] == pytest.approx(found["flop"] / found["compute_us"] / 1000) for found in metrics)


def test_how_much_is_computed_is_shown_before_anything_runs(run: Run) -> None:
    code, out, _ = run("workloads ddp:model=gpt2-124m,tokens=16")
    assert code == 0 and "rank 0 does 11.94 GFLOP a step" in out, out
    assert "FLOP: 2·P·T forward, then 4·P·T backward" in out and "Kaplan et al. 2020 (arXiv 2001.08361)" in out
    assert "FLOP" not in run("workloads replay")[1]


@pytest.mark.parametrize("name", few_quick(["ml", "dl-inference", "dl-training"], 2))
def test_the_shipped_suites_run_wholly_on_two_ranks(run: Run, name: str, tmp_path: Path) -> None:
    code, _, err = run(f"run {name} --backend mock --mock data=off -n 2 -i 1 -x 0 --quiet")
    assert code == 0
    wanted = [setting.value for entry in load_suite(name).entries for setting in entry.options]
    assert len(load(tmp_path)) == len([text for texts in wanted for text in texts]) and err == ""


SMALL = """
name = "small"
description = "of two types"
[defaults]
iterations = 2
[[entry]]
benchmarks = ["step"]
workload = ["kmeans:clusters=8,features=8", "pca:features=8,dtype=bfloat16", "knn:queries=8,features=8"]
"""


@pytest.mark.slow
@pytest.mark.mpi
def test_a_type_that_a_real_library_lacks_costs_its_cells_alone(run: Run, tmp_path: Path) -> None:
    """In one launch: what has no bfloat16 leaves that cell out, with the reason."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    code, _, err = run(f"run {file} -n 2 --quiet")
    rows = load(tmp_path)
    lacks = "pca:features=8,dtype=bfloat16" not in {p["workload"] for p in rows["parameters"]}
    assert code == 0 and set(rows["launch_index"]) == {0} and len(rows) == 3 - lacks, err
    assert ("skipped: step (workload: pca:features=8,dtype=bfloat16): " in err) == lacks
    assert set(rows["library"]) != {"Open MPI"} or lacks
