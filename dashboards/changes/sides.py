"""Sides of a store: who measured; which of them can be compared, and which words name them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pandas as pd

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.series import COUNTS
from omb_py.dashboards.base.theme import Facts
from omb_py.errors import UsageError, nearest
from omb_py.results.analysis.series import version_key
from omb_py.results.statistics.launch_time import FIELD

LIBRARY, VERSION = "library", "library_version"
COLUMNS = ("backend", LIBRARY, VERSION, "binding", "device", "device_name", "thread_level", "tags", FIELD)
"""Columns that say who measured; rows with equal values are one side."""
KEY = "comparability_key"
Kind = Literal["versions", "libraries", "settings"]
KINDS: tuple[Kind, ...] = ("versions", "libraries", "settings")
"""What two sides differ in, those that a reader asks for first at the front."""


@dataclass(frozen=True)
class StoredSide:
    """Who measured some cells."""

    values: Facts
    """Each of :data:`COLUMNS`; None where it is null."""
    keys: frozenset[str]
    """Comparability keys of its cells."""
    name: str
    """Library and version, and what else tells it from the other sides."""
    began: str = ""
    """Start of the first launch with its tags, where tags tell sides apart; empty for tags of omb-py itself."""

    def differing(self, other: StoredSide) -> tuple[str, ...]:
        """The columns in which two sides differ."""
        return tuple(name for name, value in self.values.items() if value != other.values[name])

    @cached_property
    def library(self) -> tuple[object, object]:
        """Backend and library."""
        return self.values.get("backend"), self.values.get(LIBRARY)

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Its rows."""
        fits = None
        for name, value in self.values.items() if len(frame) else ():
            first = frame[name].iloc[0]
            same = theme.absent(first) if value is None else bool(first == value)
            if len(frame) > 1 and same and not series.varying(frame, (name,)):
                continue  # most columns have one value, which costs nothing to see
            own = series.having(frame[name], value)
            fits = own if fits is None else fits & own
        return frame if fits is None else frame[fits.fillna(False).astype(bool)]


@dataclass(frozen=True)
class Pair:
    """Two sides that measured the same cells."""

    base: StoredSide
    new: StoredSide
    kind: Kind

    @property
    def name(self) -> str:
        """``Open MPI 5.0.11 against MPICH 5.0.2``."""
        return f"{self.new.name} against {self.base.name}"


def sides(frame: pd.DataFrame) -> list[StoredSide]:
    """The sides of prepared cells, those of one library together, older versions first, and older tags of a version."""
    if not len(frame):
        return []
    names = [name for name in COLUMNS if name in frame]
    apart = series.varying(frame, names)  # most columns have one value: comparing all of them takes ten times as long
    if series.varying(frame, ("parameters",)):
        distinct = frame[[*apart, KEY, "parameters"]].drop_duplicates()
        # they belong to what was measured, until one side has several for the same thing
        several = ["parameters"] if distinct.duplicated([*apart, KEY]).any() else []
        names, apart = [*names, *several], [*apart, *several]
    first = {name: frame[name].iloc[0] for name in names}
    keys_of: dict[tuple[object, ...], set[str]] = {}
    for *values, key in frame[[*apart, KEY]].drop_duplicates().astype(object).itertuples(index=False):
        own = {**first, **dict(zip(apart, values, strict=True))}
        who = tuple(None if theme.absent(value) else value for value in own.values())
        keys_of.setdefault(who, set()).update(() if theme.absent(key) else (str(key),))
    every = [dict(zip(names, who, strict=True)) for who in keys_of]
    began = _began(frame) if "tags" in apart else {}
    parts = zip(every, keys_of.values(), names_of(every), strict=True)
    return sorted(
        (
            StoredSide(values, frozenset(keys), name, began.get(str(values.get("tags")), ""))
            for values, keys, name in parts
        ),
        key=_order,
    )


def _began(frame: pd.DataFrame) -> dict[str, str]:
    """Start of the first launch of each text of tags that says nothing of omb-py's own."""
    starts = frame.groupby("tags", observed=True)["started_at"].min()
    return {str(text): str(start) for text, start in starts.items() if not series.has_own_tag(str(text))}


