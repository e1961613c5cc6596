"""The noise probe: fixed work without communication."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Repeat
from omb_py.options.table import make_cell
from omb_py.results.accept.criteria import METRICS
from omb_py.results.store.read import load
from omb_py.suites import find
from omb_py.suites.host_noise import READINGS, noise


def test_every_rank_does_the_same_work_and_communicates_nothing() -> None:
    programs = {repr(noise(World(rank, 4), make_cell("noise", "mpi", "native", 0))) for rank in range(4)}
    assert len(programs) == 1
    (body,) = noise(World(0, 1), make_cell("noise", "mpi", "native", 0)).stages[0].variants
    (work,) = [node for node in body if isinstance(node, Repeat)]
    assert work.times == READINGS and [step.op for step in work.body] == ["compute"]  # type: ignore[union-attr]
    assert find("noise").ranks.admits(1)


def test_an_undisturbed_host_steals_nothing(tmp_path: Path) -> None:
    words = ["noise", "--backend", "mock", "-n", "2", "-i", "3", "-x", "0", "--store", str(tmp_path), "--quiet"]
    assert main(words) == 0
    (row,) = load(tmp_path).to_dict("records")
    assert row["median_us"] == pytest.approx(READINGS / 1000) and METRICS["stolen"].read(row) == pytest.approx(0.0)


@pytest.mark.slow
@pytest.mark.mpi
def test_a_real_host(tmp_path: Path) -> None:
    words = ["noise", "-n", "2", "-i", "200", "--store", str(tmp_path), "--quiet"]
    assert main(words) == 0
    (row,) = load(tmp_path).to_dict("records")
    assert row["median_us"] > 1 and METRICS["stolen"].read(row) > 0 and len(row["rank_mean_us"]) == 2
