"""Kinds of devices: ours, that of tests, and those of installed packages (entry points ``omb_py.devices``).

No installed package is searched before somebody names a kind that is not ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from omb_py.engine.devices import cuda, rocm
from omb_py.engine.devices.kind import DeviceKind
from omb_py.errors import EnvironmentProblem, UsageError, nearest

if TYPE_CHECKING:
    from omb_py.engine.devices import Device

ENTRY_POINTS: Final = "omb_py.devices"
HOST: Final = "cpu"
"""Memory of the host: no device is opened for it."""
SIMULATED: Final = "sim"
"""The device of tests: ``--device`` takes it, and nothing names it."""
KINDS: Final[Mapping[str, DeviceKind]] = {kind.name: kind for kind in (DeviceKind(HOST), cuda.KIND, rocm.KIND)}
"""The kinds that help and errors name."""
GPU_KINDS: Final = tuple(name for name, kind in KINDS.items() if kind.is_gpu)


@cache
def find_kind(name: str) -> DeviceKind:
    """The kind with this name. Raises UsageError with the nearest one; EnvironmentProblem: it cannot be loaded."""
    if name in KINDS:
        return KINDS[name]
    if name == SIMULATED:
        kind: DeviceKind = import_module("omb_py.testing.simulated_device").KIND
        return kind
    from importlib.metadata import entry_points  # slow to import, and needed for the names of others only

    every = entry_points(group=ENTRY_POINTS)
    if name not in every.names:
        raise UsageError(f"unknown device {name!r}: {nearest(name, [*KINDS, *every.names])}")
    try:
        loaded = every[name].load()
    except Exception as error:  # a broken package must not break the tool
        reason = f"{type(error).__name__}: {error}"
        raise EnvironmentProblem(f"--device {name} cannot be loaded ({reason}): repair its package") from None
    if not isinstance(loaded, DeviceKind) or loaded.name != name:
        raise EnvironmentProblem(f"--device {name}: {every[name].value} is no such device: repair its package")
    return loaded


def is_gpu(name: str) -> bool:
    """Whether devices of this kind are GPUs."""
    return find_kind(name).is_gpu


def open_device(kind: str, rank: int) -> Device:
    """The device of the rank with number `rank` on its machine. Raises EnvironmentProblem where there is none."""
    return find_kind(kind).open_for(rank)


class EveryKind(Mapping[str, str]):
    """Every kind of device, usable as far as is known here. One of another package is in it, and not listed.

    Args:
        left_out: kinds that it does not hold.
    """

    def __init__(self, *left_out: str) -> None:
        self._names = tuple(name for name in (*KINDS, SIMULATED) if name not in left_out)
        self._left_out = left_out

    def __getitem__(self, name: str) -> str:
        if name in self._left_out:
            raise KeyError(name)
        try:
            find_kind(name)
        except UsageError:
            raise KeyError(name) from None
        return ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
