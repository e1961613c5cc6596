"""Under the table: which rank is last too often."""

from __future__ import annotations

import pytest

from omb_py.cli import main


def said(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*line.split(), "--backend", "mock", "-n", "4", "-m", "8:64", "-i", "1000", "--no-store"]) == 0
    return capsys.readouterr().err


def test_a_straggler_is_named_once_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    err = said("allreduce --mock noise=0.05,nodes=4,straggler=2:3us", capsys)
    assert err.count("finished last") == 1
    assert "allreduce: rank 2 (node2) finished last in 100 % of calls (25 % expected, 4 cells)" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["allreduce --mock noise=0.05", "allreduce", "reduce --mock noise=0.05,straggler=2:3us", "multi_lat"]
)
def test_chance_and_roots_are_not_mentioned(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "finished last" not in said(line, capsys)
