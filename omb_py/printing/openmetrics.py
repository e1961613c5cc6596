"""Rows as OpenMetrics text: gauges with the time of the launch, for ``promtool tsdb create-blocks-from openmetrics``.

Rows of a launch that measured a cell several times (a soak) have the label ``repeat``. Units are seconds and bytes
per second; a value in any other has the label ``unit``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from omb_py.results.json_values import plain
from omb_py.results.store.row import Row
from omb_py.results.store.schema import value_of

LABELS: tuple[str, ...] = tuple(
    (
        "benchmark source backend library library_version binding device buffer dtype op in_place root window "
        "threads datatype_layout process_sync cache ranks nodes size_bytes run_id launch_id"
    ).split()
)


def _scale(column: str, factor: float, unit: str = "") -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        number = value_of(row, column)
        if number is None or number != number or (unit and row.get("unit") != unit):  # NaN differs from itself
            return None
        return float(number) * factor

    return value


def _valid(row: Row) -> float | None:
    validated = row.get("validated")
    return None if validated is None or validated != validated else float(bool(validated))


def _read_other(row: Row) -> float | None:
    return None if row.get("unit") in _KNOWN else _scale("value", 1)(row)


_KNOWN = ("us", "MB/s")
_FAMILIES: tuple[tuple[str, str, str, Callable[[Row], float | None]], ...] = (
    ("latency_seconds", "seconds", "What the benchmark prints, where that is a time.", _scale("value", 1e-6, "us")),
    (
        "bandwidth_bytes_per_second",
        "bytes_per_second",
        "What the benchmark prints, where that is a rate.",
        _scale("value", 1e6, "MB/s"),
    ),
    ("value", "", "What the benchmark prints, where that is neither: in the unit of the label.", _read_other),
    ("median_seconds", "seconds", "Median of the samples, the slowest rank of each.", _scale("median_us", 1e-6)),
    ("p99_seconds", "seconds", "99th percentile of the samples.", _scale("p99_us", 1e-6)),
    ("algbw_bytes_per_second", "bytes_per_second", "Algorithm bandwidth.", _scale("algbw_gbps", 1e9)),
    ("busbw_bytes_per_second", "bytes_per_second", "Bus bandwidth.", _scale("busbw_gbps", 1e9)),
    ("samples", "", "Samples taken.", _scale("iterations", 1)),
    ("valid", "", "1 where every byte was right, 0 where one was wrong.", _valid),
)
"""For each gauge: name, unit, help text, function from a row to its value."""


def to_openmetrics(rows: Iterable[Row]) -> str:
    """The rows as gauges, followed by ``# EOF``. A value that a row does not have gets no sample."""
    seen: Counter[str] = Counter()
    samples = [(_labels(row, seen), _time(row), row) for row in rows]
    out = []
    for name, unit, text, value in _FAMILIES:
        lines = [
            f"omb_py_{name}{labels} {sample!r}{time}\n"
            for labels, time, row in samples
            if (sample := value(row)) is not None and math.isfinite(sample)
        ]
        if lines:
            out.append(f"# TYPE omb_py_{name} gauge\n")
            out += [f"# UNIT omb_py_{name} {unit}\n"] if unit else []
            out.append(f"# HELP omb_py_{name} {text}\n")
            out += lines
    return "".join(out) + "# EOF\n"


def _labels(row: Row, seen: Counter[str]) -> str:
    options = ",".join(f"{key}={value}" for key, value in sorted((row.get("parameters") or {}).items()))
    labels = {name: row.get(name) for name in LABELS} | {"options": options}
    labels |= {} if row.get("unit") in _KNOWN else {"unit": row.get("unit")}
    pairs = [f'{name}="{_escape(value)}"' for name, value in labels.items() if plain(value) not in (None, "")]
    text = ",".join(pairs)
    seen[text] += 1
    return f'{{{text},repeat="{seen[text]}"}}' if seen[text] > 1 else f"{{{text}}}"


def _escape(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _time(row: Row) -> str:
    """A blank and the start time in seconds since 1970; empty when the row has none."""
    if not (text := row.get("started_at")):
        return ""
    moment = datetime.fromisoformat(text)
    return f" {(moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp():.3f}"
