"""Observers by name: ours, and those of installed packages (entry-point group ``omb_py.observers``)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from omb_py.engine.observers.observer import Observer
from omb_py.errors import EnvironmentProblem
from omb_py.plug_ins import PlugIns, load_plug_ins

ENTRY_POINTS = "omb_py.observers"
OURS: Mapping[str, str] = MappingProxyType(
    {"energy": "energy:Energy", "pvars": "counters:LibraryCounters", "counters": "network:NetworkCounters"}
)
"""Name -> module of this package and class. A rank loads only those that its cells ask for."""


def find(name: str) -> type[Observer]:
    """The observer called `name`. Raises EnvironmentProblem where it is not installed, or cannot be loaded."""
    if name in OURS:
        module, _, kind = OURS[name].partition(":")
        observer: type[Observer] = getattr(import_module(f"omb_py.engine.observers.{module}"), kind)
        return observer
    plug_ins = installed()
    if name not in plug_ins.loaded:
        raise EnvironmentProblem(
            f"observer {name} cannot be loaded: {plug_ins.broken.get(name, 'no package provides it')}"
        )
    return plug_ins.loaded[name]


def installed() -> PlugIns[type[Observer]]:
    """The observers of other packages."""
    plug_ins: PlugIns[type[Observer]] = load_plug_ins(ENTRY_POINTS, Observer, ours=OURS.get, classes=True)
    return plug_ins


def observers() -> list[type[Observer]]:
    """All observers that can be loaded, ours first."""
    return [*map(find, OURS), *installed().loaded.values()]
