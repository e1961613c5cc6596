"""Observers by name: ours, and those of installed packages (entry-point group ``omb_py.observers``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from omb_py.engine.observers.observer import Observer
from omb_py.errors import EnvironmentProblem

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
    others, broken = _of_packages()
    if name not in others:
        raise EnvironmentProblem(f"observer {name} cannot be loaded: {broken.get(name, 'no package provides it')}")
    return others[name]


def observers() -> list[type[Observer]]:
    """All observers that can be loaded, ours first."""
    return [*map(find, OURS), *_of_packages()[0].values()]


@cache
def _of_packages() -> tuple[Mapping[str, type[Observer]], Mapping[str, str]]:
    """(name -> observer, name -> why it cannot be loaded)."""
    from importlib.metadata import entry_points  # slow to import, and needed for the names of others only

    loaded: dict[str, type[Observer]] = {}
    broken: dict[str, str] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            kind = entry.load()
        except Exception as error:  # a broken plug-in must not break the tool
            broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(kind, type) and issubclass(kind, Observer) and kind.name == entry.name:
            loaded[entry.name] = kind
        else:
            broken[entry.name] = f"{entry.value} is no Observer called {entry.name}"
    return loaded, broken
