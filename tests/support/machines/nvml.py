"""A stand-in for nvidia-ml-py: a machine with GPUs that are not there.

It has the names, signatures and numbers of the real package, which ``nvml.json`` records from it: a test compares both.
It is as strict: a function fails before nvmlInit, takes handles and whole numbers alone, and raises where a GPU lacks
something.  ``python -m tests.support.machines.nvml`` writes the record again from the installed package.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

RECORD = Path(__file__).with_name("nvml.json")
CONSTANTS = (
    "NVML_NVLINK_MAX_LINKS NVML_FEATURE_ENABLED NVML_NVLINK_DEVICE_TYPE_GPU NVML_NVLINK_DEVICE_TYPE_SWITCH "
    "NVML_COMPUTEMODE_DEFAULT NVML_COMPUTEMODE_PROHIBITED NVML_COMPUTEMODE_EXCLUSIVE_PROCESS NVML_TOPOLOGY_INTERNAL "
    "NVML_TOPOLOGY_SINGLE NVML_TOPOLOGY_MULTIPLE NVML_TOPOLOGY_HOSTBRIDGE NVML_TOPOLOGY_NODE NVML_TOPOLOGY_SYSTEM "
    "NVML_P2P_CAPS_INDEX_WRITE NVML_P2P_STATUS_OK NVML_P2P_STATUS_NOT_SUPPORTED NVML_CLOCK_SM NVML_CLOCK_MEM "
    "nvmlClocksThrottleReasonGpuIdle nvmlClocksThrottleReasonApplicationsClocksSetting "
    "nvmlClocksThrottleReasonSwPowerCap nvmlClocksThrottleReasonHwSlowdown nvmlClocksThrottleReasonSyncBoost "
    "nvmlClocksThrottleReasonSwThermalSlowdown nvmlClocksThrottleReasonHwThermalSlowdown "
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown"
).split()
_NUMBERS: Mapping[str, int] = json.loads(RECORD.read_text())["constants"] if RECORD.is_file() else {}
_UNINITIALISED, _INVALID, _LACKING, _LOST = 1, 2, 3, 9


class NVMLError(Exception):
    """As the package's: the code is `value`."""

    def __init__(self, value: int) -> None:
        self.value = value
        super().__init__(
            {_UNINITIALISED: "Uninitialized", _LACKING: "Not Supported", _LOST: "Driver Not Loaded"}.get(value)
        )


@dataclass
class StandInGpu:
    """A GPU, as tests describe it."""

    bus: int
    """Number of its PCI bus."""
    nvlinks: Sequence[int | str] = ()
    """The other end of each NVLink: the bus of a GPU, or ``switch``."""
    root: int = 0
    """Number of the socket to which it is connected."""
    compute_mode: int = 0
    mig: tuple[int, int] | None = None
    """(now, after a reset); None: it has no MIG."""
    instances: int = 0
    energy_mj: int | None = 0
    """None: too old to count."""
    throttle: int = 0
    clock_mhz: int = 1980
    lacks: frozenset[str] = frozenset()
    """Functions that this GPU does not answer."""

    @property
    def uuid(self) -> str:
        """As NVML writes it."""
        return f"GPU-00000000-0000-0000-0000-{self.bus:012x}"