def pairs(every: Iterable[StoredSide]) -> list[Pair]:
    """All pairs of sides that are worth a look: versions of one library first, the newest of them first.

    Of one library each version stands against the one before it, and the newest against the oldest. Of two libraries
    the newest versions stand against each other. Sides of one library and version that differ in one setting (binding,
    device, tag) stand against each other.
    """
    ordered = sorted(every, key=_order)
    families: dict[tuple[object, ...], list[StoredSide]] = {}
    for side in ordered:
        families.setdefault(tuple(v for n, v in side.values.items() if n != VERSION), []).append(side)
    versions: list[Pair] = []
    ends: list[Pair] = []
    for family in families.values():
        steps = [Pair(a, b, "versions") for a, b in itertools.pairwise(family)]
        versions += reversed(steps)
        ends += [Pair(family[0], family[-1], "versions")] if len(family) > 2 else []
    newest = [family[-1] for family in families.values()]
    others = [
        Pair(a, b, "libraries" if a.library != b.library else "settings")
        for a, b in itertools.combinations(newest, 2)
        if a.keys & b.keys and _closest(a, b, newest)
    ]
    others.sort(key=lambda pair: KINDS.index(pair.kind))
    return [pair for pair in (*versions, *ends, *others) if pair.base.keys & pair.new.keys]


WHAT = tuple(name for name in series.IDENTITY if name not in (*COLUMNS, "parameters"))
"""Columns that say what was measured, beside :data:`omb_py.dashboards.base.series.PANEL` and the message size."""


