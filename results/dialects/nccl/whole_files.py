"""Read nccl-tests' JSON (``-J``), versions 1 to 3, and rccl-tests' JSON and CSV.

Of an environment only the part that may be stored is kept.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from omb_py.results.dialects.nccl.rows import (
    RCCL,
    Launch,
    NcclLine,
    Placement,
    collective_of,
    dtype_of,
    library_version,
    make_row,
    settle,
)
from omb_py.results.dialects.reading import (
    INT32,
    INT64,
    BadTable,
    Context,
    ImportedRow,
    ImportedTable,
    Parsed,
    Problem,
    iso_time,
    number,
    quote_piece,
    whole,
)
from omb_py.results.statistics.bandwidth import FORMULAS
from omb_py.results.store.redact import allowed_environment, redact_words

KNOWN = 3
"""Latest version of the file that can be read."""

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"\s+,?\s*|,\s*")
_RESULTS = re.compile(r'"results"\s*:\s*\[')
_PLACES = (("out_of_place", False), ("in_place", True))


class NcclJson:
    """Reader of nccl-tests' JSON."""

    name = "nccl-tests JSON"

    def claims(self, text: str) -> bool:
        return text.lstrip()[:1] == "{" and '"nccl_version"' in text

    def read_whole(self, text: str, context: Context) -> Parsed:
        parsed, values = Parsed(), JsonValues(text)
        while values.comes():
            try:
                line, document = values.value()
            except BadJson as error:
                parsed.problems.append(Problem(error.line, str(error)))
                line, document = values.line, _read_before_the_cut(values.rest())
                if document is None:
                    break
            try:
                parsed.add(Parsed([_table(_object(document, "the file"), context)]))
            except BadTable as error:
                parsed.problems.append(Problem(line, f"{self.name} left out: {error}"))
        return parsed


class BadJson(Exception):
    """A text is not JSON; `line` is the first wrong line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def load(text: str) -> Any:
    """Parse a JSON text. Raises BadJson."""
    return _parse_json(json.loads, text)


class JsonValues:
    """Reads JSON values that stand one behind the other, up to where the text is damaged."""

    def __init__(self, text: str, at: int = 0) -> None:
        self._text, self._at = text, at
        self.line = 1 + text.count("\n", 0, at)

    def comes(self) -> str:
        """The character that comes next, behind blanks and a comma; empty at the end."""
        if between := _BETWEEN.match(self._text, self._at):
            self._go(between.end())
        return self._text[self._at : self._at + 1]

    def value(self) -> tuple[int, object]:
        """The value that comes next, and its first line. Raises BadJson."""
        value, end = _parse_json(_DECODER.raw_decode, self._text, self._at)
        line = self.line
        self._go(end)
        return line, value

    def items(self) -> tuple[list[tuple[int, object]], BadJson | None]:
        """The values of a list, from its bracket on, and what ends it early, if anything does."""
        items: list[tuple[int, object]] = []
        self._go(self._at + 1)
        try:
            while self.comes() not in ("]", ""):
                items.append(self.value())
        except BadJson as error:
            return items, error
        if not self.comes():
            return items, BadJson(self.line, "not whole JSON: the file ends within a list")
        self._go(self._at + 1)
        return items, None

    def rest(self) -> str:
        """What was not read yet; nothing of it comes any more."""
        rest = self._text[self._at :]
        self._go(len(self._text))
        return rest

    def _go(self, at: int) -> None:
        self.line += self._text.count("\n", self._at, at)
        self._at = at


def _read_before_the_cut(text: str) -> Entry | None:
    """nccl-tests' file as if it ended with its last whole result, as that of a run which was killed; None without."""
    results = _RESULTS.search(text)
    if results is None:
        return None
    try:
        head = load(text[: results.end()] + "]}")
    except BadJson:
        return None
    items, _ = JsonValues(text, results.end() - 1).items()
    return {**head, "results": [value for _, value in items]} if items and isinstance(head, Mapping) else None


def _parse_json(parse: Callable[..., Any], *given: object) -> Any:
    try:
        return parse(*given)
    except json.JSONDecodeError as error:
        raise BadJson(error.lineno, f"not whole JSON: column {error.colno}: {error.msg.lower()}") from None
    except (ValueError, RecursionError):
        raise BadJson(1, "not JSON that can be read: nested too deeply, or a number too long") from None


