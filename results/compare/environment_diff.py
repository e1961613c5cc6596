"""Differences between the environments of two sides: the first thing that a comparison prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from omb_py.results.repro_command import training_of
from omb_py.results.store.keys import digest, environment_facts, flat
from omb_py.results.units import counted, listed

if TYPE_CHECKING:
    from omb_py.results.store.provenance import Provenance

_TITLES = (
    ("library", "library"),
    ("binding", "binding"),
    ("backend", "backend"),
    ("software", "software"),
    ("environment", "variable"),
    ("option", "option"),
    ("node_facts", "node"),
    ("launch", "launch"),
)
"""Section of a provenance and the word before its facts; the most important first, as a report lists them."""
_REPEATED = ("library_string", "library_version", "software.library", "launch.launcher")
"""Facts that repeat the version of the library, left out where the library itself differs."""
_IMPORTED = "imported."
_TOOL = (f"{_IMPORTED}tool", f"{_IMPORTED}tool_version")
"""Facts of an imported file that say how it was measured; the others only name the file."""
_ASKED: Final = "config"
"""Key in the launch section: what a comparison set on this side. The environment key does not contain it."""
_NOT_SET = "not set"
_MANY = 3
"""Variables with a common beginning, set on one side only, that share a line."""
_LONG = 80
"""Characters of a value that are shown; a longer one is cut between words."""
_SHOWN = 3
"""Values of a fact, or libraries, that are named before the rest is counted."""


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One fact that the sides do not share."""

    what: str
    """Name of the fact, as ``variable UCX_TLS``."""
    base: str
    new: str

    def __str__(self) -> str:
        return f"{self.what}: {self.base} → {self.new}"


def differences(
    base: Sequence[Provenance],
    new: Sequence[Provenance],
    rows: tuple[Mapping[str, object], Mapping[str, object]] | None = None,
) -> list[EnvironmentDifference]:
    """List the differences between two sets of launches, the most important first.

    Args:
        base: provenance of each launch of BASE; equal ones count once.
        rows: one row of each side. It gives backend, binding, library and version, also where there is no provenance,
            and the settings of a training that were not given.
    """
    sides = [_facts(base), _facts(new)]
    if rows:
        for facts, row in zip(sides, rows, strict=True):
            named = " ".join(str(row[name]) for name in ("library", "library_version") if row.get(name))
            facts["library"] = {named} if named else set()
            for name in ("backend", "binding", "thread_level"):
                facts[name] = {str(row[name])} if row.get(name) else set()
    diffs = []
    same_library = sides[0].get("library") == sides[1].get("library")
    for name in dict.fromkeys((*sides[0], *sides[1])):
        values = [facts.get(name, set()) for facts in sides]
        if values[0] != values[1] and (same_library or name not in _REPEATED):
            diffs.append(_difference(_title(name), values))
    named_already = {difference.what for difference in diffs}
    diffs += [request for request in _list_asked(base, new, rows) if request.what not in named_already]
    diffs += _list_mapped(base, new)
    return sorted(diffs, key=_sort_key)


def say(diffs: Sequence[EnvironmentDifference]) -> list[str]:
    """Write differences, the most important first, in lines that can be read.

    A single one is ``library: NCCL 2.30 → NCCL 2.32; nothing else that is recorded``. Several have a line each;
    variables that begin alike and are set on one side only share a line.
    """
    if not diffs:
        return ["nothing that is recorded"]
    lines = _lines(diffs)
    if len(lines) == 1:
        return [f"{lines[0]}; nothing else that is recorded"]
    return [f"{counted(len(diffs), 'fact')}, nothing else that is recorded", *(f"  {line}" for line in lines)]


def _lines(diffs: Sequence[EnvironmentDifference]) -> list[str]:
    alike: dict[tuple[str, str], list[EnvironmentDifference]] = {}
    for difference in diffs:
        name = difference.what.removeprefix("variable ")
        family, sides = "_".join(name.split("_")[:2]), (difference.base == _NOT_SET, difference.new == _NOT_SET)
        is_family = name != difference.what and any(sides) and name.count("_") >= 2
        where = "only NEW has" if sides[0] else "only BASE has"
        alike.setdefault((where, family) if is_family else ("", difference.what), []).append(difference)
    lines = []
    for (where, family), members in alike.items():
        if where and len(members) >= _MANY:
            names = [member.what.removeprefix("variable ") for member in members]
            lines.append(f"{where} {len(names)} variables {family}_*, as {names[0]}")
        else:
            lines += map(str, members)
    return lines


