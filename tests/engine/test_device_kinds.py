"""A kind of device of another package: one file, which MPI measures with copies through the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omb_py.engine.devices.kind import DeviceKind
from omb_py.engine.devices.registry import GPU_KINDS, KINDS, EveryKind, find_kind
from omb_py.errors import EnvironmentProblem, UsageError
from tests.support.entries import forget_plug_ins
from tests.support.machines.mpi import environment, run_omb_py

XPU = """
from omb_py.plugin import Device, DeviceKind
from omb_py.testing.simulated_device import SimulatedDevice


class XpuDevice(SimulatedDevice):
    kind = "xpu"


class Xpu(DeviceKind):
    def count(self) -> int:
        return 2

    def open(self, index: int) -> Device:
        return XpuDevice(index)


KIND = Xpu("xpu", maker="Intel", driver_files=("/dev/null",), visible=("ZE_AFFINITY_MASK",))
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "omb_xpu.py").write_text(XPU)
    info = tmp_path / "omb_xpu-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: omb-xpu\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[omb_py.devices]\nxpu = omb_xpu:KIND\nbroken = omb_xpu:GONE\n")
    return tmp_path


@pytest.fixture
def installed(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeviceKind]:
    monkeypatch.syspath_prepend(packages)
    forget_plug_ins()
    find_kind.cache_clear()
    yield find_kind("xpu")
    forget_plug_ins()
    find_kind.cache_clear()


def test_it_is_found_by_its_name_alone(installed: DeviceKind) -> None:
    assert installed.is_gpu and installed.has_driver() and installed.problem() == ""
    assert "xpu" not in (*KINDS, *GPU_KINDS, *EveryKind()) and "xpu" in EveryKind()
    with pytest.raises(EnvironmentProblem, match="--device broken cannot be loaded"):
        find_kind("broken")
    with pytest.raises(UsageError, match="unknown device 'xpy': did you mean xpu"):
        find_kind("xpy")


@pytest.mark.slow
@pytest.mark.mpi
def test_mpi_measures_on_it(packages: Path, tmp_path: Path) -> None:
    words = "latency -d xpu -n 2 -m 8:8 -i 5 -x 1 -c --no-store".split()
    done = run_omb_py(*words, PYTHONPATH=f"{packages}:{environment()['PYTHONPATH']}")
    assert done.returncode == 0, done.stderr
    assert "# OSU MPI-XPU Latency Test" in done.stdout and "Pass" in done.stdout
    assert "xpu:0" in done.stderr
