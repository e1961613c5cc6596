"""What installed packages add to omb-py, by entry-point group. One that cannot be loaded is kept with the reason."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

T = TypeVar("T")

REPAIR = "repair or remove the package that provides it"
"""What to do where an object of another package cannot be loaded."""


@dataclass(frozen=True)
class PlugIns(Generic[T]):
    """The objects of one entry-point group, by the names of their entries."""

    loaded: Mapping[str, T] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    """Name of each that could not be loaded -> the reason."""


_OURS = "omb_py."
_PACKAGES: set[str] = set()
"""Top-level modules of the objects that were loaded."""
"""How the names of our groups begin."""


@cache
def _search() -> Callable[..., EntryPoints | tuple[()]]:
    """A function from a group to its entries; the installed packages are read once.

    Which of our groups have entries is remembered while the same packages are installed: reading packages takes as long
    as a whole command, and most groups have none.
    """
    if "importlib.metadata" in sys.modules:
        return _all_entries().select
    from omb_py.remembered import keep, recall  # not for ranks

    folders = [folder for folder in sys.path if folder.endswith("-packages")]
    question = json.dumps(["groups of entry points", sys.path, *map(_packages_in, sys.path)])
    answer = recall(question)
    if answer is None:
        entries = _all_entries()
        keep(question, {"groups": " ".join(sorted(g for g in entries.groups if g.startswith(_OURS)))}, folders)
        return entries.select
    groups = set(answer["groups"].split())
    return lambda group: _all_entries().select(group=group) if group in groups else ()


@cache
def _all_entries() -> EntryPoints:
    from importlib.metadata import entry_points  # slow to import, and needed for the names of others only

    every: EntryPoints = entry_points()  # type: ignore[assignment,unused-ignore]
    return every


def _packages_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))


def raised_in(error: BaseException) -> str:
    """Say which line of a plug-in an error comes from; empty where none was running."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((str(trace.tb_frame.f_globals.get("__name__")), trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    for module, code, line in reversed(frames):
        if module.partition(".")[0] in _PACKAGES - {_OURS.rstrip(".")}:
            return f"raised in the plug-in {module}, {code.co_filename} line {line} ({code.co_name})"
    return ""


def has_plug_ins(group: str) -> bool:
    """Whether an installed package names an object of this group. None is imported."""
    return bool(_search()(group=group))


def forget_plug_ins() -> None:
    """Look for installed packages anew."""
    _search.cache_clear()
    _all_entries.cache_clear()
    load_plug_ins.cache_clear()


@cache
def load_plug_ins(group: str, *kinds: type[T], named: bool = True, classes: bool = False) -> PlugIns[T]:
    """Load all objects of a group, as those of ``omb_py.benchmarks``::

        BENCHMARKS = load_plug_ins("omb_py.benchmarks", Benchmark).loaded

    Args:
        group: the entry-point group.
        *kinds: the classes of which an object must have one.
        named: whether the `name` of an object must be that of its entry.
        classes: whether the objects are subclasses, and not instances.
    """
    loaded: dict[str, T] = {}
    broken: dict[str, str] = {}
    for entry in _search()(group=group):
        _PACKAGES.add(entry.module.partition(".")[0])
        try:
            thing = entry.load()
        except Exception as error:  # a broken package must not break the tool
            broken[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if not (isinstance(thing, type) and issubclass(thing, kinds) if classes else isinstance(thing, kinds)):
            expected = " or ".join(kind.__name__ for kind in kinds)
            broken[entry.name] = f"{entry.value} is no {expected} but of type {type(thing).__name__}"
        elif named and getattr(thing, "name", entry.name) != entry.name:
            broken[entry.name] = f"{entry.value} is called {getattr(thing, 'name', '')!r}, not {entry.name!r}"
        else:
            loaded[entry.name] = thing
    return PlugIns(loaded, broken)
