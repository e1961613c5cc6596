"""The text of ``omb-py suite show``: what a suite says, and the launches that are planned for it here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from omb_py.orchestrate.plan import LaunchPlan
from omb_py.orchestrate.suite import Skip
from omb_py.orchestrate.suitefile import Setting, Suite, kind


def describe_suite(suite: Suite, launches: Sequence[LaunchPlan], skips: Sequence[Skip]) -> str:
    """The suite and its launches, a line each.

    Args:
        suite: what the file says.
        launches: the plan.
        skips: what cannot be measured here.
    """
    lines = [f"{suite.name}: {suite.description}", f"from {suite.file}", ""]
    if suite.defaults or suite.ranks:
        ranks = f"ranks {_texts(suite.ranks)}" if suite.ranks else ""
        lines.append("defaults  " + "; ".join(filter(None, [ranks, *map(_setting, suite.defaults)])))
    for entry in suite.entries:
        names = ", ".join(named.name for named in entry.benchmarks)
        ranks = f"ranks {_texts(entry.ranks)}" if entry.ranks else ""
        told = "; ".join(filter(None, [ranks, *map(_setting, entry.options)]))
        lines.append(f"entry {entry.number}   {names}" + (f" × {told}" if told else ""))
    lines += ["", *map(_launch, launches)]
    cells = sum(len(launch.cells) for launch in launches)
    lines.append(f"in all     {_count(len(launches), 'launch', 'launches')}, {_count(cells, 'cell', 'cells')}")
    lines += [f"skipped    {skip.what}: {skip.reason}" for skip in skips]
    return "\n".join(lines)


def _launch(launch: LaunchPlan) -> str:
    per_benchmark = Counter(cell.benchmark for cell in launch.cells)
    told = ", ".join(f"{name} {number}" for name, number in per_benchmark.items())
    where = f"{launch.backend}, {launch.thread_level}, {_count(launch.ranks, 'rank', 'ranks')}"
    return f"launch {launch.index + 1}   {where}, {_count(len(launch.cells), 'cell', 'cells')}: {told}"


def _setting(setting: Setting) -> str:
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    # tags stand side by side; other lists are multiplied out
    return f"{setting.key} {_texts(values, ', ' if setting.key == 'tag' else ' | ')}"


def _texts(values: Sequence[object], between: str = " | ") -> str:
    def told() -> Iterator[str]:
        for value in values:
            yield value if isinstance(value, str) else kind(value)

    return between.join(told())


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
