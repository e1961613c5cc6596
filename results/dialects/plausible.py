"""What no tool prints: sizes twice or out of order, a row that is set out unlike the others.

A line of something else that got between the rows of a log looks like a row; taken for one, it would be a measurement
that nobody made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omb_py.results.dialects.reading import ImportedRow

_IDENTITY = ("benchmark", "dtype", "op", "window", "ranks", "threads", "in_place", "timing", "device", "parameters")

_SHORT = 0.8


@dataclass(frozen=True, slots=True)
class RowLine:
    """A line that became one or more rows."""

    number: int
    text: str


def number_empty(rows: Sequence[ImportedRow]) -> None:
    """Tell apart the rows of 0 B of nccl-tests: each size below one element for each rank is printed as 0."""
    passes: Counter[str] = Counter()
    for row in rows:
        if row.get("text_dialect") == "nccl-tests" and row["bytes_total"] == 0:
            identity = _identity(row)
            if passes[identity]:
                row["parameters"] = row["parameters"] | {"pass": str(passes[identity])}
            passes[identity] += 1


def implausible(rows: Sequence[ImportedRow]) -> str:
    """Why the rows of a table cannot be those of one run; empty where they can be."""
    last: dict[str, int] = {}
    for row in rows:
        identity = _identity(row)
        size = -1 if row.get("size_bytes") is None else int(row["size_bytes"])
        before = last.get(identity)
        if before == size:
            return f"{_size(row.get('size_bytes'))} is listed twice; take one of the lines away"
        if before is not None and size < before:
            return f"{size} B stands after {before} B, and sizes rise in a table; take the line away that is none of it"
        last[identity] = size
    return ""


def _identity(row: ImportedRow) -> str:
    return repr([row.get(name) for name in _IDENTITY])


def odd_line(lines: Sequence[RowLine], head: int) -> RowLine | None:
    """The first row that is much shorter than most rows of its table; None where all are set out alike.

    Tools print columns of a fixed width, so rows are equally long, or a little longer where a number needs more room. A
    log whose blanks were squeezed shows nothing.

    Args:
        lines: the rows of one table.
        head: length of the table's head, which says how long rows are where some row is as long.
    """
    lengths = [len(line.text.rstrip()) for line in lines]
    counts = Counter(lengths)
    usual = head if head in counts else max(counts, key=lambda length: (counts[length], length), default=0)
    is_known = usual == head or 2 * counts[usual] > len(lines)
    if not any(_is_set_out(line) for line, own in zip(lines, lengths, strict=True) if own == usual):
        return None
    return next(
        (
            line
            for line, own in zip(lines, lengths, strict=True)
            if own < _SHORT * usual and (is_known or not _is_set_out(line))
        ),
        None,
    )


def _is_set_out(line: RowLine) -> bool:
    """Whether columns have a width: more than one blank stands between some of them."""
    return "  " in line.text.strip()


def _size(size: int | None) -> str:
    return "a row" if size is None else f"{size} B"
