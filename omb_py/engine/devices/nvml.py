"""NVIDIA's management library, by nvidia-ml-py: the GPUs of this machine and the paths between them.

It answers without a context on any GPU, and sees all GPUs whatever CUDA_VISIBLE_DEVICES says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from omb_py.engine.rank.launch_facts import GpuInventory
from omb_py.errors import EnvironmentProblem

PACKAGE_FIX: Final = "pip install nvidia-ml-py (the extra nvml)"
DRIVER_FIX: Final = "install NVIDIA's driver and check it with nvidia-smi; in a container: --gpus all"
PROHIBITED: Final = "prohibited"
COMPUTE_MODES: Final = ("default", "exclusive thread", PROHIBITED, "exclusive process")
"""By the numbers of nvmlComputeMode_t."""
_PATHS: Final = {0: "SAME BOARD", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t by the words of ``nvidia-smi topo -m``."""
_NO_PEER: Final = {
    1: "the chipset does not support it",
    2: "this GPU does not support it",
    3: "the GPUs stand under different I/O hubs",
    4: "a driver setting disables it",
    5: "not supported",
    6: "the driver does not say why",
}
"""nvmlGpuP2PStatus_t but OK."""
THROTTLE: Final = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Bits of nvmlClocksThrottleReasons that make an operation slower than the GPU could be, with our words."""
CLOCK_SM: Final = 1
"""NVML_CLOCK_SM."""
_P2P_READ, _P2P_WRITE = 0, 1
"""NVML_P2P_CAPS_INDEX_…: nvidia-ml-py 13 has the first as a tuple, which its own function refuses."""


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """One GPU."""

    index: int
    """Its number for NVML and nvidia-smi: by PCI address."""
    name: str
    uuid: str
    pci: str
    """As the kernel writes it: ``0000:18:00.0``."""
    pcie: str
    """The link as it is now, which may be slower while the GPU idles: ``gen 5 x16``; empty: not known."""
    numa: int | None
    """NUMA node; None where the kernel names none."""
    compute_mode: str
    mig: str
    """``off``, ``on``, ``on after a reset``, ``off after a reset``; empty: the GPU has no MIG."""
    instances: tuple[str, ...] = ()
    """UUIDs of its MIG instances."""


@dataclass(frozen=True, slots=True)
class PairFacts:
    """The path between two GPUs."""

    first: int
    second: int
    path: str
    """As nvidia-smi writes it: ``NV18`` (18 NVLinks), ``PIX``, ``PXB``, ``PHB``, ``NODE``, ``SYS``; empty: unknown."""
    no_peer: str = ""
    """Why neither reads and writes the other's memory; empty where each does."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The GPUs of a machine."""

    driver: str
    cuda: str
    """The newest CUDA that the driver takes."""
    gpus: tuple[GpuFacts, ...]
    pairs: tuple[PairFacts, ...]

    def as_dict(self) -> GpuInventory:
        """The same as plain data."""
        return cast(GpuInventory, asdict(self))


def load() -> ModuleType:
    """The module of nvidia-ml-py, not initialised. Raises EnvironmentProblem where it is not installed."""
    try:
        return import_module("pynvml")
    except ImportError as error:
        raise EnvironmentProblem(f"nvidia-ml-py is not installed ({error}): {PACKAGE_FIX}") from None


@contextmanager
def opened() -> Iterator[ModuleType]:
    """The initialised module. Raises EnvironmentProblem: no package, or no driver that answers."""
    nvml = load()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise EnvironmentProblem(f"NVIDIA's driver does not answer ({error}): {DRIVER_FIX}") from None
    try:
        yield nvml
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def inventory(system: Path = Path("/sys")) -> Inventory:
    """Read the GPUs of this machine.

    Raises:
        EnvironmentProblem: no package, no driver that answers, or it does not count its GPUs.
    """
    with opened() as nvml:
        try:
            version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
            driver = str(nvml.nvmlSystemGetDriverVersion())
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            raise EnvironmentProblem(f"NVIDIA's driver does not list its GPUs ({error}): {DRIVER_FIX}") from None
        gpus = tuple(_gpu(nvml, index, handle, system) for index, handle in enumerate(handles))
        links = [_nvlinks(nvml, handle) for handle in handles]
        pairs = tuple(
            PairFacts(
                a,
                b,
                _path(nvml, handles[a], handles[b], _count_nvlinks(links[a], links[b], gpus[b].pci)),
                _explain_no_peer(nvml, handles[a], handles[b]),
            )
            for a, b in combinations(range(len(handles)), 2)
        )
        return Inventory(driver, f"{version // 1000}.{version % 1000 // 10}", gpus, pairs)


