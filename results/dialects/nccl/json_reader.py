"""Read nccl-tests' JSON (``-J``), versions 1 to 3. Only the part of its environment that may be stored is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from omb_py.results.dialects.nccl.rows import (
    Launch,
    Placement,
    collective_of,
    dtype_of,
    library_version,
    make_row,
    settle,
)
from omb_py.results.dialects.reading import INT32, INT64, BadTable, Context, Parsed, Problem, Table, shown
from omb_py.results.store.redact import allowed_environment, redact_words

KNOWN = 3
"""Latest version of the file that can be read."""

_PLACES = (("out_of_place", False), ("in_place", True))


class NcclJson:
    """Reader of nccl-tests' JSON."""

    name = "nccl-tests JSON"

    def claims(self, text: str) -> bool:
        """Whether the text is an object with nccl-tests' first keys."""
        return text.lstrip()[:1] == "{" and '"nccl_version"' in text

    def read_whole(self, text: str, context: Context) -> Parsed:
        """Read the only table of the file."""
        try:
            return Parsed([_table(_object(load(text), "the file"), context)])
        except BadJson as error:
            return Parsed(problems=[Problem(error.line, str(error))])
        except BadTable as error:
            return Parsed(problems=[Problem(1, f"{self.name} left out: {error}")])


class BadJson(Exception):
    """A text is not JSON; `line` is the first wrong line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def load(text: str) -> Any:
    """Parse a JSON text. Raises BadJson."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadJson(error.lineno, f"not whole JSON: column {error.colno}: {error.msg.lower()}") from None
    except (ValueError, RecursionError):
        raise BadJson(1, "not JSON that can be read: nested too deeply, or a number too long") from None


def _table(document: Mapping[str, Any], context: Context) -> Table:
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
    for entry, (size, count, dtype, op, root) in zip(entries, lines, strict=True):
        for key, in_place in _PLACES:
            if isinstance(entry.get(key), Mapping):
                half = _half(entry, key, in_place)
                row = make_row(launch, name, size, count, dtype, op, root, half)
                row["iterations"] = (
                    row["iterations"] if half.samples else _whole(entry, "actual_iterations") or launch.iterations
                )
                rows.append(row | {"text_dialect": "nccl-tests"})
    if not rows:
        raise BadTable("no placement was measured")
    return Table(
        launch.source, launch.version, rows[0]["benchmark"], 1, 0, rows, launch.facts, _time(document.get("start_time"))
    )


def _launch(document: Mapping[str, Any], args: list[str]) -> Launch:
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
    pairs = (str(text).partition("=") for text in _list(document.get("env")))
    launch.facts = {
        "file_version": document.get("version") if isinstance(document.get("version"), int) else None,
        "environment": allowed_environment({name: value for name, equals, value in pairs if equals}),
        "command_line": redact_words(args),
        "config": {str(k): v for k, v in config.items() if isinstance(v, (int, float, str)) and k != "devices"},
    }
    return launch


def _timing(config: Mapping[str, Any]) -> str:
    if config.get("per_iter_timing") in ("true", True, 1):
        return "device_event"
    if config.get("graph") not in (None, 0, "0"):
        return "graph"
    return "isolated" if config.get("blocking_collectives") not in (None, 0, "0", "false", False) else "pipelined"


def _line(entry: Mapping[str, Any]) -> tuple[int, int | None, str, str | None, int | None]:
    size, count, kind, op = (entry.get(key) for key in ("size", "count", "type", "redop"))
    root = str(entry.get("root", "-1")).strip()
    whole = isinstance(size, int) and isinstance(count, int) and _is_whole(size) and _is_whole(count)
    if not whole or not isinstance(kind, str) or not root.lstrip("-").isdecimal():
        raise BadTable(f"a result without size, count, type and root: {shown(str(dict(list(entry.items())[:4])), 80)}")
    if len(root) > 9:
        raise BadTable("a root out of range")
    reduction = None if op in (None, "none", "") else str(op)
    return int(size or 0), int(count or 0), dtype_of(kind), reduction, None if int(root) < 0 else int(root)


def _half(entry: Mapping[str, Any], key: str, in_place: bool) -> Placement:
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


def _float(value: Any) -> float | None:
    """A finite number as a float, else None; nccl-tests writes NaN as a string."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return float(value) if value == value else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64


def _whole(entry: Mapping[str, Any], key: str, most: int = INT64) -> int | None:
    value = entry.get(key)
    return int(value) if isinstance(value, int) and _is_whole(value) and value <= most else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadTable(f"{name} is no object")
    return value


def _time(text: Any) -> str | None:
    """A time in ISO format; the file does not state its zone, so it counts as UTC."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%d %H:%M:%S").isoformat()
    except ValueError:
        return None
