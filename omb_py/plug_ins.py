"""What installed packages add to omb-py, by entry-point group. One that cannot be loaded is kept with the reason."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

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
"""How the names of our groups begin."""
_BROKEN: dict[str, Mapping[str, str]] = {}
"""Group -> what could not be loaded of it, as in :class:`PlugIns`."""
_PACKAGES: set[str] = set()
"""Top-level modules of the objects that were loaded."""


class EntryPointValue(NamedTuple):
    """An entry point. That of importlib.metadata takes longer to import than a command may take to start."""

    name: str
    value: str

    @property
    def module(self) -> str:
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """The object. Raises whatever its module raises, and AttributeError where it has no such object."""
        thing: Any = import_module(self.module)
        for name in filter(None, self.value.partition("[")[0].partition(":")[2].strip().split(".")):
            thing = getattr(thing, name)
        return thing


@cache
def _entries() -> Mapping[str, tuple[EntryPointValue, ...]]:
    """The entries of our groups; remembered while the same packages are installed."""
    from omb_py.remembered import keep, recall  # not for ranks

    packages = {folder: _packages_in(folder) for folder in sys.path}
    question = json.dumps(["entry points", packages])
    answer = recall(question)
    if answer is None:
        from importlib.metadata import entry_points

        every = entry_points()
        ours = sorted(group for group in every.groups if group.startswith(_OURS))
        answer = {group: "\n".join(f"{e.name}\t{e.value}" for e in every.select(group=group)) for group in ours}
        lists = [os.path.join(folder, name, "entry_points.txt") for folder in packages for name in packages[folder]]
        keep(question, answer, lists)
    return {
        group: tuple(EntryPointValue(*line.split("\t")) for line in text.splitlines()) for group, text in answer.items()
    }


def _packages_in(folder: str) -> list[str]:
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))


def raised_in(error: BaseException) -> str:
    """Say which line of a plug-in an error comes from, or which method it lacks; empty where none was running."""
    frames, trace, owner = [], error.__traceback__, object
    while trace is not None:
        owner = type(trace.tb_frame.f_locals.get("self"))
        frames.append((str(trace.tb_frame.f_globals.get("__name__")), trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    if isinstance(error, NotImplementedError) and frames and owner.__module__.partition(".")[0] in _PACKAGES:
        return f"{owner.__qualname__} of the plug-in {owner.__module__} must define {frames[-1][1].co_name}"
    for module, code, line in reversed(frames):
        if module.partition(".")[0] in _PACKAGES - {_OURS.rstrip(".")}:
            return f"raised in the plug-in {module}, {code.co_filename} line {line} ({code.co_name})"
    return ""


def described(error: BaseException, otherwise: str = "") -> str:
    """An error that nobody expected, and the plug-in that it comes from; `otherwise` where none was running."""
    text = " ".join(str(error).split())
    return ": ".join(filter(None, (type(error).__name__, text, raised_in(error) or otherwise)))


def loaded_packages() -> str:
    """The packages that objects were loaded from, as words for a message."""
    return ", ".join(sorted(_PACKAGES - {_OURS.rstrip(".")}))


def has_plug_ins(group: str) -> bool:
    """Whether an installed package names an object of this group. None is imported."""
    return group in _entries()


@cache
def load_plug_ins(
    group: str,
    *kinds: type[T],
    ours: Callable[[str], object] = lambda name: False,
    named: bool = True,
    classes: bool = False,
) -> PlugIns[T]:
    """Load all objects of a group, as those of ``omb_py.benchmarks``::

        BENCHMARKS = load_plug_ins("omb_py.benchmarks", Benchmark).loaded

    Args:
        group: the entry-point group.
        *kinds: the classes of which an object must have one.
        ours: tells whether omb-py has an object of this name, which none replaces.
        named: whether the `name` of an object must be that of its entry.
        classes: whether the objects are subclasses, and not instances.
    """
    loaded: dict[str, T] = {}
    broken: dict[str, str] = {}
    for entry in _entries().get(group, ()):
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
        elif ours(getattr(thing, "name", entry.name)):
            broken[entry.name] = f"{entry.value} needs another name: omb-py has one of this name"
        else:
            loaded[entry.name] = thing
    _BROKEN[group] = broken
    return PlugIns(loaded, broken)


def all_broken() -> Mapping[str, str]:
    """Kind and name of what could not be loaded, of the groups that were asked for -> the reason."""
    kinds = {group: group.removeprefix(_OURS).removesuffix("s") for group in _BROKEN}
    return {f"{kinds[group]} {name}": why for group, reasons in _BROKEN.items() for name, why in reasons.items()}