def _table(document: Entry, context: Context) -> ImportedTable:
    version = document.get("version")
    if isinstance(version, int) and version > KNOWN:
        raise BadTable(f"its version is {version}, known are 1 to {KNOWN}")
    results = document.get("results")
    if not isinstance(results, list) or not results:
        raise BadTable("no results")
    args = [str(word) for word in _list(document.get("args"))]
    launch = _launch(document, args)
    entries = [_object(entry, "a result") for entry in results]
    named = [*args[:1], str(entries[0].get("experiment_name") or ""), context.benchmark or ""]
    launch.collective = next(filter(None, (collective_of(PurePosixPath(word).name) for word in named if word)), None)
    lines = [_line(entry) for entry in entries]
    name = settle(launch, lines)
    rows = []
    for entry, line in zip(entries, lines, strict=True):
        for key, in_place in _PLACES:
            if isinstance(entry.get(key), Mapping):
                half = _half(entry, key, in_place)
                row = make_row(launch, name, line, half)
                row["iterations"] = (
                    row["iterations"] if half.samples else _whole(entry, "actual_iterations") or launch.iterations
                )
                rows.append(row | {"text_dialect": "nccl-tests"})
    if not rows:
        raise BadTable("no placement was measured")
    return ImportedTable(
        launch.source,
        launch.version,
        rows[0]["benchmark"],
        1,
        0,
        rows,
        launch.facts,
        iso_time(document.get("start_time"), "%Y-%m-%d %H:%M:%S"),
    )


def _launch(document: Entry, args: list[str]) -> Launch:
    config = document.get("config")
    config = config if isinstance(config, Mapping) else {}
    devices = [device for device in _list(config.get("devices")) if isinstance(device, Mapping)]
    code = document.get("nccl_version")
    launch = Launch(
        library_version=library_version(code) if isinstance(code, int) and 0 < code < 10**7 else None,
        ranks=len(devices) or None,
        hosts=[str(device.get("hostname", "")).strip() for device in devices],
        device_names={str(device["device_info"]).strip() for device in devices if device.get("device_info")},
        iterations=_whole(config, "iterations"),
        warmup=_whole(config, "warmup_iters"),
        batch=_whole(config, "aggregated_iterations", INT32),
        timing=_timing(config),
    )
    if launch.timing == "graph":
        launch.take_graph(str(_whole(config, "graph") or 1))
    own = document.get("omb_py")
    if isinstance(own, Mapping):
        said = {str(key): str(value)[:80] for key, value in own.items()}
        launch.take_own(said.get("version", ""), said)
    pairs = (str(text).partition("=") for text in _list(document.get("env")))
    launch.facts = {
        "file_version": document.get("version") if isinstance(document.get("version"), int) else None,
        "environment": allowed_environment({name: value for name, equals, value in pairs if equals}),
        "command_line": redact_words(args),
        "config": {str(k): v for k, v in config.items() if isinstance(v, (int, float, str)) and k != "devices"},
    }
    return launch


def _timing(config: Entry) -> str:
    if config.get("per_iter_timing") in ("true", True, 1):
        return "device_event"
    if config.get("graph") not in (None, 0, "0"):
        return "graph"
    return "isolated" if config.get("blocking_collectives") not in (None, 0, "0", "false", False) else "pipelined"


def _line(entry: Entry) -> NcclLine:
    size, count, kind, op = (entry.get(key) for key in ("size", "count", "type", "redop"))
    root = str(entry.get("root", "-1")).strip()
    whole = isinstance(size, int) and isinstance(count, int) and _is_whole(size) and _is_whole(count)
    if not whole or not isinstance(kind, str) or not root.lstrip("-").isdecimal():
        raise BadTable(
            f"a result without size, count, type and root: {quote_piece(str(dict(list(entry.items())[:4])), 80)}"
        )
    if len(root) > 9:
        raise BadTable("a root out of range")
    reduction = None if op in (None, "none", "") else str(op)
    return NcclLine(int(size or 0), int(count or 0), dtype_of(kind), reduction, None if int(root) < 0 else int(root))


def _half(entry: Entry, key: str, in_place: bool) -> Placement:
    half = _object(entry[key], key)
    per_iteration = entry.get(f"{key}_per_iter")
    times = _list(per_iteration.get("times_us")) if isinstance(per_iteration, Mapping) else []
    samples = [float(t) for t in times if isinstance(t, (int, float)) and abs(t) < 1e30 and t == t]
    time = _float(half.get("time", half.get("cpu_time")))
    return Placement(
        in_place,
        time,
        _float(half.get("alg_bw")),
        _float(half.get("bus_bw")),
        _float(half.get("nwrong")),
        samples if len(samples) == len(times) else (),
    )


def _float(value: object) -> float | None:
    """A finite number as a float, else None; nccl-tests writes NaN as a string."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return float(value) if value == value else None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64


def _whole(entry: Entry, key: str, most: int = INT64) -> int | None:
    value = entry.get(key)
    return int(value) if isinstance(value, int) and _is_whole(value) and value <= most else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object, name: str) -> Entry:
    if not isinstance(value, Mapping):
        raise BadTable(f"{name} is no object")
    return value


_HEAD = frozenset({"size", "type", "redop", "inplace", "time", "algbw", "busbw"})

Values = Mapping[str, str]
Entry = Mapping[str, Any]
"""An object of JSON."""


class RcclCsv:
    """Reader of rccl-tests' CSV."""

    name = "rccl-tests CSV"

    def claims(self, text: str) -> bool:
        first = text.lstrip().partition("\n")[0]
        return {word.strip().lower() for word in first.split(",")} >= _HEAD

    def read_whole(self, text: str, context: Context) -> Parsed:
        lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip()]
        head = [word.strip().lower() for word in lines[0][1].split(",")]
        cells: list[tuple[int, Values]] = []
        problems: list[Problem] = []
        last = lines[-1][1].rstrip()  # its last word is quoted, so an odd or missing quote shows that it is cut off
        if '"' in text and not text.endswith(("\n", "\r")) and (last.count('"') % 2 or not last.endswith('"')):
            problems.append(Problem(lines.pop()[0], "row left out: the file ends within the row"))
        for i, line in lines[1:]:
            try:
                cells.append((i, _name_words(head, next(csv.reader([line], skipinitialspace=True)))))
            except (BadTable, csv.Error, StopIteration) as error:
                problems.append(Problem(i, f"row left out: {error or 'no row'}"))
        if not cells and not problems:
            problems.append(Problem(lines[0][0], f"{self.name} left out: no rows"))
        parsed = Parsed(problems=problems)
        parsed.add(_tables(cells, self.name))
        return parsed


