"""Backends by name: ours and those of installed packages (entry-point group ``omb_py.backends``).

A backend that cannot be loaded is kept together with the reason, so that ``omb-py list`` can say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol

from omb_py.engine.session import Probe, Session
from omb_py.errors import EnvironmentProblem, UsageError, nearest

ENTRY_POINTS = "omb_py.backends"
_OURS = {
    "mpi": "omb_py.backends.mpi",
    "gloo": "omb_py.backends.gloo",
    "nccl": "omb_py.backends.nccl",
    "mock": "omb_py.backends.mock",
}


class Backend(Protocol):
    """A communication library family."""

    name: str

    def probe(self) -> Probe:
        """What it can do here; cheap, never raises."""

    def connect(self, spec: Mapping[str, Any]) -> Session:
        """Join the ranks of this launch. Raises EnvironmentProblem."""


class Broken:
    """A backend whose code could not be loaded."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    def probe(self) -> Probe:
        """Says why."""
        return Probe(self.name, False, reason=self.reason, fix="repair or remove the package that provides it")

    def connect(self, spec: Mapping[str, Any]) -> Session:
        """Always raises."""
        raise EnvironmentProblem(f"backend {self.name} cannot be loaded: {self.reason}")


@cache
def backends() -> dict[str, Backend]:
    """All backends, ours first."""
    found: dict[str, Backend] = {}
    for name, module in _OURS.items():
        found[name] = import_module(module).BACKEND
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in found:
            continue
        try:
            loaded = entry.load()
        except Exception as error:  # a broken plug-in must not break the tool
            found[entry.name] = Broken(entry.name, f"{type(error).__name__}: {error}")
            continue
        if callable(getattr(loaded, "probe", None)) and callable(getattr(loaded, "connect", None)):
            found[entry.name] = loaded
        else:
            found[entry.name] = Broken(entry.name, f"{entry.value} has no probe() and connect()")
    return found


def find(name: str) -> Backend:
    """The backend called `name`. Raises UsageError with the nearest name."""
    if name in _OURS:  # a rank needs no search through the installed packages
        ours: Backend = import_module(_OURS[name]).BACKEND
        return ours
    known = backends()
    if name not in known:
        raise UsageError(f"unknown backend {name!r}: {nearest(name, known)}")
    return known[name]
