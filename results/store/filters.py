"""Filters on the rows of a store, as people type them: ``COLUMN=VALUE``, or ``tag=K=V`` for a tag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omb_py.errors import UsageError, nearest
from omb_py.results.store import schema
from omb_py.results.store.paths import DATE

TAG = "tag"
TAGS = "tags"
"""The column that holds the tags."""
RANGE = ".."
"""``date=FROM..TO``, both days included; either may be missing."""
_DOTTED = f"{TAGS}."


@dataclass(frozen=True, slots=True)
class Filter:
    """What one word asks for."""

    column: str
    """A column of the store, or ``date``; :data:`TAGS` where `tag` is given."""
    value: str
    tag: str = ""

    def text(self) -> str:
        """The filter as a user types it."""
        return f"{TAG}={self.tag}={self.value}" if self.tag else f"{self.column}={self.value}"

    def arguments(self) -> dict[str, object]:
        """The filter for :func:`omb_py.load`."""
        return {TAGS: {self.tag: self.value}} if self.tag else {self.column: self.value}


def parse_filter(text: str) -> Filter:
    """Read ``COLUMN=VALUE``, ``tag=K=V``, or ``tags.K=V``, which is the same.

    >>> parse_filter("ranks=4"), parse_filter("tags.rack=a=3").text()
    (Filter(column='ranks', value='4', tag=''), 'tag=rack=a=3')

    Raises:
        UsageError: the word has another form, or the store has no such column.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise UsageError(f"filter {text!r} is not COLUMN=VALUE or tag=K=V, as in benchmark=allreduce or tag=cluster=a")
    if name.startswith(_DOTTED):
        name, value = TAG, f"{name.removeprefix(_DOTTED)}={value}"
    if name == TAG:
        key, equals, value = (part.strip() for part in value.partition("="))
        if not equals or not key:
            raise UsageError(f"{text!r} is not tag=K=V, as tag={key or 'cluster'}=VALUE")
        return Filter(TAGS, value, key)
    if name == TAGS:
        example = value if "=" in value else f"{value or 'cluster'}=VALUE"
        raise UsageError(f"{text!r}: a tag is tag=K=V, as tag={example}")
    check_column(name, f"write tag={name}={value or 'VALUE'}")
    return Filter(name, value)


def check_column(name: str, tagged: str) -> None:
    """Raises UsageError where a store has no such column, with the nearest, or with `tagged` for what may be a tag."""
    if name in schema.BY_NAME or name == DATE:
        return
    near = nearest(name, [*schema.NAMES, DATE])
    if not near.startswith("did"):  # rather than a list of all columns
        near = f"if it is a tag, {tagged}; docs/store.md lists the columns"
    raise UsageError(f"the store has no column {name!r}: {near}")


def parse_filters(texts: Iterable[str]) -> dict[str, object]:
    """The filters of several words for :func:`omb_py.load`, all of which must hold. Raises UsageError as
    :func:`parse_filter`, and where a column or a tag is given twice."""
    values: dict[str, object] = {}
    tags: dict[str, str] = {}
    for each in map(parse_filter, texts):
        if each.tag in tags or each.column in values:
            raise UsageError(f"filter {(f'tag={each.tag}' if each.tag else each.column)!r} is given twice")
        if each.tag:
            tags[each.tag] = each.value
        else:
            values[each.column] = each.value
    return {**values, TAGS: tags} if tags else values


def filters_text(filters: Mapping[str, object]) -> str:
    """Filters of :func:`omb_py.load` as a user types them, with commas."""
    return ", ".join(
        each
        for name, value in filters.items()
        for each in (
            [f"{TAG}={key}={wanted}" for key, wanted in value.items()]
            if isinstance(value, Mapping)
            else [f"{name}={value}"]
        )
    )
