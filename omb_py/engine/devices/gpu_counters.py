"""Energy, clock and throttling of one GPU: NVIDIA's by nvidia-ml-py, AMD's by ROCm's package amdsmi.

Not run on a GPU yet. MIG instances have no counter of their own.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from omb_py.engine.devices import nvml
from omb_py.engine.devices.registry import find_kind
from omb_py.errors import EnvironmentProblem

AMD_FIX: Final = "install the package amdsmi of your ROCm (pip install /opt/rocm/share/amd_smi)"
_AMD_EVENTS: Final = {
    "acc_ppt_pwr": 0x4,
    "acc_prochot_thrm": 0x8,
    "acc_socket_thrm": 0x20,
    "acc_vr_thrm": 0x20,
    "acc_hbm_thrm": 0x20,
}
"""Counters of amdsmi_get_violation_status (MI300 and later) -> the bit of :data:`.nvml.THROTTLE` for the same."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one moment."""

    energy_uj: float | None = None
    bits: int = 0
    """Why the clocks are lower now than they could be: bits of :data:`omb_py.engine.devices.nvml.THROTTLE`."""
    events: Mapping[int, int] = field(default_factory=dict)
    """Bit -> how long or how often this was so until now."""

    def throttled_until(self, after: Reading) -> int:
        """The bits that were set at this reading, at a later one, or between them."""
        between = (bit for bit, count in after.events.items() if count > self.events.get(bit, count))
        return self.bits | after.bits | sum(between)


class GpuCounter(ABC):
    """The counters of one GPU."""

    @abstractmethod
    def read(self) -> Reading:
        """Energy and throttling now."""

    @abstractmethod
    def clock_mhz(self) -> float | None:
        """The clock of the multiprocessors now; None where the GPU does not say."""


@contextmanager
def opened(device: str, identity: str) -> Iterator[GpuCounter]:
    """The counters of a GPU.

    Args:
        device: as ranks name it: ``cuda:0``, ``rocm:1``.

    Raises:
        EnvironmentProblem: it cannot be counted; why, and what to do.
    """
    with find_kind(device.partition(":")[0]).counter(identity) as counter:
        if counter.read().energy_uj is None:
            raise EnvironmentProblem("this GPU has no energy counter: Volta or later, MI200 or later")
        yield counter


@contextmanager
def count_nvidia(identity: str) -> Iterator[GpuCounter]:
    with nvml.opened() as library:
        uuid = nvml.uuid_text(identity)
        handle = nvml.ask(library, "nvmlDeviceGetHandleByUUID", uuid)
        if handle is None:
            instance = nvml.ask(library, "nvmlDeviceGetHandleByUUID", uuid.replace("GPU-", "MIG-", 1))
            raise EnvironmentProblem(
                f"NVML does not know {uuid}: compare with nvidia-smi -L"
                if instance is None
                else "a MIG instance has no energy counter of its own: measure on a whole GPU"
            )
        yield _Nvidia(library, handle)


class _Nvidia(GpuCounter):
    def __init__(self, library: ModuleType, handle: object) -> None:
        self._library, self._handle = library, handle

    def _ask(self, function: str, *operands: object) -> Any:
        return nvml.ask(self._library, function, self._handle, *operands)

    def read(self) -> Reading:
        """NVML counts mJ since the driver was loaded."""
        energy_mj = self._ask("nvmlDeviceGetTotalEnergyConsumption")
        reasons = int(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0)
        bits = sum(bit for bit in nvml.THROTTLE if reasons & bit)
        return Reading(None if energy_mj is None else 1000.0 * energy_mj, bits)

    def clock_mhz(self) -> float | None:
        clock: int | None = self._ask("nvmlDeviceGetClockInfo", nvml.CLOCK_SM)
        return clock or None


def load_amd() -> ModuleType:
    """The module amdsmi, not initialised. Raises EnvironmentProblem: it, or its library, is not there."""
    try:
        with redirect_stdout(io.StringIO()):  # it prints where it looked for its library
            return import_module("amdsmi")
    except ImportError as error:
        raise EnvironmentProblem(f"amdsmi is not installed ({error}): {AMD_FIX}") from None
    except Exception as error:  # KeyError, OSError: by version
        raise EnvironmentProblem(f"amdsmi finds no libamd_smi.so ({error}): {AMD_FIX}") from None


@contextmanager
def count_amd(identity: str) -> Iterator[GpuCounter]:
    library = load_amd()
    try:
        library.amdsmi_init()
    except library.AmdSmiException as error:
        raise EnvironmentProblem(f"AMD's driver does not answer ({error}): check it with amd-smi list") from None
    try:
        yield _Amd(library, _amd_handle(library, identity))
    finally:
        with suppress(library.AmdSmiException):
            library.amdsmi_shut_down()


def _amd_handle(library: ModuleType, identity: str) -> Any:
    """The GPU of an identity: HIP's UUID, 16 characters of the serial number in hex, or a PCI address."""
    serial = serial_of(identity)
    for handle in _ask_amd(library, "amdsmi_get_processor_handles") or ():
        facts = _ask_amd(library, "amdsmi_get_gpu_asic_info", handle) or {}
        own = str(facts.get("asic_serial", "")).lower().removeprefix("0x").zfill(16)
        if own == serial or _ask_amd(library, "amdsmi_get_gpu_device_bdf", handle) == identity.lower():
            return handle
    raise EnvironmentProblem(f"amdsmi does not know the GPU {serial or identity}: compare with amd-smi list")


def serial_of(identity: str) -> str:
    """The serial number in an identity of HIP; empty where it holds none.

    >>> serial_of("61316232633364346535663667376838")
    'a1b2c3d4e5f6g7h8'
    """
    try:
        return bytes.fromhex(identity).decode("ascii").lower()
    except ValueError:
        return ""


def _ask_amd(library: ModuleType, function: str, *operands: object) -> Any:
    try:
        return getattr(library, function)(*operands)
    except library.AmdSmiException:
        return None


class _Amd(GpuCounter):
    def __init__(self, library: ModuleType, handle: object) -> None:
        self._library, self._handle = library, handle

    def read(self) -> Reading:
        energy = _ask_amd(self._library, "amdsmi_get_energy_count", self._handle)
        used = energy["energy_accumulator"] * energy["counter_resolution"] if energy else None
        status = _ask_amd(self._library, "amdsmi_get_violation_status", self._handle) or {}
        events: dict[int, int] = {}
        for name, bit in _AMD_EVENTS.items():
            if isinstance(count := status.get(name), int):  # "N/A" where the GPU does not count
                events[bit] = events.get(bit, 0) + count
        return Reading(used, 0, events)

    def clock_mhz(self) -> float | None:
        facts = _ask_amd(self._library, "amdsmi_get_clock_info", self._handle, self._library.AmdSmiClkType.GFX) or {}
        return float(facts["clk"]) if isinstance(facts.get("clk"), int) else None