def joined_by_switches(count: int, links: int = 18) -> list[StandInGpu]:
    """GPUs of a machine with NVSwitch, half of them on each socket."""
    return [StandInGpu(16 + k, ["switch"] * links, root=2 * k // count) for k in range(count)]


@dataclass
class StandInNvml:
    """The module ``pynvml`` on a machine with these GPUs."""

    gpus: Sequence[StandInGpu]
    driver: bool = True
    peers: bool = True
    users: int = 0
    """How often it was initialised and not yet shut down."""
    NVMLError: type[NVMLError] = field(default=NVMLError)

    def __getattr__(self, name: str) -> int:
        if name in _NUMBERS:
            return _NUMBERS[name]
        raise AttributeError(name)

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError(_LOST)
        self.users += 1

    def nvmlShutdown(self) -> None:
        self._check()
        self.users -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        self._check()
        return "570.86.10"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        self._check()
        return 12080

    def nvmlDeviceGetCount(self) -> int:
        self._check()
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> StandInGpu:
        self._check()
        return self.gpus[_whole(index)]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        self._check()
        parts = [(gpu, number) for gpu in self.gpus for number in range(gpu.instances)]
        if part := next((part for part in parts if self.nvmlDeviceGetUUID(part) == uuid), None):
            return part
        return self._first(lambda gpu: gpu.uuid == uuid)

    def nvmlDeviceGetName(self, handle: StandInGpu) -> str:
        self._check(handle)
        return "NVIDIA H100 80GB HBM3"

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        self._check()
        return f"MIG-{handle[0].uuid[4:-2]}{handle[1]:02x}" if isinstance(handle, tuple) else str(handle.uuid)

    def nvmlDeviceGetPciInfo(self, handle: StandInGpu) -> Any:
        self._check(handle)
        return SimpleNamespace(busId=f"00000000:{handle.bus:02X}:00.0")

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: StandInGpu) -> int:
        self._check(handle, "nvmlDeviceGetCurrPcieLinkGeneration")
        return 5

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: StandInGpu) -> int:
        self._check(handle)
        return 16

    def nvmlDeviceGetComputeMode(self, handle: StandInGpu) -> int:
        self._check(handle)
        return handle.compute_mode

    def nvmlDeviceGetMigMode(self, device: StandInGpu) -> list[int]:
        self._check(device)
        if device.mig is None:
            raise NVMLError(_LACKING)
        return list(device.mig)

    def nvmlDeviceGetMaxMigDeviceCount(self, device: StandInGpu) -> int:
        self._check(device)
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: StandInGpu, index: int) -> tuple[StandInGpu, int]:
        self._check(device)
        if _whole(index) >= device.instances:
            raise NVMLError(6)
        return device, index

    def nvmlDeviceGetNvLinkState(self, device: StandInGpu, link: int) -> int:
        self._check(device)
        if _whole(link) >= len(device.nvlinks):
            raise NVMLError(_LACKING if not device.nvlinks else _INVALID)
        return 1

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: StandInGpu, link: int) -> int:
        self._check(handle, "nvmlDeviceGetNvLinkRemoteDeviceType")
        return 2 if handle.nvlinks[_whole(link)] == "switch" else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: StandInGpu, link: int) -> Any:
        self._check(device)
        end = device.nvlinks[_whole(link)]
        return SimpleNamespace(busId=f"00000000:{240 + link if end == 'switch' else end:02X}:00.0")

    def nvmlDeviceGetTopologyCommonAncestor(self, device1: StandInGpu, device2: StandInGpu) -> int:
        self._check(device1)
        self._check(device2)
        return 40 if device1.root == device2.root else 50

    def nvmlDeviceGetP2PStatus(self, device1: StandInGpu, device2: StandInGpu, p2pIndex: int) -> int:
        self._check(device1)
        self._check(device2)
        _whole(p2pIndex)
        return 0 if self.peers else 1

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: StandInGpu) -> int:
        self._check(handle)
        if handle.energy_mj is None:
            raise NVMLError(_LACKING)
        return handle.energy_mj

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: StandInGpu) -> int:
        self._check(handle, "nvmlDeviceGetCurrentClocksThrottleReasons")
        return handle.throttle

    def nvmlDeviceGetClockInfo(self, handle: StandInGpu, type: int) -> int:
        self._check(handle)
        return handle.clock_mhz if _whole(type) == _NUMBERS["NVML_CLOCK_SM"] else 2619

    def _first(self, wanted: Callable[[StandInGpu], bool]) -> StandInGpu:
        for gpu in self.gpus:
            if wanted(gpu):
                return gpu
        raise NVMLError(6)

    def _check(self, handle: Any = None, function: str = "") -> None:
        if not self.users:
            raise NVMLError(_UNINITIALISED)
        if handle is not None and not isinstance(handle, StandInGpu):
            raise TypeError(f"{handle!r} is no handle of a GPU")
        if handle is not None and function in handle.lacks:
            raise NVMLError(_LACKING)


def _whole(number: int) -> int:
    """A number that ctypes passes on: not a tuple, which nvidia-ml-py 13 has as NVML_P2P_CAPS_INDEX_READ."""
    if type(number) is not int:
        raise TypeError(f"{number!r} is no whole number")
    return number


def functions() -> dict[str, list[str]]:
    """The stand-in's functions -> names of their operands."""
    own = inspect.getmembers(StandInNvml, inspect.isfunction)
    return {name: list(inspect.signature(function).parameters)[1:] for name, function in own if name[:4] == "nvml"}


def recorded(module: Any) -> dict[str, Any]:
    """What the record holds, from the real package."""
    return {
        "functions": {name: list(inspect.signature(getattr(module, name)).parameters) for name in functions()},
        "constants": {name: getattr(module, name) for name in CONSTANTS},
    }


if __name__ == "__main__":
    RECORD.write_text(json.dumps(recorded(import_module("pynvml")), indent=1) + "\n")
    sys.exit(0)
