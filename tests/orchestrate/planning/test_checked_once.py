"""A request is checked once and its cells are enumerated once, from the command line to the launches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omb_py.backends.capabilities import Capabilities, Inspection
from omb_py.cli import main
from omb_py.options.request import Request
from omb_py.orchestrate.planning import backend_selection, plan

SUITE = """\
name = "mine"
description = "three requests"
[defaults]
iterations = 5
backend = "mock"
[[entry]]
benchmarks = ["latency", "allreduce"]
message-size = "8:16"
[[entry]]
benchmarks = ["bcast"]
ranks = [2, 4]
message-size = ["8:8", "16:16"]
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the options of a request are checked, and how often its cells are enumerated."""
    calls: Counter[str] = Counter()

    def counting(name: str) -> Any:
        function = getattr(plan, name)

        def counted(request: Request, *more: Any) -> Any:
            calls[name] += 1
            return function(request, *more)

        return counted

    for name in ("check_options", "_cells"):
        counted = counting(name)
        for module in (plan, backend_selection):
            monkeypatch.setattr(module, name, counted, raising=False)
    return calls


def test_a_benchmark(counts: Counter[str]) -> None:
    assert main("allreduce --backend mock -m 8:16 -i 5 --no-store --quiet".split()) == 0
    assert counts == {"check_options": 1, "_cells": 1}


def test_bindings_and_launches(counts: Counter[str]) -> None:
    launches = plan.plan(Request("allreduce", bindings=("native", "mpi4py"), launches=3), 2)
    assert len(launches) == 6
    assert counts == {"check_options": 1, "_cells": 1}


def test_several_backends_and_devices(counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One side is left out when the request is checked, another when its backend is asked."""

    def here(declared: Capabilities) -> Capabilities:
        return replace(declared, inspection=Inspection("no mpiexec")) if declared.name == "mpi" else declared

    monkeypatch.setattr(Capabilities, "here", here)
    command = "put_latency --backend mpi,nccl,mock --device cpu,sim -m 8:16 -i 5 --no-store --quiet"
    assert main(command.split()) == 0
    assert counts == {"check_options": 1, "_cells": 1}


def test_a_suite(counts: Counter[str], tmp_path: Path) -> None:
    """Two requests of one entry; in the other two sizes, each of them on two numbers of ranks."""
    file = tmp_path / "mine.toml"
    file.write_text(SUITE)
    assert main(["run", str(file), "--store", str(tmp_path / "store"), "--quiet"]) == 0
    assert counts == {"check_options": 4, "_cells": 4}


def test_a_comparison(counts: Counter[str], tmp_path: Path) -> None:
    """Each side is a request of its own."""
    line = f"aa allreduce --backend mock -m 8:8 -i 5 --launches 2 --rounds 1 --store {tmp_path} --quiet"
    assert main([*line.split()]) in (0, 1, 4)
    assert counts == {"check_options": 1, "_cells": 1}
