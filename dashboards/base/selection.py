"""Filters of a store, read from ``COLUMN=VALUE`` words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from omb_py.errors import UsageError, nearest
from omb_py.results.store import schema
from omb_py.results.store.read import DATE

TAG = "tags."
"""``tags.K=V`` filters by a tag."""
RANGE = ".."
"""``date=FROM..TO``; either end may be missing."""


@dataclass(slots=True)
class Selection:
    """Filters; empty is everything."""

    columns: dict[str, list[str]] = field(default_factory=dict)
    """Column -> any of these values, for :func:`omb_py.results.load`."""
    tags: dict[str, list[str]] = field(default_factory=dict)
    days: tuple[str, str] = ("", "")
    """First and last day, ISO; empty: open."""

    def __bool__(self) -> bool:
        return bool(self.columns or self.tags or any(self.days))

    def words(self) -> str:
        """The filters in the form in which a user types them."""
        parts = [f"{name}={value}" for name, values in self.columns.items() for value in values]
        parts += [f"{TAG}{name}={value}" for name, values in self.tags.items() for value in values]
        return " ".join([*parts, *([f"{DATE}={self.days[0]}{RANGE}{self.days[1]}"] if any(self.days) else [])])

    def fits(self, tags: Mapping[str, str], day: str) -> bool:
        """True for a cell with these tags, measured on this day; the columns are filtered when the store is read."""
        first, last = self.days
        known = all(tags.get(name) in values for name, values in self.tags.items())
        return known and first <= day and (not last or day <= last)


def parse(words: Iterable[str]) -> Selection:
    """Filters from words; the same column twice means any of the values.

    Raises UsageError on a word without ``=`` and on a column that the store has not.

    >>> parse(["benchmark=bw", "ranks=2", "ranks=4"]).columns
    {'benchmark': ['bw'], 'ranks': ['2', '4']}
    """
    selection = Selection()
    known = [*schema.SCALARS, DATE]
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"a filter is COLUMN=VALUE, as benchmark=allreduce, not {word!r}")
        if name.startswith(TAG):
            selection.tags.setdefault(name.removeprefix(TAG), []).append(value)
        elif name == DATE and RANGE in value:
            first, _, last = value.partition(RANGE)
            selection.days = (first, last)
        elif name in known:
            selection.columns.setdefault(name, []).append(value)
        else:
            raise UsageError(f"the store has no column {name!r} to filter by: {nearest(name, known)}")
    return selection
