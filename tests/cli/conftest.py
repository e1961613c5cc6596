"""A measuring command that measures nothing: the request that it would run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from omb_py.cli import main
from omb_py.options.request import Request
from omb_py.orchestrate.planning.resolution import CheckedRequest


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Requests given to ``execute``, which is replaced."""
    seen: list[Request] = []

    def execute(checked: CheckedRequest) -> int:
        seen.append(checked.asked)
        return 0

    module = ModuleType("omb_py.orchestrate.running.run")
    module.execute = execute  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "omb_py.orchestrate.running.run", module)
    return seen


@pytest.fixture
def request_of(captured: list[Request]) -> Callable[[str], Request]:
    """The request of a command line."""

    def parse(line: str) -> Request:
        assert main(line.split()) == 0
        return captured[-1]

    return parse


@pytest.fixture
def refusal(captured: list[Request], capsys: pytest.CaptureFixture[str]) -> Callable[[str], tuple[int, str]]:
    """(exit code, text) of a command line that is refused: one line on stderr, nothing on stdout, nothing run."""

    def refuse(line: str) -> tuple[int, str]:
        code = main(line.split())
        out, err = capsys.readouterr()
        assert out == "" and captured == []
        assert err.startswith("omb-py: error: ") and err.endswith("\n") and err.count("\n") == 1
        return code, err.removeprefix("omb-py: error: ").rstrip("\n")

    return refuse


@pytest.fixture(autouse=True)
def outside_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests themselves may be run by a launcher."""
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_STEP_ID", "OMB_PY_STORE"):
        monkeypatch.delenv(name, raising=False)
