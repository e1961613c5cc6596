"""Text of ``omb-py suite show``: the contents of a suite, and the launches that are planned for it here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from omb_py.grammar.values import duration_text
from omb_py.orchestrate.accept.criteria_file import read_criteria
from omb_py.orchestrate.planning.plan import LaunchPlan
from omb_py.orchestrate.suites.suite_file import Suite
from omb_py.orchestrate.suites.toml_values import TomlSetting, kind
from omb_py.results.accept.criteria import METRICS, Criterion
from omb_py.results.analysis.expected_time import expected_time
from omb_py.results.skip import Skip
from omb_py.results.units import counted, size_text


def describe_suite(suite: Suite, launches: Sequence[LaunchPlan], skips: Sequence[Skip]) -> str:
    """Describe a suite and its launches, a line for each.

    Args:
        suite: the suite as its file has it.
        launches: the planned launches.
        skips: what cannot be measured here.
    """
    lines = [f"{suite.name}: {suite.description}".removesuffix(": "), f"from {suite.file}", ""]
    if suite.defaults or suite.ranks:
        ranks = f"ranks {_texts(suite.ranks)}" if suite.ranks else ""
        lines.append("defaults  " + "; ".join(filter(None, [ranks, *map(_setting, suite.defaults)])))
    for entry in suite.entries:
        names = ", ".join(named.name for named in entry.benchmarks)
        ranks = f"ranks {_texts(entry.ranks)}" if entry.ranks else ""
        layout = entry.layout.settings if entry.layout else ()
        options = "; ".join(filter(None, [ranks, *map(_setting, (*layout, *entry.options))]))
        named = f"{entry.name}: " if entry.name else ""
        lines.append(f"entry {entry.number}   {named}{names}" + (f" × {options}" if options else ""))
    lines += [f"criterion {c.id}: {c.benchmark}: {_describe_bound(c)}" for c in read_criteria(suite)]
    lines += ["", *map(_launch, launches)]
    cells = sum(len(launch.cells) for launch in launches)
    lines.append(f"in all     {counted(len(launches), 'launch')}, {counted(cells, 'cell')}")
    lines += [f"skipped    {skip.what}: {skip.reason}" for skip in skips]
    return "\n".join(lines)


def expected_text(launches: Sequence[LaunchPlan], store: Path | None) -> str:
    """Say how long launches will take, by what the store has of their cells."""
    keys = [
        [(c.benchmark, c.backend, c.binding, c.dtype, launch.ranks, c.size or 0) for c in launch.cells]
        for launch in launches
    ]
    expected = None if store is None else expected_time(store, keys)
    if expected is None:
        where = "no results are stored" if store is None else f"{str(store)!r} has too few of these cells"
        return f"expected   not known: {where}"
    part = "all" if expected.known == expected.cells else f"{expected.known} of {expected.cells}"
    return f"expected   about {duration_text(expected.seconds)}, by the last times of {part} cells in {str(store)!r}"


def _describe_bound(criterion: Criterion) -> str:
    if criterion.source != "contract":
        return criterion.bound_text(0)
    dimension = METRICS[criterion.metric].dimension
    bounds = [(bound.text(dimension), size) for size, bound in criterion.ranges.items()]
    return "; ".join(text if size is None else f"{text} at {size_text(size)}" for text, size in bounds)


def _launch(launch: LaunchPlan) -> str:
    per_benchmark = Counter(cell.benchmark for cell in launch.cells)
    counts = ", ".join(f"{name} {number}" for name, number in per_benchmark.items())
    hosts = f" on {', '.join(launch.hosts)}" if launch.hosts else ""
    where = f"{launch.backend}, {launch.needs.thread_level}, {counted(launch.ranks, 'rank')}{hosts}"
    return f"launch {launch.index + 1}   {where}, {counted(len(launch.cells), 'cell')}: {counts}"


def _setting(setting: TomlSetting) -> str:
    # several tags hold together; the values of any other list are alternatives
    return f"{setting.key} {_texts(setting.values, ', ' if setting.key == 'tag' else ' | ')}"


def _texts(values: Sequence[object], between: str = " | ") -> str:
    return between.join(value if isinstance(value, str) else kind(value) for value in values)