def facts() -> GpuInventory:
    """The inventory as plain data for the provenance of a launch; where there is none, why (``unknown``)."""
    try:
        return inventory().as_dict()
    except EnvironmentProblem as problem:
        return {"unknown": str(problem)}


def uuid_text(identity: str) -> str:
    """NVML's text of the UUID that :meth:`omb_py.engine.devices.Device.identity` has as 32 hex digits.

    >>> uuid_text("0123456789abcdef0123456789abcdef")
    'GPU-01234567-89ab-cdef-0123-456789abcdef'
    """
    digits = identity.lower()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def ask(nvml: ModuleType, function: str, *operands: object) -> Any:
    """What a function of NVML returns; None where driver or GPU do not answer it."""
    try:
        return getattr(nvml, function)(*operands)
    except nvml.NVMLError:
        return None


def limits(nvml: ModuleType) -> Iterator[tuple[int, str]]:
    """Each GPU's number with its application clock and power limit in words; a GPU that says neither is left out."""
    for index in range(ask(nvml, "nvmlDeviceGetCount") or 0):
        handle = ask(nvml, "nvmlDeviceGetHandleByIndex", index)
        clock = ask(nvml, "nvmlDeviceGetApplicationsClock", handle, CLOCK_SM)
        power = ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)
        texts = [f"{clock} MHz"] if clock else []
        texts += [f"{power / 1000:g} W"] if power else []
        if texts:
            yield index, ", ".join(texts)


def _gpu(nvml: ModuleType, index: int, handle: object, system: Path) -> GpuFacts:
    place = ask(nvml, "nvmlDeviceGetPciInfo", handle)
    pci = _address(str(place.busId)) if place is not None else ""
    generation = ask(nvml, "nvmlDeviceGetCurrPcieLinkGeneration", handle)
    width = ask(nvml, "nvmlDeviceGetCurrPcieLinkWidth", handle)
    mode = ask(nvml, "nvmlDeviceGetComputeMode", handle)
    return GpuFacts(
        index,
        str(ask(nvml, "nvmlDeviceGetName", handle) or "a GPU without a name"),
        str(ask(nvml, "nvmlDeviceGetUUID", handle) or ""),
        pci,
        f"gen {generation} x{width}" if generation and width else "",
        _numa(system, pci),
        COMPUTE_MODES[mode] if mode in range(len(COMPUTE_MODES)) else "",
        *_mig(nvml, handle),
    )


def _address(bus_id: str) -> str:
    """NVML's PCI address as the kernel writes it.

    >>> _address("00000000:3B:00.0")
    '0000:3b:00.0'
    """
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _numa(system: Path, pci: str) -> int | None:
    try:
        node = int((system / "bus/pci/devices" / pci / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _mig(nvml: ModuleType, handle: object) -> tuple[str, tuple[str, ...]]:
    modes = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if modes is None:
        return "", ()
    current, pending = modes
    word = ("on" if pending else "off") + (" after a reset" if current != pending else "")
    most = (ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0) if current else 0
    instances = (ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number) for number in range(most))
    return word, tuple(str(ask(nvml, "nvmlDeviceGetUUID", part)) for part in instances if part is not None)


def _nvlinks(nvml: ModuleType, handle: object) -> Mapping[str, int]:
    """PCI address of the other end -> NVLinks to it; those to a switch stand under the empty address."""
    ends: dict[str, int] = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if ask(nvml, "nvmlDeviceGetNvLinkState", handle, link) != nvml.NVML_FEATURE_ENABLED:
            continue
        kind = ask(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
        remote = ask(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
        switch = kind == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH
        if switch or remote is not None:
            end = "" if switch else _address(str(remote.busId))
            ends[end] = ends.get(end, 0) + 1
    return ends


def _count_nvlinks(first: Mapping[str, int], second: Mapping[str, int], second_pci: str) -> int:
    """NVLinks between two GPUs: direct ones, or through switches as many as the one with fewer has."""
    return first.get(second_pci, 0) if second_pci in first else min(first.get("", 0), second.get("", 0))


def _path(nvml: ModuleType, first: object, second: object, nvlinks: int) -> str:
    if nvlinks:
        return f"NV{nvlinks}"
    return _PATHS.get(ask(nvml, "nvmlDeviceGetTopologyCommonAncestor", first, second), "")


def _explain_no_peer(nvml: ModuleType, first: object, second: object) -> str:
    for reader, owner in ((first, second), (second, first)):
        for index in (_P2P_READ, _P2P_WRITE):
            status = ask(nvml, "nvmlDeviceGetP2PStatus", reader, owner, index)
            if status != 0:
                return _NO_PEER.get(status, _NO_PEER[6])
    return ""
