"""Traffic matrices: ``--traffic FILE``, the traffic from each rank to each other in an alltoallv.

A file has a line for each rank with a number for each rank, with commas or blanks between them and ``#`` before
comments: how much the rank of the line sends to the rank of the column, in relation to the others. Ranks get it
as the text ``0,1;2,0``, so that other hosts need no file. ``spread:F`` is the generated pattern of nccl-tests'
alltoallv: from 0, the same to all, to 1, the more the further behind a rank is, and nothing to itself.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries

Matrix = tuple[tuple[float, ...], ...]
_FORM = "--traffic FILE with a line of N numbers for each of N ranks"
SPREAD = "spread:"
SPREAD_BYTES = 16
"""Blocks of a spread are cut to a multiple of so many bytes (``alltoallv.cu`` of nccl-tests)."""


def parse_traffic(text: str) -> str:
    """Read a matrix from a file, or a spread, and return it as the text that ranks get. Raises UsageError."""
    if text.strip().startswith(SPREAD):
        fraction = text.strip().removeprefix(SPREAD)
        try:
            spread = float(fraction)
        except ValueError:
            spread = -1.0
        if not 0 <= spread <= 1:
            raise UsageError(f"a spread is a number from 0 to 1, not {fraction!r}: --traffic {SPREAD}0.5")
        return f"{SPREAD}{spread:g}"
    path = Path(text.strip())
    rows: list[list[float]] = []
    for number, body in entries(path, "traffic file", _FORM):
        words = body.replace(",", " ").split()
        try:
            row = [float(word) for word in words]
        except ValueError:
            raise UsageError(f"{path}:{number}: {body!r} are no numbers: {_FORM}") from None
        if not all(math.isfinite(weight) and weight >= 0 for weight in row):
            raise UsageError(f"{path}:{number}: numbers of a traffic matrix are 0 or more, not {body!r}")
        if rows and len(row) != len(rows[0]):
            raise UsageError(f"{path}:{number}: {len(row)} numbers, and {len(rows[0])} in the lines before: {_FORM}")
        rows.append(row)
    if len(rows) < 2 or len(rows) != len(rows[0]):
        raise UsageError(f"traffic file {path} has {len(rows)} lines of {len(rows[0]) if rows else 0} numbers: {_FORM}")
    if not any(map(any, rows)):
        raise UsageError(f"traffic file {path} has no number above 0: nothing would be sent")
    return ";".join(",".join(f"{weight:.12g}" for weight in row) for row in rows)


@cache
def matrix_of(text: str, ranks: int) -> Matrix:
    """The numbers of a matrix that :func:`parse_traffic` gave, for so many ranks."""
    if not text.startswith(SPREAD):
        return tuple(tuple(map(float, row.split(","))) for row in text.split(";"))
    spread, most = float(text.removeprefix(SPREAD)), max(1, ranks - 1)
    weights = [1 - spread + spread * 2 * distance / most for distance in range(ranks)] if ranks > 1 else [1.0]
    return tuple(tuple(weights[(to - rank) % ranks] for to in range(ranks)) for rank in range(ranks))


def check_traffic(text: str, ranks: int) -> None:
    """Raises UsageError when a matrix is for another number of ranks."""
    known = len(matrix_of(text, ranks))
    if known != ranks:
        raise UsageError(f"the traffic matrix is for {known} ranks, not {ranks}: use -n {known}, or another --traffic")


def blocks(text: str, mean: int, item: int, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Bytes that each rank (row) sends to each other (column), in whole elements of `item` bytes.

    A number equal to the mean of all is `mean` bytes, so that a matrix of equal numbers is a plain alltoallv.
    """
    weights = matrix_of(text, ranks)
    item = max(item, SPREAD_BYTES) if text.startswith(SPREAD) else item
    average = math.fsum(map(math.fsum, weights)) / len(weights) ** 2
    return tuple(tuple(int(mean * weight / average + 1e-9) // item * item for weight in row) for row in weights)


def largest(text: str, mean: int, item: int, ranks: int) -> int:
    """The most bytes that any rank sends or receives in all: the *size* column of nccl-tests' alltoallv."""
    sent = blocks(text, mean, item, ranks)
    return max(*map(sum, sent), *map(sum, zip(*sent, strict=True)))
