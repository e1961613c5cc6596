"""The types of what a browser sends: a request of another form is answered 400, before a callback sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.explorer.data import FILTERS
from omb_py.dashboards.explorer.state import CONTROLS
from omb_py.grammar.json_values import JsonValue

_MOST = 1 << 53
"""Whole numbers of a browser are exact below it."""


Check = Callable[[JsonValue], bool]


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_count(value: JsonValue) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST)


def _is_plain(value: JsonValue) -> bool:
    return value is None or _is_text(value) or (isinstance(value, (bool, int, float)) and abs(value) < _MOST)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_condition(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(map(_is_plain, value.values()))


def _is_rows_request(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    ends = all(_is_count(value.get(name)) for name in ("startRow", "endRow"))
    return ends and _maybe(_list_of(_is_condition))(value.get("sortModel"))


def _is_shown(value: JsonValue) -> bool:
    return isinstance(value, list) and all(map(_is_plain, value)) and all(map(_is_text, value[:1]))


_OF_PROPERTY: Mapping[str, Check] = {
    "search": _maybe(_is_text),
    "pathname": _maybe(_is_text),
    "n_clicks": _is_count,
    "n_intervals": _is_count,
    "getRowsRequest": _maybe(_is_rows_request),
    **{f"{name}.value": _maybe(_is_text) for name in CONTROLS},
    **{f"{name}.value": _maybe(_list_of(_is_plain)) for name in FILTERS},
    "version.data": _maybe(_is_text),
    "window.data": _maybe(_is_condition),
    "shown.data": _maybe(_is_shown),
}
"""Property, alone or of one component -> what its values are."""


def _is_given(value: JsonValue, declared: Facts) -> bool:
    name = declared["property"]
    check = _OF_PROPERTY.get(f"{declared['id']}.{name}") or _OF_PROPERTY.get(name)
    return (
        check is not None
        and isinstance(value, dict)
        and (value.get("id"), value.get("property")) == (declared["id"], name)
        and check(value.get("value"))
    )


def _are_given(values: JsonValue, declared: Sequence[Facts]) -> bool:
    return isinstance(values, list) and len(values) == len(declared) and all(map(_is_given, values, declared))


def is_request(body: JsonValue, callbacks: Mapping[str, Facts]) -> bool:
    """Whether the body of a request names one of Dash's callbacks, and gives it what it takes: of each the ``id`` and
    ``property`` of its ``inputs`` and ``state``, as Dash declares them to the browser."""
    if not isinstance(body, dict) or not _is_text(body.get("output")) or body["output"] not in callbacks:
        return False
    declared = callbacks[body["output"]]
    return (
        _are_given(body.get("inputs", []), declared["inputs"])
        and _are_given(body.get("state", []), declared["state"])
        and _list_of(_is_text)(body.get("changedPropIds", []))
        and {f"{one['id']}.{one['property']}" for one in declared["inputs"]}.issuperset(body.get("changedPropIds", []))
        and isinstance(body.get("outputs", []), (list, dict))
    )
