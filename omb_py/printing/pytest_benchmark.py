"""Rows as the JSON of pytest-benchmark, so that ``pytest-benchmark compare`` can read them.

Each cell becomes a benchmark. Its data are the samples of one launch, or the medians of several launches, since the
launch is then the sample. Times are in seconds. A row without a time (an imported bandwidth) is left out.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Iterable, Sequence
from typing import cast

from omb_py import __version__
from omb_py.errors import UsageError
from omb_py.results.json_values import plain
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

_NAMED = ("backend", "binding", "device", "buffer", "dtype", "op", "datatype_layout", "process_sync", "cache")
_NUMBERED = (("window", "w"), ("threads", "t"), ("root", "root"), ("nodes", "x"), ("ranks", "n"), ("size_bytes", ""))
_USUAL = frozenset({("threads", 1), ("nodes", 1), ("datatype_layout", "contiguous"), ("cache", "hot")})
"""Values that are left out of a name."""
_LIBRARY = ("library", "library_version")


def to_benchmark_json(rows: Iterable[Row]) -> str:
    """The text of the JSON file. Raises UsageError when no row has a time."""
    known = [cast(Row, {key: plain(value) for key, value in row.items()}) for row in rows]
    several = len({tuple(row.get(key) for key in _LIBRARY) for row in known}) > 1
    cells: dict[str, list[Row]] = {}
    for row in known:
        if _times(row):
            cells.setdefault(_name(row, several), []).append(row)
    if not cells:
        raise UsageError("none of these rows has times, which pytest-benchmark compares")
    first = min(str(row.get("started_at")) for cell in cells.values() for row in cell)
    file = {
        "machine_info": {"node": "", "machine": platform.machine(), "python_version": platform.python_version()},
        "commit_info": {"id": "", "time": None, "author_time": None, "dirty": False, "project": "omb-py", "branch": ""},
        "benchmarks": [_benchmark(name, cell) for name, cell in cells.items()],
        "datetime": first,
        "version": f"omb-py {__version__}",
    }
    return json.dumps(file, indent=1, allow_nan=False) + "\n"


def has_times(row: Row) -> bool:
    """Whether a row has times, which the file is made of."""
    return bool(_times(cast(Row, {key: plain(value) for key, value in row.items()})))


def _name(row: Row, several: bool) -> str:
    """A name such as ``allreduce[mpi-native-cpu-numpy-int32-sum-n4-8]``, which is equal for equal cells."""
    values = {key: value_of(row, key) for key in (*_NAMED, *dict(_NUMBERED))}
    unusual = {key: value for key, value in values.items() if value is not None and (key, value) not in _USUAL}
    words = [str(unusual[key]) for key in _NAMED if key in unusual]
    words += ["in_place"] if row.get("in_place") else []
    words += [f"{k}={v}" for k, v in sorted((row.get("parameters") or {}).items()) if k not in ("pass", "cycle")]
    words += [f"{mark}{unusual[key]}" for key, mark in _NUMBERED if key in unusual]
    if several:
        words += [str(value) for key in _LIBRARY if (value := row.get(key))]
    return f"{row['benchmark']}[{'-'.join(words)}]"


def _benchmark(name: str, cell: Sequence[Row]) -> dict[str, object]:
    launches = len({row.get("launch_id") for row in cell})
    of_launches = launches > 1 or len(cell) > 1
    data = [statistics.median(_times(row)) for row in cell] if of_launches else _times(cell[0])
    row = cell[0]
    keys = ("source", "run_id", *_LIBRARY, "unit", "value", "busbw_gbps", "comparability_key", "environment_key")
    return {
        "group": row["benchmark"],
        "name": name,
        "fullname": f"omb-py::{name}",
        "params": None,
        "param": name.partition("[")[2].removesuffix("]"),
        "extra_info": {**{key: row.get(key) for key in keys}, "data": "launch medians" if of_launches else "samples"},
        "options": {"timer": "omb-py", "warmup": bool(row.get("warmup"))},
        "stats": _stats(data) | {"data": data, "iterations": 1},
    }


def _times(row: Row) -> list[float]:
    """The samples in seconds, or the printed value where there are none."""
    samples = [float(t) * 1e-6 for t in row.get("samples_us") or () if t is not None]
    if samples:
        return samples
    return [float(row["value"]) * 1e-6] if row.get("unit") == "us" and row.get("value") is not None else []


def _stats(data: Sequence[float]) -> dict[str, object]:
    ordered = sorted(data)
    mean = statistics.fmean(ordered)
    spread = statistics.stdev(ordered) if len(ordered) > 1 else 0.0
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else ordered * 3
    iqr = q3 - q1
    inside = [t for t in ordered if q1 - 1.5 * iqr <= t <= q3 + 1.5 * iqr]
    far = sum(abs(t - mean) > spread for t in ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": spread,
        "rounds": len(ordered),
        "median": median,
        "iqr": iqr,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": len(ordered) - len(inside),
        "stddev_outliers": far,
        "outliers": f"{far};{len(ordered) - len(inside)}",
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": 1 / mean if mean else 0.0,
        "total": sum(ordered),
    }
