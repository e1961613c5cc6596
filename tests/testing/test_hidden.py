"""What exists for tests can be asked for, and nothing names it to a user."""

from __future__ import annotations

import re

import pytest

from omb_py.cli import main
from omb_py.engine.devices.registry import KINDS, SIMULATED, open_device
from omb_py.errors import EnvironmentProblem
from omb_py.testing.simulated_device import DEVICES_VARIABLE
from tests.support.machines.mpi import ROOT


@pytest.mark.parametrize("words", [["allreduce", "--help"], ["list"], ["links", "--help"], ["guidelines", "--help"]])
def test_help_and_list_do_not_name_it(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert not re.search(r"\bsim\b|inject", capsys.readouterr().out)


def test_errors_do_not_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allreduce", "--device", "simm", "--no-store"]) == 2
    assert "valid: cpu, cuda, rocm" in capsys.readouterr().err


def test_the_page_of_all_options_does_not_name_it() -> None:
    assert not re.search(r"\bsim\b|--inject", (ROOT / "docs" / "cli.md").read_text())


def test_the_device_is_opened_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SIMULATED not in KINDS
    monkeypatch.setenv(DEVICES_VARIABLE, "2")
    device = open_device(SIMULATED, 3)
    assert (device.kind, device.index) == ("sim", 1)
    device.close()
    monkeypatch.setenv(DEVICES_VARIABLE, "0")
    with pytest.raises(EnvironmentProblem, match="--device sim: no such device"):
        open_device(SIMULATED, 0)
