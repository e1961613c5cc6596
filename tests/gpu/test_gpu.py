"""The whole check on a real GPU; and its commands, which are right on machines without one too."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli.measure import command, request_of
from omb_py.orchestrate.choices import OFFERS, gpu_here
from omb_py.orchestrate.plan import plan
from omb_py.suites.registry import find
from tests.gpu.check import check, commands


@pytest.mark.gpu
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not gpu_here("cuda"), reason="no NVIDIA GPU here")
def test_everything_on_one_gpu(tmp_path: Path) -> None:
    assert check("cuda", tmp_path) == []


@pytest.mark.parametrize("number", range(len(commands("sim", Path("x")))))
def test_its_commands_can_be_planned(number: int, tmp_path: Path) -> None:
    name, *words = commands("sim", tmp_path)[number]
    benchmark = find(name)
    with command(benchmark).make_context(name, words) as context:
        request = request_of(benchmark, dict(context.params))
        assert plan(request, request.ranks or 2, OFFERS)
