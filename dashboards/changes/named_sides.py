"""The sides that a user names by words: libraries, versions, backends, bindings, devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.series import COUNTS
from omb_py.dashboards.changes.sides import VERSION, WHAT, Side
from omb_py.errors import UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd

_NAMING = ("backend", "library", VERSION, "binding", "device", "device_name", "tags")


def named(words: Sequence[str], known: Sequence[Side]) -> list[Side]:
    """The sides that words name, each once: of each library the newest version, unless a word names the version.

    Of sides of one library and version the one that shares most cells with the other words' sides stands for it.

    Raises:
        UsageError: a word names no side.
    """
    matches = [[side for side in known if _plain(word) in _names(side)] for word in words]
    for word, several in zip(words, matches, strict=True):
        if not several:
            names = {name for side in known for name in (*map(str, side.library), side.name) if not theme.absent(name)}
            raise UsageError(f"the store has no side {word!r}: {nearest(word, sorted(names))}")
    chosen: dict[str, Side] = {}
    for at, several in enumerate(matches):
        others = {key for other, sides in enumerate(matches) if other != at for side in sides for key in side.keys}
        newest: dict[tuple[object, ...], object] = {side.library: side.values.get(VERSION) for side in several}
        for library, version in newest.items():
            alike = [side for side in several if side.library == library and side.values.get(VERSION) == version]
            best = max(alike, key=lambda side: (len(side.keys & others), len(side.keys)))
            chosen.setdefault(best.name, best)
    return list(chosen.values())


def _names(side: Side) -> set[str]:
    words = [str(side.values[name]) for name in _NAMING if not theme.absent(side.values.get(name))]
    library, version = side.values.get("library"), side.values.get(VERSION)
    return {_plain(word) for word in (*words, f"{library} {version}", side.name)}


def _plain(word: str) -> str:
    """Letters and digits: ``openmpi`` is ``Open MPI``."""
    return re.sub(r"[\W_]+", "", word.casefold())


_WAYS = tuple(name for name in WHAT if name not in (*COUNTS, "size_bytes"))


def alike(sides: Iterable[tuple[str, pd.DataFrame]]) -> tuple[list[tuple[str, pd.DataFrame]], list[str]]:
    """Of each side the cells of one way of measuring, which most sides have, and sentences on what that leaves.

    Args:
        sides: name and prepared cells of each.

    Returns:
        The sides with fewer cells, and a sentence for ways that are left out, and one for ways that differ.
    """
    known = list(sides)
    ways = [column for column in _WAYS if len({word for _, cells in known for word in _known(cells, column)}) > 1]
    if not ways:
        return known, []
    placed = [cells[ways].astype("object").fillna(dict.fromkeys(ways, "")) for _, cells in known]
    counts = [rows.groupby(ways, sort=False, observed=True).size() for rows in placed]
    chosen, words = [], []
    for (name, cells), rows, own in zip(known, placed, counts, strict=True):
        way = max(own.index, key=lambda way: (sum(way in other.index for other in counts), own[way]))
        places = dict(zip(ways, way if isinstance(way, tuple) else (way,), strict=True))
        fits = (rows == list(places.values())).all(axis=1)
        chosen.append((name, cells[fits]))
        words.append({column: "none" if theme.absent(value) else str(value) for column, value in places.items()})
    notes = []
    left = [column for column in ways if any(rows[column].nunique() > 1 for rows in placed)]
    if left:
        notes.append(f"One way of measuring of several is drawn; --where chooses another: {', '.join(left)}.")
    apart = [column for column in ways if len({way[column] for way in words}) > 1]
    if apart:
        differing = "; ".join(f"{column}: {_values([name for name, _ in known], words, column)}" for column in apart)
        notes.append(f"Not measured alike ({differing}), so no verdict is possible.")
    return chosen, notes


def _known(cells: pd.DataFrame, column: str) -> set[str]:
    return {"" if theme.absent(value) else str(value) for value in cells[column].unique()}


def _values(names: Sequence[str], words: Sequence[dict[str, str]], column: str) -> str:
    """``barrier (MPICH 5.0.2), none (torch gloo 2.13)``."""
    by_value: dict[str, list[str]] = {}
    for name, way in zip(names, words, strict=True):
        by_value.setdefault(way[column], []).append(name)
    return ", ".join(f"{value} ({', '.join(several)})" for value, several in by_value.items())
