"""What a cell's row says before it is measured is what it says afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.cli.commands.benchmark import request_of_line
from omb_py.orchestrate.planning.parsing import parse
from omb_py.orchestrate.planning.plan import plan_launches
from omb_py.orchestrate.planning.resolution import resolve
from omb_py.orchestrate.running.rows import expected_row
from omb_py.results.store.read import load


@pytest.mark.parametrize(
    "line",
    [
        "latency",
        "bw -W 4",
        "allreduce --in-place -T double",
        "bcast -k fixed:1",
        "iallreduce",
        "put_latency",
        "barrier",
        "neighbor_allgather",
        "step --workload fsdp:model=resnet50",
        "allgather -D vect:8:4",
    ],
)
def test_the_key_is_known_before(tmp_path: Path, line: str) -> None:
    words = [*line.split(), "--backend", "mock", "-n", "2", "-i", "2", "--store", str(tmp_path), "--quiet"]
    if line.split()[0] not in ("barrier", "step"):
        words += ["-m", "8:8"]
    (plan,) = plan_launches([resolve(parse(request_of_line(words)))])
    (cell,) = plan.cells
    assert main(words) == 0
    (row,) = load(tmp_path).to_dict("records")
    assert expected_row(cell, plan.ranks)["comparability_key"] == row["comparability_key"]
