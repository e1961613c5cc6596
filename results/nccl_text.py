"""Rows as the text of nccl-tests 2.19: thirteen words a line, out-of-place and in-place side by side.

Only rows that were measured as nccl-tests measure: pipelined, the mean over the ranks.  Sizes are of the whole
operation, bandwidths by its formulas (:mod:`omb_py.results.bandwidth`), GB = 10^9 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omb_py.engine.dtypes import DTYPES
from omb_py.errors import UsageError

Row = Mapping[str, Any]

TYPES: Final = {
    "char": "int8", "int8": "int8", "uint8": "uint8", "int32": "int32", "uint32": "uint32", "int64": "int64",
    "uint64": "uint64", "float16": "half", "float32": "float", "float64": "double", "bfloat16": "bfloat16",
}  # fmt: skip
"""Our types -> nccl-tests' words."""
NO_ROOT: Final = -1
UNKNOWN: Final = "N/A"
WORDS: Final = ("size", "count", "type", "redop", "root", *("time", "algbw", "busbw", "#wrong") * 2)
"""The columns of a line."""
_BLOCKWISE: Final = frozenset({"reduce_scatter"})
"""Formulas whose *count* is that of a rank's block of `size_bytes`."""
_IN_PLACE_ONLY: Final = "broadcast"
"""Its buffer is input and output in one, as in MPI."""
_HEADER: Final = (
    "#\n"
    "#                                                              out-of-place                       in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n"
)


def check(row: Row) -> None:
    """Raises UsageError for a row that nccl-tests would have measured otherwise."""
    name = f"{row['benchmark']} {row['size_bytes']} B"
    if not str(row["bw_formula"] or "").startswith("nccl-tests:"):
        raise UsageError(f"{name}: nccl-tests have no such operation: --format table")
    if row["timing"] != "pipelined":
        raise UsageError(
            f"{name} was timed {row['timing']}, nccl-tests time pipelined: measure with --format nccl-tests or "
            "--timing pipelined, or show it with --format table"
        )
    if row["dtype"] not in TYPES:
        raise UsageError(f"{name}: nccl-tests have no type {row['dtype']}: --format table")


def header() -> str:
    """The two lines of names and the line of units, as nccl-tests print them."""
    return _HEADER


def line(outside: Row, inside: Row | None) -> str:
    """One line: what was measured out of place, and in place where there is such a form. Raises UsageError."""
    for row in (outside, inside):
        if row is not None:
            check(row)
    formula = str(outside["bw_formula"]).partition(":")[2]
    count = int(outside["size_bytes"]) // DTYPES[outside["dtype"]].itemsize
    if formula in _BLOCKWISE:
        count //= int(outside["ranks"])
    root = NO_ROOT if outside["root"] is None else int(outside["root"])
    head = f"{int(outside['bytes_total']):>12}  {count:>12}  {TYPES[outside['dtype']]:>8}  {outside['op'] or 'none':>6}"
    if formula == _IN_PLACE_ONLY:
        return f"{head}  {root:>6}{_half(None)}{_half(outside)}\n"
    return f"{head}  {root:>6}{_half(outside)}{_half(inside)}\n"


def _half(row: Row | None) -> str:
    """Time, algbw, busbw and wrong elements of one placement."""
    if row is None:
        return f"  {UNKNOWN:>7}  {UNKNOWN:>6}  {UNKNOWN:>6}  {UNKNOWN:>6}"
    wrong = UNKNOWN
    if row["wrong_bytes"] is not None:
        # bytes are counted; so many elements are wrong at least
        wrong = f"{math.ceil(int(row['wrong_bytes']) / DTYPES[row['dtype']].itemsize):g}"
    algbw, busbw = float(row["algbw_gbps"] or 0.0), float(row["busbw_gbps"] or 0.0)  # one rank: nccl-tests print 0
    return f"  {_time(float(row['value'])):>7}  {_number(algbw):>6}  {_number(busbw):>6}  {wrong:>6}"


def _time(us: float) -> str:
    """Seven columns: as many decimals as fit, two at most."""
    for digits in (2, 1, 0):
        text = f"{us:.{digits}f}"
        if len(text) <= 7:
            return text
    return f"{us:.0f}"


def _number(gbps: float) -> str:
    for digits in (2, 1, 0):
        text = f"{gbps:.{digits}f}"
        if len(text) <= 6:
            return text
    return f"{gbps:.0f}"


def footer(rows: Sequence[Row]) -> str:
    """What nccl-tests say at the end: wrong values, and the plain mean of all bandwidths."""
    wrong = [int(row["wrong_bytes"]) for row in rows if row["wrong_bytes"] is not None]
    bad = sum(wrong)
    mean = sum(float(row["busbw_gbps"] or 0.0) for row in rows) / len(rows) if rows else 0.0
    checked = f"# Out of bounds values : {bad} {'FAILED' if bad else 'OK'}\n" if wrong else ""
    return f"{checked}# Avg bus bandwidth    : {mean:g}\n#\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was read."""

    size: int
    count: int
    type: str
    redop: str
    root: int
    out_of_place: tuple[float | None, float | None, float | None, float | None]
    """Time in µs, algbw and busbw in GB/s, wrong elements; None for N/A."""
    in_place: tuple[float | None, float | None, float | None, float | None]


def parse(text: str) -> Line:
    """A line of nccl-tests (or of :func:`line`). Raises ValueError when it does not have thirteen words."""
    words = text.split()
    if len(words) != len(WORDS):
        raise ValueError(f"{len(words)} words, nccl-tests print {len(WORDS)}: {text.rstrip()!r}")
    halves = [None if word == UNKNOWN else float(word) for word in words[5:]]
    first, second = tuple(halves[:4]), tuple(halves[4:])
    return Line(int(words[0]), int(words[1]), words[2], words[3], int(words[4]), first, second)  # type: ignore[arg-type]
