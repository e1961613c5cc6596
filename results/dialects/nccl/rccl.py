"""Read rccl-tests' files (``-Z csv|json``), with a line or an object for each size and placement.

Older versions write CSV with blanks and with one column (``nodes``) that its head lacks, and JSON with one object per
line instead of a list.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.results.dialects.nccl.json_reader import BadJson, load
from omb_py.results.dialects.nccl.rows import RCCL, Launch, Placement, collective_of, dtype_of, make_row
from omb_py.results.dialects.reading import INT32, BadTable, Context, Parsed, Problem, Table, number, shown, whole
from omb_py.results.statistics.bandwidth import FORMULAS

_HEAD = frozenset({"size", "type", "redop", "inplace", "time", "algbw", "busbw"})

Values = Mapping[str, str]


class RcclCsv:
    """Reader of rccl-tests' CSV."""

    name = "rccl-tests CSV"

    def claims(self, text: str) -> bool:
        """Whether the first line names rccl-tests' columns."""
        first = text.lstrip().partition("\n")[0]
        return {word.strip().lower() for word in first.split(",")} >= _HEAD

    def read_whole(self, text: str, context: Context) -> Parsed:
        """Read the tables of the file, one for each collective."""
        lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
        head = [word.strip().lower() for word in lines[0][1].split(",")]
        cells: list[tuple[int, Values]] = []
        try:
            for i, line in lines[1:]:
                cells.append((i, _zipped(head, next(csv.reader([line], skipinitialspace=True)))))
        except (BadTable, csv.Error, StopIteration) as error:
            return Parsed(problems=[Problem(i, f"{self.name} left out: {error or 'no row'}")])
        last = lines[-1][1].rstrip()  # its last word is quoted, so an odd or missing quote shows that it is cut off
        if '"' in text and not text.endswith(("\n", "\r")) and (last.count('"') % 2 or not last.endswith('"')):
            return Parsed(problems=[Problem(lines[-1][0], f"{self.name} left out: the file ends within the row")])
        return _tables(cells, self.name, lines[0][0])


class RcclJson:
    """Reader of rccl-tests' JSON."""

    name = "rccl-tests JSON"

    def claims(self, text: str) -> bool:
        """Whether the text is a list, or lines, of objects with rccl-tests' keys."""
        return text.lstrip()[:1] in ("[", "{") and '"algBw"' in text and '"inPlace"' in text

    def read_whole(self, text: str, context: Context) -> Parsed:
        """Read the tables of the file, one for each collective."""
        try:
            entries = self._list(text) if text.lstrip().startswith("[") else self._lines(text)
        except BadJson as error:
            return Parsed(problems=[Problem(error.line, f"{self.name} left out: {error}")])
        cells = []
        for i, entry in entries:
            if not isinstance(entry, Mapping):
                return Parsed(problems=[Problem(i, f"{self.name} left out: an entry is no object")])
            cells.append((i, {str(key).lower().lstrip("#"): str(value) for key, value in entry.items()}))
        return _tables(cells, self.name, 1)

    @staticmethod
    def _list(text: str) -> list[tuple[int, Any]]:
        content = load(text)
        return list(enumerate(content if isinstance(content, list) else [content], 2))

    @staticmethod
    def _lines(text: str) -> list[tuple[int, Any]]:
        entries = []
        for i, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    entries.append((i, load(line)))
                except BadJson as error:
                    raise BadJson(i, str(error)) from None
        return entries


def _zipped(head: Sequence[str], words: Sequence[str]) -> Values:
    names = list(head)
    if len(words) == len(names) + 1 and "ranks" in names:
        names.insert(names.index("ranks"), "nodes")
    if len(words) != len(names):
        raise BadTable(f"{len(words)} of {len(names)} columns")
    cells = {name.lstrip("#"): word.strip() for name, word in zip(names, words, strict=True)}
    return cells | {"name": cells.get("name") or cells.get("collective", "")}


def _tables(cells: Sequence[tuple[int, Values]], form: str, first: int) -> Parsed:
    """A table for each run of consecutive entries of one collective."""
    if not cells:
        return Parsed(problems=[Problem(first, f"{form} left out: no rows")])
    parsed, start = Parsed(), 0
    for end in range(1, len(cells) + 1):
        if end < len(cells) and cells[end][1].get("name") == cells[start][1].get("name"):
            continue
        part, start = cells[start:end], end
        rows: list[dict[str, Any]] = []
        try:
            for _, values in part:
                rows.append(_row(values))
            parsed.tables.append(Table(RCCL, None, rows[0]["benchmark"], part[0][0], 0, rows))
        except BadTable as error:
            name = shown(part[0][1].get("name", ""))
            parsed.problems.append(Problem(part[len(rows)][0], f"{form}, collective {name} left out: {error}"))
    return parsed


def _row(values: Values) -> dict[str, Any]:
    name = collective_of(values.get("name", ""))
    missing = [key for key in ("size", "type", "inplace", "time", "algbw", "busbw") if key not in values]
    if name is None or missing:
        raise BadTable(
            f"lacks {', '.join(missing)}" if missing else f"unknown collective {shown(values.get('name', ''))}"
        )
    algbw, busbw = number(values["algbw"]), number(values["busbw"])
    launch = Launch(source=RCCL, collective=name, timing="pipelined")
    launch.ranks = _ranks(values, name, algbw, busbw)
    wrong = values.get("wrong", "N/A").strip('"')
    op = values.get("redop", "none")
    half = Placement(
        values["inplace"].strip().lower() in ("1", "true"),
        number(values["time"]),
        algbw,
        busbw,
        None if wrong in ("N/A", "None", "") else number(wrong),
    )
    size = whole(values["size"])
    row = make_row(
        launch, name, size, None, dtype_of(values["type"]), None if op in ("none", "None", "") else op, None, half
    )
    row["nodes"] = whole(values["nodes"], INT32) if "nodes" in values else None
    per_node = whole(values[key], INT32) if (key := _key(values, "rankspernode")) else None
    if row["nodes"] and per_node and row["ranks"] == row["nodes"] * per_node:
        row["ranks_per_node"] = per_node
    cycle = values.get("numcycle")
    if cycle and re.fullmatch(r"\d{1,9}", cycle):
        row["parameters"] = {"cycle": cycle}
    return row | {"text_dialect": "nccl-tests"}


def _key(values: Values, name: str) -> str:
    return name if name in values else ""


def _ranks(values: Values, name: str, algbw: float | None, busbw: float | None) -> int | None:
    """Number of NCCL ranks: processes, or processes times devices, whichever fits the ratio of busbw to algbw."""
    if "ranks" not in values:
        return whole(values["gpus"], INT32) if "gpus" in values else None
    processes = whole(values["ranks"], INT32)
    together = processes * (whole(values["gpusperrank"], 1024) if "gpusperrank" in values else 1)
    if processes == together or not algbw or busbw is None or not 0 < together < INT32 or not processes:
        return processes
    formula = FORMULAS.get(name)
    if formula is None:
        return processes
    return min((processes, together), key=lambda n: abs(formula.bus(n) - busbw / algbw))