def _facts(provenances: Iterable[Provenance]) -> dict[str, set[str]]:
    """Collect the facts of environments: dotted name -> the values that some launch has."""
    distinct = {digest(facts): facts for facts in map(environment_facts, provenances)}
    out: dict[str, set[str]] = {}
    for facts in distinct.values():
        for name, value in flat(facts):
            if name.startswith(_IMPORTED) and name not in _TOOL:
                continue
            out.setdefault(name, set()).add(value)
    return out


def _list_asked(
    base: Iterable[Provenance], new: Iterable[Provenance], rows: Sequence[Mapping[str, object]] | None
) -> list[EnvironmentDifference]:
    """List what a comparison set differently on its two sides: variables, options, modules, and for programs packages.

    Such a variable may be on no allow-list, so that it is no fact of the environment.
    """
    sides: list[dict[str, set[str]]] = [{}, {}]
    for facts, provenances in zip(sides, (base, new), strict=True):
        for provenance in provenances:
            asked = (provenance.get("launch") or {}).get(_ASKED) or {}
            for name, value in (asked.get("set") or {}).items():
                facts.setdefault(f"variable {name}", set()).add(str(value))
            given = {"module": " ".join(asked.get("modules") or ())}
            if "program" in provenance:  # of others the software is recorded
                given |= {"environment": asked.get("env") or "", "package": " ".join(asked.get("pip") or ())}
            for name, value in given.items():
                if value:
                    facts.setdefault(name, set()).add(value)
            for option in asked.get("options") or ():
                name, _, value = str(option).removeprefix("--").partition("=")
                facts.setdefault(f"option {name}", set()).add(value or "given")
    names = dict.fromkeys((*sides[0], *sides[1]))
    for facts, row in zip(sides, rows or (), strict=False):
        _, settings = training_of(row)
        for name in names:
            if name not in facts and (usual := settings.get(name.removeprefix("option "))):
                facts[name] = {usual}
    values = {name: [side.get(name, set()) for side in sides] for name in names}
    return [_difference(name, pair) for name, pair in values.items() if pair[0] != pair[1]]


def _title(name: str) -> str:
    head, _, rest = name.partition(".")
    word = dict(_TITLES).get(head)
    if word is None or not rest:
        return word or name
    return f"{word} {rest.removeprefix('packages.')}"


def _sort_key(difference: EnvironmentDifference) -> tuple[int, str]:
    order = [word for _, word in _TITLES]
    head = difference.what.split()[0]
    return (order.index(head) if head in order else len(order)), difference.what


def _difference(fact: str, values: Sequence[set[str]]) -> EnvironmentDifference:
    none = {"variable": _NOT_SET, "option": "not given"}.get(fact.partition(" ")[0], "none")
    return EnvironmentDifference(fact, *(_text(side) or none for side in _strip_common_start(values)))


def _strip_common_start(values: Sequence[set[str]]) -> Sequence[set[str]]:
    """Two long texts without the words with which both begin, so that what differs is not cut off."""
    texts = [text for side in values for text in side]
    if not all(len(side) == 1 for side in values) or max(map(len, texts)) <= _LONG:
        return values
    shared = next((k for k, pair in enumerate(zip(*texts, strict=False)) if len(set(pair)) > 1), 0)
    start = texts[0].rfind(" ", 0, shared)
    return [{f"…{text[start:]}"} for text in texts] if start > 0 else values


def _text(values: set[str]) -> str:
    shown = sorted(values)[:_SHOWN]
    return " or ".join(map(_short, shown)) + (" or …" if len(values) > _SHOWN else "")


def _short(value: str) -> str:
    if len(value) <= _LONG:
        return value
    end = max(value.rfind(mark, 0, _LONG) for mark in " :,;")
    return f"{value[: end if end > 0 else _LONG]} …"


def _list_mapped(base: Sequence[Provenance], new: Sequence[Provenance]) -> list[EnvironmentDifference]:
    """Find shared objects of the same name but of another build, which versions and variables do not show."""
    sides = [_libraries(base), _libraries(new)]
    names = [n for n in sides[0] if n in sides[1] and len(sides[0][n]) == len(sides[1][n]) == 1]
    changed = [n for n in names if sides[0][n] != sides[1][n] and None not in sides[0][n] | sides[1][n]]
    if not changed:
        return []
    return [
        EnvironmentDifference(
            f"loaded libraries of other builds ({listed(changed, _SHOWN)})",
            *(" or ".join(sorted(str(build)[:8] for build in side[changed[0]])) for side in sides),
        )
    ]


def _libraries(provenances: Iterable[Provenance]) -> dict[str, set[str | None]]:
    out: dict[str, set[str | None]] = {}
    for provenance in provenances:
        for entry in provenance.get("loaded_libraries") or ():
            name = PurePath(str(entry.get("path"))).name
            if name.startswith("lib"):  # others belong to Python packages, whose versions are facts
                out.setdefault(name, set()).add(entry.get("build_id"))
    return out
