"""Filters ``column=value`` as expressions that pyarrow pushes down to the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omb_py.errors import UsageError, nearest
from omb_py.results.store import schema

if TYPE_CHECKING:
    import pyarrow.dataset as ds

DATE = "date"
"""The column that is the folder's name, ``date=YYYY-MM-DD``."""

_FEW = 8
"""So many values are compared one by one, which every pyarrow holds against the statistics of a row group."""


def column(name: str) -> schema.Column:
    """The column of this name, or the folder's day. Raises UsageError with the nearest name."""
    if name == DATE:
        return schema.Column(DATE, "string", "day of the launch, UTC")
    found = schema.BY_NAME.get(name)
    if found is None:
        raise UsageError(f"the store has no column {name!r}: {nearest(name, [*schema.NAMES, DATE])}")
    return found


def expression(filters: Mapping[str, Any]) -> ds.Expression | None:
    """All filters together; None when there is none.

    Raises UsageError on a column that does not exist or cannot be filtered, or a value it cannot hold.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    combined: ds.Expression | None = None
    for name, wanted in filters.items():
        found = column(name)
        if name not in (*schema.SCALARS, DATE):
            raise UsageError(f"cannot filter by {name}, which holds a {found.arrow}")
        values = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        known = [typed(found, v) for v in values if v is not None]
        kind = schema.arrow_type(found.kind)
        if 0 < len(known) <= _FEW:
            part = ds.field(name) == pa.scalar(known[0], type=kind)
            for value in known[1:]:
                part = part | (ds.field(name) == pa.scalar(value, type=kind))
        else:
            part = ds.field(name).isin(pa.array(known, type=kind))
        if len(known) < len(values):
            part = part | ds.field(name).is_null()
        combined = part if combined is None else combined & part
    return combined


def days(filters: Mapping[str, Any]) -> frozenset[str] | None:
    """The days that a filter on ``date`` admits; None when it admits all."""
    wanted = filters.get(DATE)
    found = {wanted} if isinstance(wanted, str) else set(wanted) if isinstance(wanted, (list, tuple, set)) else None
    return None if found is None or None in found else frozenset(found)


def typed(found: schema.Column, value: Any) -> Any:
    """A value in the type of a column; text is converted. Raises UsageError."""
    import pyarrow as pa

    kind = schema.arrow_type(found.kind)
    try:
        if isinstance(value, str) and found.kind != "string":
            return pa.scalar(value).cast(kind).as_py()
        return pa.scalar(value, type=kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise UsageError(f"{found.name} holds {found.arrow}, which {value!r} is not") from None
