"""Write a document as Markdown for an issue or a wiki: CommonMark with GitHub's tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from omb_py.results.document import Document, TextTable, printable

_SPECIAL = re.compile(r"[\\`*|~\[]|(?<![^\W_])_|_(?![^\W_])")
"""Characters to escape. An underscore inside a word, as in ``gl5_allreduce``, begins no emphasis and stays."""
_ENTITY = re.compile(r"&(?=#?\w+;)")
_OPENING = re.compile(r"([-+#>]|\d+(?=[.)](?:\s|$)))")
"""Characters that start a list, a heading or a quotation at the beginning of a line."""


def to_markdown(document: Document) -> str:
    """The Markdown text: headline, facts, tables, and the other lines as a list."""
    blocks = [
        f"<!-- {document.marker} -->" if document.marker else "",
        f"**{escaped(document.headline).strip()}**",
        _bullets(document.facts),
        *map(_table, document.tables),
        _bullets([*document.details, *document.problems, *document.notes]),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def escaped(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged, on one line, also in a cell of a table."""
    line = re.sub(r"[\t\r\n]", " ", printable(text))
    return _ENTITY.sub("&amp;", _SPECIAL.sub(r"\\\g<0>", line)).replace("<", "&lt;")


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(map(_bullet, lines))


def _bullet(text: str) -> str:
    line = escaped(text)
    start = line.lstrip(" ")
    opening = _OPENING.match(start)
    if opening:
        number = opening[0] if opening[0].isdigit() else ""
        start = f"{number}\\{start[len(number) :]}"
    # four or more spaces would begin a block of code
    return f"- {' ' * min(2, len(line) - len(line.lstrip(' ')))}{start}".rstrip(" ")


def _table(table: TextTable) -> str:
    if not table.rows:
        return ""
    lines = [_row(map(escaped, table.heads)), "|" + "---|" * len(table.heads)]
    return "\n".join([*lines, *(_row(map(escaped, row)) for row in table.rows)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
