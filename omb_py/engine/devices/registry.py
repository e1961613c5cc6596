"""Kinds of devices: ours, that of tests, and those of installed packages (entry points ``omb_py.devices``).

No installed package is searched before somebody names a kind that is not ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from omb_py.engine.devices import Device, cuda, rocm
from omb_py.engine.devices.kind import DeviceKind
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.plug_ins import REPAIR, PlugIns, load_plug_ins

ENTRY_POINTS: Final = "omb_py.devices"
HOST: Final = "cpu"
"""Memory of the host: no device is opened for it."""
SIMULATED: Final = "sim"
"""The device of tests: ``--device`` takes it, and nothing names it."""
KINDS: Final[Mapping[str, DeviceKind]] = {kind.name: kind for kind in (DeviceKind(HOST), cuda.KIND, rocm.KIND)}
"""The kinds that help and errors name."""
GPU_KINDS: Final = tuple(name for name, kind in KINDS.items() if kind.is_gpu)


def installed() -> PlugIns[DeviceKind]:
    """The kinds of other packages."""
    return load_plug_ins(ENTRY_POINTS, DeviceKind, ours=KINDS.get)


@cache
def find_kind(name: str) -> DeviceKind:
    """The kind with this name. Raises UsageError with the nearest one; EnvironmentProblem: it cannot be loaded."""
    if name in KINDS:
        return KINDS[name]
    if name == SIMULATED:
        kind: DeviceKind = import_module("omb_py.testing.simulated_device").KIND
        return kind
    plug_ins = installed()
    if name in plug_ins.broken:
        raise EnvironmentProblem(f"--device {name} cannot be loaded ({plug_ins.broken[name]}): {REPAIR}")
    if name == "gpu":
        raise UsageError(f"a GPU is named by its kind: --device {' or '.join(GPU_KINDS)}")
    if name not in plug_ins.loaded:
        raise UsageError(f"unknown device {name!r}: {nearest(name, [*KINDS, *plug_ins.loaded, *plug_ins.broken])}")
    loaded: DeviceKind = plug_ins.loaded[name]
    return loaded


def is_gpu(name: str) -> bool:
    """Whether devices of this kind are GPUs."""
    return find_kind(name).is_gpu


def open_device(kind: str, rank: int) -> Device:
    """The device of the rank with number `rank` on its machine. Raises EnvironmentProblem where there is none."""
    return find_kind(kind).open_for(rank)


class EveryKind(Mapping[str, str]):
    """Every kind of device, usable as far as is known here. One of another package is in it, and not listed."""

    def __getitem__(self, name: str) -> str:
        try:
            find_kind(name)
        except UsageError:
            raise KeyError(name) from None
        return ""

    def __iter__(self) -> Iterator[str]:
        return iter((*KINDS, SIMULATED))

    def __len__(self) -> int:
        return len(KINDS) + 1
