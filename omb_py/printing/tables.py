"""Cells and runs as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from omb_py.engine.observers.registry import observers
from omb_py.results.analysis.peaks import share_of
from omb_py.results.caveats import caveat_text
from omb_py.results.compare.tags import ACCEPT_PHASE, COMPARE_SIDE, distinguishing_tags
from omb_py.results.json_values import plain
from omb_py.results.statistics.bandwidth import shown_gbps
from omb_py.results.store.row import Row
from omb_py.results.units import number_of, size_text

if TYPE_CHECKING:
    from omb_py.results.store.runs import RunSummary

SPARE = (
    "n",
    "stop",
    "min µs",
    "max µs",
    "launch",
    "energy/op",
    "version",
    "p99 µs",
    "busbw GB/s",
    "of peak",
    "network",
)
"""What a narrow terminal does without, the first one first; never the size, the value, the median or a verdict."""


def results_table(rows: Sequence[Row], title: str | None = None, without: Collection[str] = ()) -> Table:
    """Make a table of cells, one line each.

    Columns with one value in all rows (benchmark, library, binding, type, launch …) go into the title; columns that no
    row has (busbw, validation) are left out.

    Args:
        rows: rows of the store.
        title: instead of what all rows share.
        without: heads of columns to leave out.
    """
    # Text, not str: brackets in a library's version are no markup
    heading = Text(title if title is not None else _list_common(rows))
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD)
    if not rows:
        table.show_header = False
        table.add_column()
        table.add_row("no results")
        return table
    several = [(head, value) for head, value in _IDENTITY if len({value(row) for row in rows}) > 1]
    varying = [column for column in several if column[0] not in without]
    for head, _ in varying:
        table.add_column(head, no_wrap=True)
    measured = [c for c in _MEASURED if c[0] not in without and any(c[1](row) not in ("", "-") for row in rows)]
    for head, _ in measured:
        table.add_column(head, justify="right", no_wrap=True)
    marked = _fastest(rows)
    if any(marked):
        table.add_column("fastest", no_wrap=True)
    for row, mark in zip(rows, marked, strict=True):
        cells = [Text(value(row)) for _, value in varying]
        cells += [Text(value(row), style=_style(head, value(row))) for head, value in measured]
        table.add_row(*cells, *([Text(mark)] if any(marked) else []))
    return table


def _fastest(rows: Sequence[Row]) -> list[str]:
    if len({(row.get("backend"), row.get("binding"), row.get("device")) for row in rows}) < 2:
        return [""] * len(rows)
    from omb_py.results.analysis.crossover import marks  # loads NumPy and SciPy

    return marks(rows)


RUNS_FOLDED = ("library", "ranks", "tags", "failed")
RUNS_SPARE = ("started (UTC)", "backend", "launches", "cells", *RUNS_FOLDED)
"""What a narrow terminal does without in a list of runs, the first one first; a run's id begins with its start."""


def runs_table(runs: Sequence[RunSummary], without: Collection[str] = ()) -> Table:
    """Make a table of the runs of a store, one line each, as :func:`omb_py.results.store.runs.runs` lists them.

    Args:
        runs: the runs.
        without: heads of columns to leave out.
    """
    table = Table(box=box.SIMPLE_HEAD)
    optional = [("sides", _sides), ("tags", _tags), ("failed", _failed), ("state", _state)]
    shown = [(head, value) for head, value in optional if any(value(run) for run in runs)]
    columns = [column for column in (*_OF_RUNS, *shown) if column[0] not in without]
    for head, _ in columns:
        number, long = head in ("ranks", "cells", "launches"), head in ("benchmarks", "library", "tags")
        table.add_column(head, justify="right" if number else "left", overflow="fold", no_wrap=not long)
    for run in runs:
        table.add_row(*(Text(value(run)) for _, value in columns), style="red" if run.failed else None)
    return table


def _benchmarks(run: RunSummary) -> str:
    more = len(run.benchmarks) - 4
    return ", ".join(run.benchmarks[:4]) + (f" +{more}" if more > 0 else "")


_OF_RUNS: tuple[tuple[str, Callable[[RunSummary], str]], ...] = (
    ("run", lambda run: run.run_id),
    ("started (UTC)", lambda run: run.started_at[:19].replace("T", " ")),
    ("benchmarks", _benchmarks),
    ("backend", lambda run: ", ".join(run.backends)),
    ("library", lambda run: ", ".join(run.libraries)),
    ("ranks", lambda run: ", ".join(map(str, run.ranks))),
    ("cells", lambda run: str(run.cells)),
    ("launches", lambda run: str(run.launches)),
)


_OWN = frozenset({COMPARE_SIDE, ACCEPT_PHASE})
"""Tags that omb-py writes, and that the list shows in a column of their own or not at all."""


def _sides(run: RunSummary) -> str:
    return " and ".join(sorted(run.tags.get(COMPARE_SIDE, ())))


def _tags(run: RunSummary) -> str:
    own = distinguishing_tags({key: _values(values) for key, values in run.tags.items() if key not in _OWN})
    texts = [f"{key}={value}" for key, value in own.items()]
    return ", ".join(texts[:3]) + (f" +{len(texts) - 3}" if len(texts) > 3 else "")


