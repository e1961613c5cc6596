"""Read the text of OMB-Py: a title, a head, and rows of size and value. It names no version and no datatype."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.results.dialects.reading import (
    BadTable,
    Context,
    Line,
    Parsed,
    Problem,
    Table,
    check_end,
    decimal,
    is_numeric,
    shown,
    whole,
)

SOURCE = "OMB-Py"

_TITLE = re.compile(r"\s*# OMB(?:-Py| Python) MPI (?P<text>.+?) Test\s*")
_HEAD = re.compile(r"\s*# Size \(B\)\s+(?P<what>Latency|Bandwidth) \((?P<unit>us|MB/s)\)\s*")
_NAMES: Mapping[str, str] = {
    "latency": "latency",
    "multi": "multi_lat",
    "multi lat": "multi_lat",
    "multi-pair": "multi_lat",
    "multi pair": "multi_lat",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "bi-bandwidth": "bibw",
    "broadcast": "bcast",
    "bcast": "bcast",
    "barrier": "barrier",
    "allgather": "allgather",
    "allgatherv": "allgatherv",
    "allreduce": "allreduce",
    "alltoall": "alltoall",
    "all-to-all": "alltoall",
    "alltoallv": "alltoallv",
    "all-to-allv": "alltoallv",
    "gather": "gather",
    "gatherv": "gatherv",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce scatter": "reduce_scatter",
    "scatter": "scatter",
    "scatterv": "scatterv",
}
_PT2PT = ("latency", "bw", "bibw", "multi_lat")


class OmbPyText:
    """Reader of the text of OMB-Py."""

    name = "OMB-Py text"

    def starts(self, text: str) -> bool:
        """Whether a line is a title, or a head with the unit of the size, which OMB does not print."""
        return _TITLE.fullmatch(text) is not None or _HEAD.fullmatch(text) is not None

    def read(self, lines: Sequence[Line], context: Context) -> Parsed:
        """Read every table; each is a launch of its own."""
        parsed = Parsed()
        starts = [i for i, line in enumerate(lines) if self._begins(lines, i)]
        for first, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            try:
                parsed.tables.append(_table(lines[first:end], context, len(parsed.tables)))
            except BadTable as error:
                parsed.problems.append(Problem(lines[first].number, f"OMB-Py table left out: {error}"))
        return parsed

    @staticmethod
    def _begins(lines: Sequence[Line], i: int) -> bool:
        if _TITLE.fullmatch(lines[i].text):
            return True
        above = next((line.text for line in reversed(lines[:i]) if line.text.strip()), "")
        return _HEAD.fullmatch(lines[i].text) is not None and not _TITLE.fullmatch(above)


def _table(lines: Sequence[Line], context: Context, launch: int) -> Table:
    benchmark = _benchmark(lines[0].text, context)
    rows: list[dict[str, Any]] = []
    unit, length = "", 0
    for line in lines:
        words = line.text.split()
        if match := _HEAD.fullmatch(line.text):
            unit, length = match["unit"], len(line.text.rstrip())
        elif unit and words and words[0].isdecimal() and (len(words) == 1 or is_numeric(words[1])):
            try:
                length = check_end(line, length)
                rows.append(_row(benchmark, unit, words))
            except BadTable as error:
                raise BadTable(f"line {line.number}: {error}") from None
    if not rows:
        raise BadTable("no rows")
    return Table(SOURCE, None, benchmark, lines[0].number, launch, rows)


def _benchmark(title: str, context: Context) -> str:
    match = _TITLE.fullmatch(title)
    if match is None:
        if context.benchmark is None:
            raise BadTable("a table without its title; say what it is with --benchmark NAME")
        return context.benchmark
    text = " ".join(match["text"].casefold().split()).removesuffix(" latency")
    if text not in _NAMES:
        raise BadTable(f"unknown title {shown(title)}")
    return _NAMES[text]


def _row(benchmark: str, unit: str, words: Sequence[str]) -> dict[str, Any]:
    pair = benchmark in _PT2PT
    if len(words) != 2:
        raise BadTable("not a size and a value")
    size, value = whole(words[0]), decimal(words[1])
    return {
        "source": SOURCE,
        "benchmark": benchmark,
        "family": "pt2pt" if pair else "collective",
        "backend": "mpi",
        "binding": "mpi4py",
        "process_sync": None if pair else "none",
        "unit": unit,
        "metric": "bandwidth" if unit == "MB/s" else "latency",
        "size_bytes": size,
        "value": value,
        "ranks": 2 if pair and benchmark != "multi_lat" else None,
        "text_dialect": "omb-7.5",
        "window": 64 if benchmark in ("bw", "bibw") else None,
        "parameters": {"loop": "one timer around all iterations"},
    }
