"""Rows as OpenMetrics text: gauges with the time of the launch, for ``promtool tsdb create-blocks-from openmetrics``.

A launch that measured a cell several times (a soak) has the label ``repeat``. Seconds and bytes a second throughout.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Row = Mapping[str, Any]

LABELS: tuple[str, ...] = tuple(
    (
        "benchmark source backend library library_version binding device buffer dtype op in_place root window "
        "threads datatype_layout process_sync cache ranks nodes size_bytes run_id launch_id"
    ).split()
)


def _scaled(column: str, factor: float, unit: str = "") -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        found = row.get(column)
        return None if found is None or found != found or (unit and row.get("unit") != unit) else float(found) * factor

    return value


def _valid(row: Row) -> float | None:
    found = row.get("validated")
    return None if found is None or found != found else float(bool(found))


_FAMILIES: tuple[tuple[str, str, str, Callable[[Row], float | None]], ...] = (
    ("latency_seconds", "seconds", "What the benchmark prints, where that is a time.", _scaled("value", 1e-6, "us")),
    (
        "bandwidth_bytes_per_second",
        "bytes_per_second",
        "What the benchmark prints, where that is a rate.",
        _scaled("value", 1e6, "MB/s"),
    ),
    ("median_seconds", "seconds", "Median of the samples, the slowest rank of each.", _scaled("median_us", 1e-6)),
    ("p99_seconds", "seconds", "99th percentile of the samples.", _scaled("p99_us", 1e-6)),
    ("algbw_bytes_per_second", "bytes_per_second", "Algorithm bandwidth.", _scaled("algbw_gbps", 1e9)),
    ("busbw_bytes_per_second", "bytes_per_second", "Bus bandwidth.", _scaled("busbw_gbps", 1e9)),
    ("samples", "", "Samples taken.", _scaled("iterations", 1)),
    ("valid", "", "1 where every byte was right, 0 where one was wrong.", _valid),
)
"""Name, unit, help, value."""


def to_openmetrics(rows: Iterable[Row]) -> str:
    """The rows as gauges, ended by ``# EOF``; what a row does not know has no sample."""
    seen: Counter[str] = Counter()
    samples = [(_labels(row, seen), _time(row), row) for row in rows]
    out = []
    for name, unit, text, value in _FAMILIES:
        lines = [
            f"omb_py_{name}{labels} {found!r}{time}\n"
            for labels, time, row in samples
            if (found := value(row)) is not None and math.isfinite(found)
        ]
        if lines:
            out.append(f"# TYPE omb_py_{name} gauge\n")
            out += [f"# UNIT omb_py_{name} {unit}\n"] if unit else []
            out.append(f"# HELP omb_py_{name} {text}\n")
            out += lines
    return "".join(out) + "# EOF\n"


def _labels(row: Row, seen: Counter[str]) -> str:
    found = {name: row.get(name) for name in LABELS}
    options = ",".join(f"{key}={value}" for key, value in sorted((row.get("parameters") or {}).items()))
    pairs = [f'{name}="{_escaped(value)}"' for name, value in {**found, "options": options}.items() if _is_known(value)]
    text = ",".join(pairs)
    seen[text] += 1
    return f'{{{text},repeat="{seen[text]}"}}' if seen[text] > 1 else f"{{{text}}}"


def _is_known(value: Any) -> bool:
    from omb_py.results.formats.tables import plain

    return plain(value) not in (None, "")


def _escaped(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _time(row: Row) -> str:
    """Seconds since 1970 with a blank before, as far as the row says."""
    moment = row.get("started_at")
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment is None or not hasattr(moment, "timestamp"):
        return ""
    return f" {(moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp():.3f}"
