"""Real training on two ranks of Gloo: what is printed and stored, and a trace that replays with the same calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.results.store.read import load
from omb_py.suites.training.frameworks import DeepSpeed
from omb_py.suites.workloads.buckets import DDP_CAP_BYTES, DDP_FIRST_BYTES
from omb_py.suites.workloads.data_parallel import ddp_buckets
from omb_py.suites.workloads.families import parse_workload
from tests.support.machines.mpi import run_omb_py, start, torchrun
from tests.support.optional import needs_tensorflow, needs_torch

pytestmark = [pytest.mark.slow, pytest.mark.mpi, pytest.mark.calm, needs_torch]
SIMULATED = ("--backend", "mock", "-n", "2")
FEW = ("-n", "2", "--batch", "4", "--steps", "3", "-i", "2", "-x", "2")


def omb_py(*words: str) -> subprocess.CompletedProcess[str]:
    done = run_omb_py(*words)
    assert done.returncode == 0, done.stderr
    return done


def calls_of(trace: Path, ranks: int = 2) -> list[tuple[str, int, str]]:
    return [(c.op, c.nbytes, c.dtype) for c in parse_workload(f"replay:trace=@{trace}").calls(0, ranks)]


def test_a_step_is_trained_traced_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace has the calls and bytes that a hook sees in torch's DDP (tests/suites/training/test_models.py)."""
    trace, store = tmp_path / "step.json", tmp_path / "store"
    done = omb_py("train", "mlp", *FEW, "--trace", str(trace), "--store", str(store))
    assert "the ranks printed" not in done.stderr  # the profiler is quiet
    said = "omb-py: train: mlp, 669,706 parameters, 4 samples per rank and step: 2 steps to warm up, then 2 × 3 steps, "
    assert said in done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["Model: mlp", "Batch size: 4", "Number of CPUs: 2"]
    assert [line.partition(":")[0] for line in lines[5:]] == [
        "Iter #0",
        "Iter #1",
        "Img/sec per CPU",
        "Total img/sec on 2 CPU(s)",
        "Exposed communication",
        "A step",
    ]
    assert lines[-1].endswith(", as its workload predicts")

    (row,) = load(store).to_dict("records")
    metrics, settings = dict(row["metrics"]), dict(row["parameters"])
    assert settings["workload"] == "mlp:parallel=ddp,batch=4"
    assert (row["benchmark"], row["backend"], row["ranks"], row["dtype"]) == ("train", "gloo", 2, "float32")
    assert len(row["samples_us"]) == row["iterations"] == 6 and row["stop_reason"] == "fixed"
    assert row["validated"] and metrics["parameters"] == 669_706
    assert metrics["loss_last"] < metrics["loss_first"]
    assert metrics["exposed_us"] == pytest.approx(row["mean_us"] - metrics["alone_us"], rel=1e-3)

    buckets = ddp_buckets("mlp", "float32", "rebuilt", DDP_FIRST_BYTES, DDP_CAP_BYTES)
    assert calls_of(trace) == [("allreduce", n, "float32") for n in buckets] and len(buckets) > 1

    assert main(["replay", str(trace), *SIMULATED, "-c", "-i", "5", "--format", "json", "--no-store"]) == 0
    (replayed,) = json.loads(capsys.readouterr().out)
    assert replayed["validated"] is True
    assert str(trace) not in dict(replayed["parameters"])["workload"]


@pytest.mark.parametrize("layout", DeepSpeed.layouts)
def test_deepspeed_calls_what_its_workload_predicts(layout: str) -> None:
    pytest.importorskip("deepspeed", reason="DeepSpeed is optional: pip builds it from its sources")
    done = omb_py(
        "train", "mlp", *FEW, "--framework", "deepspeed", "--parallel", layout, "--no-store", "--format", "json"
    )
    (row,) = json.loads(done.stdout)
    metrics, workload = dict(row["metrics"]), dict(row["parameters"])["workload"]
    assert workload == f"mlp:framework=deepspeed,parallel={layout},batch=4"
    assert metrics["as_predicted"] == 1.0 and metrics["payload"] == 4_018_244
    assert row["validated"] is (None if layout == "zero3" else True)


@needs_tensorflow
@pytest.mark.parametrize(("words", "parameters", "same"), [("mlp", 669_706, 2), ("resnet50 --image 40", 25_557_032, 1)])
def test_tensorflow_trains_the_same_model_with_one_all_reduce(words: str, parameters: int, same: int) -> None:
    """From PyTorch's parameters and batches, so the losses are PyTorch's; of ResNet-50 the first.

    Its later ones part with the rounding of float32 (tests/suites/training/test_tensorflow_engine.py).
    """
    losses = []
    for framework in ("torch", "tensorflow"):
        done = omb_py("train", *words.split(), *FEW, "--framework", framework, "--no-store", "--format", "json")
        (row,) = json.loads(done.stdout)
        metrics = dict(row["metrics"])
        losses.append((metrics["loss_first"], metrics["loss_last"]))
        assert metrics["as_predicted"] == 1.0 and row["validated"] is True
    assert (metrics["calls"], metrics["payload"]) == (1, parameters * 4) and row["library"].startswith("TensorFlow")
    assert losses[0][:same] == pytest.approx(losses[1][:same], rel=1e-4)


def test_fsdp_inside_torchrun_gathers_and_scatters_as_the_workload_says(tmp_path: Path) -> None:
    """On three ranks, by which no row of a parameter divides: FSDP2's padding."""
    ranks = 3
    trace = tmp_path / "step.json"
    words = ["train", "mlp", "-n", str(ranks), *FEW[2:], "--parallel", "fsdp", "--no-store", "--format", "json"]
    done = start([sys.executable, "-m", "omb_py", *words, "--trace", str(trace)], ranks, torchrun(ranks))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert dict(row["parameters"])["workload"] == "mlp:parallel=fsdp,batch=4"
    workload = [(c.op, c.nbytes, c.dtype) for c in parse_workload("fsdp:model=mlp").calls(0, ranks)]
    assert calls_of(trace, ranks) == workload
    assert len(workload) == 9
