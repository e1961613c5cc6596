"""Click types for option values, made from the readers of :mod:`omb_py.options.readers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from omb_py.options import readers
from omb_py.options.readers import Reader

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # older versions of click know no type argument


class ParsedType(_Type):
    """A value made by a function that raises UsageError."""

    def __init__(self, name: str, parse: Callable[[str], Any], choices: Sequence[str] = ()) -> None:
        self.name = name
        self.parse = parse
        self.choices = choices
        """Offered by shell completion."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text; a value that is no text is a default and stays as it is."""
        return self.parse(value) if isinstance(value, str) else value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        head, comma, tail = incomplete.rpartition(",")
        return [CompletionItem(head + comma + word) for word in self.choices if word.startswith(tail)]


def _parsed(reader: Reader) -> ParsedType:
    return ParsedType(reader.what, reader.parse, reader.choices)


def word(what: str, choices: Sequence[str], strict: bool = True) -> ParsedType:
    """One of `choices`; not `strict` leaves the check, and its message, to the planner."""
    return _parsed(readers.word(what, choices, strict))


def comma_list(what: str, choices: Sequence[str] = (), keep_case: bool = False) -> ParsedType:
    """Words separated by commas, as a tuple; empty places are refused."""
    return _parsed(readers.comma_list(what, choices, keep_case))


def whole(what: str, smallest: int) -> ParsedType:
    """A whole number of at least `smallest`."""
    return _parsed(readers.whole(what, smallest))
