"""Backends by name: the subfolders of this folder, and those of installed packages (entry points ``omb_py.backends``).

A backend that cannot be loaded is kept together with the reason, so that ``omb-py list`` can say it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from omb_py import backends as package
from omb_py.backends.capabilities import Backend, Capabilities, Inspection, OwnOption
from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.plug_ins import REPAIR, load_plug_ins

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec

ENTRY_POINTS = "omb_py.backends"
_MEANT = {"rccl": "nccl loads RCCL for AMD GPUs: --backend nccl --device rocm"}
"""Names of libraries that are no backends by themselves -> what to write."""
UNKNOWN = Capabilities("")
"""Assumed capabilities of a backend that is not installed, as those of stored rows."""


@cache
def ours() -> Mapping[str, Backend]:
    """The backends of omb-py, by priority. No installed package is searched and no library loaded."""
    entries = (entry for folder in package.__path__ for entry in os.scandir(folder))  # pkgutil would load inspect
    names = sorted(entry.name for entry in entries if os.path.exists(os.path.join(entry.path, "__init__.py")))
    packages: list[Backend] = [import_module(f"{package.__name__}.{name}").BACKEND for name in names]
    return {backend.name: backend for backend in sorted(packages, key=lambda backend: backend.capabilities.priority)}


@cache
def backends() -> Mapping[str, Backend]:
    """All backends, ours first."""
    plug_ins = load_plug_ins(ENTRY_POINTS, Backend, ours=ours().get)
    others = {**plug_ins.loaded, **{name: _broken(name, why) for name, why in plug_ins.broken.items()}}
    return {**ours(), **{name: backend for name, backend in others.items() if name not in ours()}}


def find(name: str) -> Backend:
    """The backend called `name`. Raises UsageError with the nearest name."""
    choices = ours() if name in ours() else backends()
    if name not in choices and name in _MEANT:
        raise UsageError(f"unknown backend {name!r}: {_MEANT[name]}")
    if name not in choices:
        raise UsageError(f"unknown backend {name!r}: {nearest(name, choices)}")
    return choices[name]


def capabilities_of(names: Iterable[str] = ()) -> Mapping[str, Capabilities]:
    """The capabilities of our backends; of installed packages, too, where one of `names` is not ours."""
    choices = ours() if all(name in ours() for name in names) else backends()
    return {name: backend.capabilities for name, backend in choices.items()}


def capabilities(name: str) -> Capabilities:
    """The capabilities of one backend; :data:`UNKNOWN` where no backend has the name."""
    return capabilities_of([name] if name else ()).get(name, UNKNOWN)


def own_options() -> Mapping[str, OwnOption]:
    """Backend -> the command-line option that it declares for itself; of all backends."""
    return {name: option for name, backend in backends().items() if (option := backend.capabilities.option)}


def in_process(names: Iterable[str]) -> bool:
    """Whether all of these backends run their ranks in the calling process, so that nothing is launched."""
    return all(capabilities(name).in_process for name in names)


def default() -> str:
    """The backend of a request that names none."""
    return next(iter(ours()))


def _broken(name: str, reason: str) -> Backend:
    def connect(spec: LaunchSpec) -> NoReturn:
        raise EnvironmentProblem(f"backend {name} cannot be loaded: {reason}")

    return Backend(_BrokenPackage(name, inspection=Inspection(reason, REPAIR)), connect)


class _BrokenPackage(Capabilities):
    def missing(self) -> str:
        return f"its package cannot be loaded ({self.inspection.reason}): {REPAIR}"
