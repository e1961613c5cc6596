"""A training as Horovod's synthetic benchmark prints it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from omb_py.results.dialects.horovod import horovod_text, rates
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, Parsed
from tests.results.dialects.test_ombpy import LATENCY


def row(**more: Any) -> dict[str, Any]:
    samples = [100_000.0, 100_000.0, 200_000.0, 200_000.0]
    return {
        "parameters": {"workload": "resnet50:parallel=ddp,batch=8,image=224"},
        "ranks": 2,
        "device": "cpu",
        "samples_us": samples,
        "mean_us": 150_000.0,
        "validated": True,
        "metrics": {"steps": 2.0, "exposed_us": 30_000.0, "exposed_half_us": 1500.0, "alone_us": 120_000.0},
        **more,
    }


def test_the_lines() -> None:
    assert horovod_text(row()).splitlines() == [
        "Model: resnet50",
        "Batch size: 8",
        "Number of CPUs: 2",
        "Running warmup...",
        "Running benchmark...",
        "Iter #0: 80.0 img/sec per CPU",
        "Iter #1: 40.0 img/sec per CPU",
        "Img/sec per CPU: 60.0 +-39.2",
        "Total img/sec on 2 CPU(s): 120.0 +-78.4",
        "Exposed communication: 20.0 +-1.0 % of a step: 150.00 ms with communication, 120.00 ms without",
    ]


def test_a_language_model_on_gpus_and_ranks_that_differ() -> None:
    text = horovod_text(row(parameters=[("workload", "gpt2-124m:batch=4,seq=8")], device="cuda", validated=False))
    assert "Iter #1: 20.0 seq/sec per GPU\n" in text and "Total seq/sec on 2 GPU(s):" in text
    assert text.endswith("Fail\n")


def test_a_single_step_has_no_deviation() -> None:
    metrics = {"steps": 1.0, "exposed_us": 30_000.0, "alone_us": 120_000.0}
    text = horovod_text(row(samples_us=[150_000.0], metrics=metrics))
    assert "Exposed communication: 20.0 % of a step: 150.00 ms with communication, 120.00 ms without\n" in text


def test_one_rank_communicates_with_nobody() -> None:
    text = horovod_text(row(ranks=1))
    assert "Overhead: 20.0 +-1.0 % of a step: 150.00 ms with the framework, 120.00 ms without\n" in text
    assert "communication" not in text


def test_calls_are_beside_those_that_are_predicted() -> None:
    counted = {"calls": 3.0, "payload": 24.0, "predicted_calls": 3.0, "predicted_payload": 24.0, "as_predicted": 1.0}
    text = horovod_text(row(metrics={**row()["metrics"], **counted}))
    assert text.endswith("A step: 3 communication calls of rank 0, 24 B, as its workload predicts\n")
    other = {**counted, "predicted_calls": 4.0, "as_predicted": 0.0}
    text = horovod_text(row(metrics={**row()["metrics"], **other}))
    assert text.endswith("24 B, where its workload predicts 4, 24 B\n")


def test_rates_are_of_whole_iterations() -> None:
    assert rates([5e5] * 6, 3, 3) == pytest.approx([6.0, 6.0])
    with pytest.raises(ValueError, match="reshape"):
        rates([1.0] * 5, 2, 1)
    assert np.mean(rates([1e6], 1, 7)) == 7


def read(text: str) -> Parsed:
    return parse(text.encode(), Context("train.log"))


def test_what_is_printed_is_read() -> None:
    (table,) = read(horovod_text(row())).tables
    (found,) = table.rows
    assert (found["value"], found["unit"], found["ranks"], found["iterations"]) == (60.0, "img/sec", 2, 2)
    assert found["parameters"] == {"better": "higher", "model": "resnet50", "batch": "8", "device": "CPU"}


def test_each_training_of_a_log_is_a_launch() -> None:
    text = horovod_text(row())
    assert [table.launch for table in read(text + "Epoch done\n" + text).tables] == [0, 1]


def test_a_training_that_ended_early_is_named() -> None:
    text = horovod_text(row())
    (problem,) = read(text[: text.index("Total")]).problems
    assert problem.text.startswith("training left out: it ended before its last line")


def test_a_log_may_hold_other_tables_and_the_prefixes_of_a_launcher() -> None:
    text = horovod_text(row()) + LATENCY + horovod_text(row())
    found = read("".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()))
    assert [table.benchmark for table in found.tables] == ["train", "latency", "train"]
    assert not found.problems
