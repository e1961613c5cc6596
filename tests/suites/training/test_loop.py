"""What TensorFlow reports of its steps becomes the row, without TensorFlow: its engine is a stand-in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.program.benchmark import Cell
from omb_py.engine.rank.launch_facts import LaunchFacts
from omb_py.engine.session import Session
from omb_py.options.table import make_cell
from omb_py.orchestrate.running.rows import LaunchIdentity, make_row
from omb_py.results.store.row import Row
from omb_py.suites.training.benchmark import TRAIN
from tests.support.optional import needs_torch

pytestmark = needs_torch
PARAMETERS = 669_706
ONE_CALL = [("all_reduce", PARAMETERS, "float", 0)]
FACTS: LaunchFacts = {
    "ranks": 2,
    "hosts": ["a", "a"],
    "library": "Gloo",
    "library_version": "2.13.0",
    "binding_version": "torch 2.13.0",
    "thread_level": "funneled",
}


class OfTwo(Session):
    """Rank 0 of two; `other` makes what rank 1 tells of what rank 0 tells."""

    backend, binding, size, local, hosts = "gloo", "torch", 2, (0,), ("a", "a")

    def __init__(self, other: Callable[[Any], Any]) -> None:
        self.other = other

    def gather(self, value: Any) -> list[Any]:
        return [value, self.other(value)]

    def total(self, values: Any) -> Any:
        return 2 * values


def other_rank(value: Any) -> Any:
    """What rank 1 tells: its number, and otherwise the same."""
    return (1, *value[1:]) if isinstance(value, tuple) else value


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Row]:
    """The row of a training of the perceptron on two ranks, whose engine makes these calls and these losses."""
    from omb_py.suites.training import loop
    from omb_py.suites.training.frameworks import TensorFlow

    def row(
        calls: list[Any] = ONE_CALL,
        losses: Sequence[float] = (3.0, 2.0, 1.5, 1.25, 1.0, 0.75, 0.5),
        other: Callable[[Any], Any] = other_rank,
        steps: int = 3,
        iterations: int = 2,
    ) -> Row:
        left = chain(losses, repeat(0.25))

        class Mirrored(loop.TrainedModel):
            def __init__(self, net: Any, batch: Any, strategy: Any = None) -> None:
                self.net, self.strategy = net, strategy
                self.marks = {"library": "TensorFlow's collectives", "library_version": "2.21.0"}

            def step(self) -> float:
                return next(left) if self.strategy else 9.0

            def profiled(self) -> Callable[[Path], list[Any]]:
                assert self.strategy == "a strategy over the launch's group"
                return lambda file: calls

        engine: Any = ModuleType("tensorflow_engine")
        engine.MirroredModel, engine.join = Mirrored, lambda group: f"a strategy over {group}"
        monkeypatch.setitem(sys.modules, "omb_py.suites.training.tensorflow_engine", engine)
        monkeypatch.setattr(TensorFlow, "missing", lambda self: "")
        monkeypatch.setattr(loop, "group_of", lambda training: "the launch's group")
        text = f"mlp:framework=tensorflow,batch=4,steps={steps}"
        cell: Cell = make_cell(TRAIN, "gloo", "torch", 0, workload=text, iterations=iterations, warmup=1)
        result = loop.train(OfTwo(other), cell, lambda phase: None)
        told = CellResult.from_message(result.to_message())
        return make_row(LaunchIdentity("run", "run-0", 0, "2026-11-21T00:00:00+00:00", FACTS, "env"), told)

    return row


def test_its_calls_losses_and_library_are_stored(trained: Callable[..., Row]) -> None:
    row = trained()
    metrics, settings = dict(row["metrics"]), dict(row["parameters"])
    assert (row["benchmark"], row["backend"], row["ranks"]) == ("train", "gloo", 2)
    assert settings["workload"] == "mlp:framework=tensorflow,parallel=mirrored,batch=4"
    assert (row["library"], row["library_version"]) == ("TensorFlow's collectives", "2.21.0")
    assert row["validated"] is True and len(row["samples_us"]) == row["iterations"] == 6
    assert (
        (metrics["calls"], metrics["payload"])
        == (1, 4 * PARAMETERS)
        == (metrics["predicted_calls"], metrics["predicted_payload"])
    )
    assert metrics["as_predicted"] == 1.0 and metrics["parameters"] == PARAMETERS
    # of a step to warm up, six that are timed, and none of the copies that each rank trains alone
    assert (metrics["loss_first"], metrics["loss_last"]) == (3.0, 0.5)
    assert metrics["exposed_us"] == pytest.approx(row["mean_us"] - metrics["alone_us"])
    assert metrics["exposed_half_us"] > 0


def test_of_one_step_nothing_says_how_far_it_is_off(trained: Callable[..., Row]) -> None:
    row = trained(steps=1, iterations=1)
    assert len(row["samples_us"]) == 1 and "exposed_half_us" not in dict(row["metrics"])


@pytest.mark.parametrize(
    "calls", [[], 2 * ONE_CALL, [("all_reduce", PARAMETERS - 1, "float", 0)], [("all_gather", PARAMETERS, "float", 0)]]
)
def test_other_calls_are_not_as_predicted(calls: list[Any], trained: Callable[..., Row]) -> None:
    metrics = dict(trained(calls)["metrics"])
    assert metrics["as_predicted"] == 0.0 and metrics["calls"] == len(calls)
    assert (metrics["predicted_calls"], metrics["predicted_payload"]) == (1, 4 * PARAMETERS)


def test_ranks_that_end_with_other_parameters_have_failed(trained: Callable[..., Row]) -> None:
    def other(value: Any) -> Any:
        return f"not {value}" if isinstance(value, str) and value else other_rank(value)

    row = trained(other=other)
    assert (row["validated"], row["wrong_bytes"]) == (False, 1)


def test_a_loss_that_is_no_number_has_failed(trained: Callable[..., Row]) -> None:
    assert trained(losses=[1.0, float("nan")])["validated"] is False