def _values(values: Sequence[str]) -> str:
    return " or ".join(values) if len(values) <= 3 else f"({len(values)} values)"


def _failed(run: RunSummary) -> str:
    return str(run.failed or "")


def _state(run: RunSummary) -> str:
    return run.state or ""


def _text(name: str) -> Callable[[Row], str]:
    def value(row: Row) -> str:
        content = plain(row.get(name))
        return "" if content is None else str(content)

    return value


def _numeric(name: str) -> Callable[[Row], str]:
    def value(row: Row) -> str:
        number = number_of(row.get(name))
        return "-" if math.isnan(number) else f"{number:.2f}"

    return value


def _bandwidth(row: Row) -> str:
    number = number_of(row.get("busbw_gbps"))
    return "-" if math.isnan(number) else shown_gbps(number)


def _value(row: Row) -> str:
    number = number_of(row.get("value"))
    return "-" if math.isnan(number) else f"{number:.2f} {_unit(row)}"


def _unit(row: Row) -> str:
    unit = row.get("unit") or ""
    return "µs" if unit == "us" else str(unit)


def _size(row: Row) -> str:
    # a barrier has no size; its zero says nothing
    return size_text(row.get("size_bytes")) if number_of(row.get("size_bytes")) > 0 else "-"


def _count(row: Row) -> str:
    number = number_of(row.get("iterations"))
    return "-" if math.isnan(number) else str(int(number))


def _validation(row: Row) -> str:
    validated = plain(row.get("validated"))
    return {True: "Pass", False: "Fail"}.get(validated, "-")


def _workload(row: Row) -> str:
    """What a step is of: a workload, or a model and how it was trained."""
    return dict(row.get("parameters") or {}).get("workload", "")


def _share(row: Row) -> str:
    """The share of a step that is communication which computing does not hide."""
    metrics, value = dict(row.get("metrics") or {}), number_of(row.get("value"))
    share = metrics.get("share_pct", 100 * metrics.get("exposed_us", math.nan) / value if value else math.nan)
    return "-" if math.isnan(share) else f"{share:.1f} %"


def _share_of_peak(row: Row) -> str:
    """The share of what its link carries at most: ``82% of PCIe 4 x16``."""
    share = share_of(row)
    return f"{share[0]:.0%} of {share[1]}" if share else "-"


def _form(row: Row) -> str:
    return "in place" if plain(row.get("in_place")) is True else ""


def _settings(row: Row) -> str:
    """The settings of the backend's own option, whose marks begin with its name: ``max_ctas=1``."""
    own = f"{row.get('backend')}_"
    parameters = dict(row.get("parameters") or {})
    return ",".join(f"{key.removeprefix(own)}={value}" for key, value in parameters.items() if key.startswith(own))


def _cuda_target(row: Row) -> str:
    """What computes beside a non-blocking call, where it is not the CPU alone."""
    return str(dict(row.get("parameters") or {}).get("filler", ""))


def _launch(row: Row) -> str:
    return str(row.get("launch_id") or "")


def _pair(row: Row) -> str:
    """The two nodes of a pair that ``omb-py links`` measured."""
    return " - ".join(row.get("hosts") or ()) if "pair" in dict(row.get("parameters") or {}) else ""


def _side(row: Row) -> str:
    return str(dict(row.get("tags") or {}).get(COMPARE_SIDE, ""))


_IDENTITY: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("launch", _launch),
    ("side", _side),
    ("pair", _pair),
    ("benchmark", _text("benchmark")),
    ("workload", _workload),
    ("backend", _text("backend")),
    ("library", _text("library")),
    ("version", _text("library_version")),
    ("binding", _text("binding")),
    ("device", _text("device")),
    ("buffer", _text("buffer")),
    ("type", _text("dtype")),
    ("op", _text("op")),
    ("form", _form),
    ("timing", _text("timing")),
    ("settings", _settings),
    ("cuda target", _cuda_target),
    ("ranks", _text("ranks")),
    ("window", _text("window")),
    ("caveats", caveat_text),
)

_MEASURED: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("size", _size),
    ("value", _value),
    ("median µs", _numeric("median_us")),
    ("exposed", _share),
    ("p99 µs", _numeric("p99_us")),
    ("min µs", _numeric("min_us")),
    ("max µs", _numeric("max_us")),
    ("n", _count),
    ("stop", _text("stop_reason")),
    ("validation", _validation),
    ("busbw GB/s", _bandwidth),
    ("of peak", _share_of_peak),
    *(column for observer in observers() for column in observer.columns),
    *(column for observer in observers() for column in observer.warnings),
)


def _list_common(rows: Sequence[Row]) -> str:
    """Write the values that all rows share: ``allreduce · mpi · Open MPI · 5.0.11 · native · 4 ranks``."""
    parts = []
    for head, value in _IDENTITY:
        texts = {value(row) for row in rows}
        if len(texts) == 1 and (word := texts.pop()) and head not in ("launch", "timing", "window"):
            parts.append(f"{word} ranks" if head == "ranks" else word)
    return " · ".join(parts)


def _style(head: str, text: str) -> str:
    if head == "validation":
        return {"Pass": "green", "Fail": "bold red"}.get(text, "")
    return "bold yellow" if head == "throttled" else ""
