"""From workloads to what is asked of the curves."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.orchestrate.workloads.prediction import ASKED, advice, asks, command
from omb_py.orchestrate.workloads.step_times import timeline
from omb_py.results.analysis.step_prediction import MESSAGES, Missing
from omb_py.suites import BENCHMARKS
from omb_py.suites.workloads.families import FAMILIES, parse_workload
from tests.support.small_workloads import SMALL, text_of

SIDE = {"backend": "gloo", "binding": "torch", "library": "Gloo", "device": "cpu", "buffer": "numpy"}


@pytest.mark.parametrize("name", FAMILIES)
def test_calls_of_every_family_meet_and_can_be_measured_alone(name: str) -> None:
    made = asks(parse_workload(text_of(name, SMALL[name])), 4)
    assert {ask.benchmark for own in made for ask in own} <= set(ASKED) <= set(BENCHMARKS)
    spent = timeline(made, lambda ask, size, ranks: 1.0)
    assert all(sum(rows.values()) > 0 for rows in spent)


def test_rows_are_those_of_the_table_of_calls() -> None:
    found = parse_workload("ddp:model=resnet50")
    rows = list(dict.fromkeys(ask.row for ask in asks(found, 2)[0]))
    assert rows == list(dict.fromkeys(found.labels(0, 2).values()))


def test_sizes_are_those_of_the_benchmarks() -> None:
    def of(text: str, ranks: int = 4) -> set[tuple[str, int, str, bool]]:
        return {(a.benchmark, a.size_bytes, a.dtype, a.in_place) for a in asks(parse_workload(text), ranks)[0]}

    assert of("ddp:model=mlp") == {("allreduce", n, "float32", True) for n in (1607680, 1071144)}
    parameters = 669_706 * 4 + 8  # in whole elements for each of 4 ranks
    assert of("zero:model=mlp,schedule=paper") == {
        ("reduce_scatter_block", parameters, "float32", False),
        ("allgather", parameters // 4, "", False),
    }
    assert of("ulysses:layers=1") >= {("alltoall", 1024 // 4 * 768 * 2 // 4, "", False)}
    hot = {
        ask.size_bytes for own in asks(parse_workload("moe:tokens=4,hidden=64,experts=8,traffic=hot"), 4) for ask in own
    }
    even = {ask.size_bytes for own in asks(parse_workload("moe:tokens=4,hidden=64,experts=8"), 4) for ask in own}
    assert max(hot) > max(even)
    assert {a.benchmark for a in asks(parse_workload("ring"), 2)[0]} == {MESSAGES}


def test_what_is_missing_comes_with_the_line_to_type() -> None:
    gap = Missing("allreduce", 4, "float32", True, 5_000_000, "not measured")
    said = "omb-py allreduce -n 4 --backend gloo -T float32 --cache rotate -l -m 4:8388608 --store st"
    assert command(gap, SIDE, Path("st")) == said
    assert advice(gap, SIDE, Path("st")) == f"no model for allreduce of float32 at 4 ranks: not measured: run {said}"
    other = Missing(MESSAGES, 2, "", False, 8, "not measured")
    there = {**SIDE, "backend": "mpi", "binding": "mpi4py", "device": "cuda"}
    assert command(other, there, Path("st")) == (
        "omb-py latency -n 2 --backend mpi --binding mpi4py --device cuda --cache rotate -m 4:4096 --store st"
    )
    assert "-m" not in command(Missing("barrier", 2, "", False, 0, "not measured"), SIDE, Path("st"))