class RcclJson:
    """Reader of rccl-tests' JSON."""

    name = "rccl-tests JSON"

    def claims(self, text: str) -> bool:
        return text.lstrip()[:1] in ("[", "{") and '"algBw"' in text and '"inPlace"' in text

    def read_whole(self, text: str, context: Context) -> Parsed:
        values, bad = JsonValues(text), None
        parts: list[list[tuple[int, object]]] = [[]]
        while bad is None and (comes := values.comes()):
            if comes == "[":
                items, bad = values.items()
                parts.append(items)
                continue
            try:
                parts[-1].append(values.value())
            except BadJson as error:
                bad = error
        parsed = Parsed(problems=[Problem(bad.line, f"{self.name}: {bad}")] if bad else [])
        for entries in filter(None, parts):
            parsed.add(self._launch(entries))
        return parsed

    def _launch(self, entries: Sequence[tuple[int, object]]) -> Parsed:
        cells = []
        for i, entry in entries:
            if not isinstance(entry, Mapping):
                return Parsed(problems=[Problem(i, f"{self.name} left out: an entry is no object")])
            cells.append((i, {str(key).lower().lstrip("#"): str(value) for key, value in entry.items()}))
        return _tables(cells, self.name)


def _name_words(head: Sequence[str], words: Sequence[str]) -> Values:
    names = list(head)
    if len(words) == len(names) + 1 and "ranks" in names:
        names.insert(names.index("ranks"), "nodes")
    if len(words) != len(names):
        raise BadTable(f"{len(words)} of {len(names)} columns")
    cells = {name.lstrip("#"): word.strip() for name, word in zip(names, words, strict=True)}
    return cells | {"name": cells.get("name") or cells.get("collective", "")}


def _tables(cells: Sequence[tuple[int, Values]], form: str) -> Parsed:
    """A table for each run of consecutive entries of one collective."""
    parsed, start = Parsed(), 0
    for end in range(1, len(cells) + 1):
        if end < len(cells) and cells[end][1].get("name") == cells[start][1].get("name"):
            continue
        part, start = cells[start:end], end
        rows: list[ImportedRow] = []
        try:
            for _, values in part:
                rows.append(_row(values))
            parsed.tables.append(ImportedTable(RCCL, None, rows[0]["benchmark"], part[0][0], 0, rows))
        except BadTable as error:
            name = quote_piece(part[0][1].get("name", ""))
            parsed.problems.append(Problem(part[len(rows)][0], f"{form}, collective {name} left out: {error}"))
    return parsed


def _row(values: Values) -> ImportedRow:
    name = collective_of(values.get("name", ""))
    missing = [key for key in ("size", "type", "inplace", "time", "algbw", "busbw") if key not in values]
    if name is None or missing:
        raise BadTable(
            f"lacks {', '.join(missing)}" if missing else f"unknown collective {quote_piece(values.get('name', ''))}"
        )
    algbw, busbw = number(values["algbw"]), number(values["busbw"])
    launch = Launch(source=RCCL, collective=name, timing="pipelined")
    launch.ranks = _ranks(values, name, algbw, busbw)
    wrong = values.get("wrong", "N/A").strip('"')
    op: str | None = values.get("redop", "none")
    half = Placement(
        values["inplace"].strip().lower() in ("1", "true"),
        number(values["time"]),
        algbw,
        busbw,
        None if wrong in ("N/A", "None", "") else number(wrong),
    )
    op = None if op in ("none", "None", "") else op
    row = make_row(launch, name, NcclLine(whole(values["size"]), None, dtype_of(values["type"]), op, None), half)
    row["nodes"] = whole(values["nodes"], INT32) if "nodes" in values else None
    per_node = whole(values["rankspernode"], INT32) if "rankspernode" in values else None
    if row["nodes"] and per_node and row["ranks"] == row["nodes"] * per_node:
        row["ranks_per_node"] = per_node
    cycle = values.get("numcycle")
    if cycle and re.fullmatch(r"\d{1,9}", cycle):
        row["parameters"] = {"cycle": cycle}
    return row | {"text_dialect": "nccl-tests"}


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
