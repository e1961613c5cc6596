"""The kit's first step on a GPU, on the simulated device: that it passes here, and names what does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omb_py.testing.simulated_device import SimulatedDevice
from tests.lab.gpu.probe import CHECKS, Probe, copies, facts, run_checks


@pytest.fixture
def probe() -> Iterator[Probe]:
    device = SimulatedDevice(delay_us=50)
    yield Probe(device, real=False)
    device.close()


def test_every_function_of_the_device_does_what_it_says(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_checks(probe) == []
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(CHECKS) and all(line.startswith("ok ") for line in told)


def test_what_is_broken_is_named_and_the_next_check_still_runs(
    probe: Probe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Probe, "read", lambda self, address: self.back)  # nothing is copied out
    assert run_checks(probe, (copies, facts)) == ["copies"]
    told = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert told[0] == "FAILED" and told[-1] == "ok"