def rows_of(pair: Pair, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of both sides, of the cells that both have measured."""
    shared = pair.base.keys & pair.new.keys
    both = frame[frame[KEY].isin(shared)]
    return pair.base.rows(both), pair.new.rows(both)


def _closest(a: StoredSide, b: StoredSide, every: Iterable[StoredSide]) -> bool:
    """False where another side of either's library differs less from the other: mpi4py against mpi4py, not native."""
    apart = _distance(a, b)
    return not any(
        (other.library == b.library and _distance(a, other) < apart and a.keys & other.keys)
        or (other.library == a.library and _distance(other, b) < apart and other.keys & b.keys)
        for other in every
        if other is not a and other is not b
    ) or (a.library == b.library and apart == 1)


def _distance(a: StoredSide, b: StoredSide) -> int:
    """Columns in which two sides differ, without those in which two libraries always do."""
    free = {"backend", LIBRARY, VERSION, "thread_level"} if a.library != b.library else {VERSION}
    return len({*a.differing(b)} - free)


def _order(side: StoredSide) -> tuple[object, ...]:
    rest = [str(value or "") for name, value in side.values.items() if name not in (VERSION, "tags")]
    version, tags = version_key(str(side.values.get(VERSION) or "")), str(side.values.get("tags") or "")
    return (*rest[:2], version, *rest[2:], not side.began, side.began, tags)


def names_of(every: Sequence[Facts]) -> list[str]:
    """Library and version of each, and of those with the same ones what tells them apart."""
    names = [series.full_name(values) for values in every]
    texts = []
    for name, values in zip(names, every, strict=True):
        namesakes = [other for other_name, other in zip(names, every, strict=True) if other_name == name]
        differing = [n for n in values if len({str(other[n]) for other in namesakes}) > 1]
        texts.append(" · ".join([name, *filter(None, (series.word(n, values[n]) for n in differing))]))
    return texts


_NAMING = ("backend", "library", VERSION, "binding", "device", "device_name", "tags")


def find_named(words: Sequence[str], every: Sequence[StoredSide]) -> list[StoredSide]:
    """The sides that words name, each once: of each library the newest version, unless a word names the version.

    Of sides of one library and version the one that shares most cells with the other words' sides stands for it.

    Raises:
        UsageError: a word names no side.
    """
    matches = [[side for side in every if _plain(word) in _plain_names(side)] for word in words]
    for word, several in zip(words, matches, strict=True):
        if not several:
            names = {name for side in every for name in (*map(str, side.library), side.name) if not theme.absent(name)}
            raise UsageError(f"the store has no side {word!r}: {nearest(word, sorted(names))}")
    chosen: dict[str, StoredSide] = {}
    for at, several in enumerate(matches):
        others = {key for other, sides in enumerate(matches) if other != at for side in sides for key in side.keys}
        newest: dict[tuple[object, ...], object] = {side.library: side.values.get(VERSION) for side in several}
        for library, version in newest.items():
            same = [side for side in several if side.library == library and side.values.get(VERSION) == version]
            best = max(same, key=lambda side: (len(side.keys & others), len(side.keys)))
            chosen.setdefault(best.name, best)
    return list(chosen.values())


def _plain_names(side: StoredSide) -> set[str]:
    words = [str(side.values[name]) for name in _NAMING if not theme.absent(side.values.get(name))]
    library, version = side.values.get("library"), side.values.get(VERSION)
    return {_plain(word) for word in (*words, f"{library} {version}", side.name)}


def _plain(word: str) -> str:
    """Letters and digits: ``openmpi`` is ``Open MPI``."""
    return re.sub(r"[\W_]+", "", word.casefold())


WAYS = tuple(name for name in WHAT if name not in (*COUNTS, "size_bytes"))
"""Columns that say how something was measured on a number of ranks."""


def keep_common_method(
    sides: Iterable[tuple[str, pd.DataFrame]], how: str = ""
) -> tuple[list[tuple[str, pd.DataFrame]], list[str]]:
    """For each side, keep the cells of the way of measuring that most sides have, and of one set of parameters; with a
    sentence on ways that are left out, which says `how` another is chosen, and one on ways that differ."""
    chosen, left, apart = _keep_common(list(sides), WAYS, how)
    chosen, more_left, _ = _keep_common(chosen, ("parameters",))
    return chosen, [*left, *apart, *more_left]


def _keep_common(
    several: list[tuple[str, pd.DataFrame]], columns: Sequence[str], how: str = ""
) -> tuple[list[tuple[str, pd.DataFrame]], list[str], list[str]]:
    """The cells of each side, and at most one sentence each: what is left out, and in what the sides differ."""
    ways = [name for name in columns if len({word for _, cells in several for word in _values_of(cells, name)}) > 1]
    if not ways:
        return several, [], []
    placed = [cells[ways].astype("object").fillna(dict.fromkeys(ways, "")) for _, cells in several]
    counts = [rows.groupby(ways, sort=False, observed=True).size() for rows in placed]
    chosen, words = [], []
    for (name, cells), rows, own in zip(several, placed, counts, strict=True):
        way = max(own.index, key=lambda way: (sum(way in other.index for other in counts), own[way]))
        places = dict(zip(ways, way if isinstance(way, tuple) else (way,), strict=True))
        fits = (rows == list(places.values())).all(axis=1)
        chosen.append((name, cells[fits]))
        words.append({column: "none" if theme.absent(value) else str(value) for column, value in places.items()})
    left_out, differences = [], []
    left = [column for column in ways if any(rows[column].nunique() > 1 for rows in placed)]
    if left:
        values_left = ", ".join(_way_text(column, {way[column] for way in words}) for column in left)
        left_out.append(f"One way of measuring of several is drawn{how}: {values_left}.")
    apart = [column for column in ways if len({way[column] for way in words}) > 1]
    if apart:
        differing = "; ".join(f"{column}: {_values([name for name, _ in several], words, column)}" for column in apart)
        differences.append(f"Not measured alike ({differing}): a small difference may come from that.")
    return chosen, left_out, differences


def _way_text(column: str, values: set[str]) -> str:
    """``op sum``; of a yes or no its name says which: ``not in_place``."""
    if values <= {"True", "False"}:
        return " and ".join(column if value == "True" else f"not {column}" for value in sorted(values))
    return f"{column} {', '.join(sorted(values))}"


def _values_of(cells: pd.DataFrame, column: str) -> set[str]:
    return {"" if theme.absent(value) else str(value) for value in cells[column].unique()}


def _values(names: Sequence[str], words: Sequence[dict[str, str]], column: str) -> str:
    """``barrier (MPICH 5.0.2), none (torch gloo 2.13)``."""
    by_value: dict[str, list[str]] = {}
    for name, way in zip(names, words, strict=True):
        by_value.setdefault(way[column], []).append(name)
    return ", ".join(f"{value} ({', '.join(several)})" for value, several in by_value.items())
