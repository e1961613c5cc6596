"""The JSON of tools that time whole programs or functions: pytest-benchmark, pyperf and hyperfine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from omb_py.results.dialects.reading import BadTable, Context, ImportedTable, Parsed, Problem
from omb_py.results.dialects.sampled import LOWER, sampled_row

Timings = Iterator[tuple[str, Sequence[float]]]
"""Name and seconds of each thing that was timed."""


def _read_pytest(document: Mapping[str, Any]) -> Timings:
    for entry in document["benchmarks"]:
        stats = entry["stats"]
        yield entry["fullname"], stats.get("data") or [stats["mean"]]


def _read_pyperf(document: Mapping[str, Any]) -> Timings:
    shared = document.get("metadata", {})
    for number, entry in enumerate(document["benchmarks"]):
        facts = {**shared, **entry.get("metadata", {})}
        if facts.get("unit", "second") != "second":
            raise BadTable(f"its unit is {facts['unit']!r}, and only seconds are read")
        yield facts.get("name", f"benchmark{number}"), [x for run in entry["runs"] for x in run.get("values", ())]


def _read_hyperfine(document: Mapping[str, Any]) -> Timings:
    for entry in document["results"]:
        yield entry["command"], entry.get("times") or [entry["mean"]]


class TimerJson:
    """Reader of the JSON of one of these tools."""

    def __init__(self, tool: str, marks: Sequence[str], timings: Callable[[Mapping[str, object]], Timings]) -> None:
        self.name = f"{tool} JSON"
        self._tool, self._marks, self._timings = tool, marks, timings

    def claims(self, text: str) -> bool:
        """Whether it is an object that has what only this tool writes."""
        return text.lstrip()[:1] == "{" and all(f'"{mark}"' in text for mark in self._marks)

    def read_whole(self, text: str, context: Context) -> Parsed:
        """A table for each thing that was timed."""
        parsed = Parsed()
        try:
            for name, seconds in self._timings(json.loads(text)):
                rows = [sampled_row(self._tool, str(name), "s", LOWER, [float(value) for value in seconds])]
                parsed.tables.append(ImportedTable(self._tool, None, str(name), 1, 0, rows))
        except json.JSONDecodeError as error:
            parsed.problems.append(Problem(error.lineno, f"{self.name} is not whole: {error.msg.lower()}"))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError, BadTable) as error:
            parsed.problems.append(Problem(1, f"{self.name} left out: {error!s}"))
        return parsed


READERS = (
    TimerJson("pytest-benchmark", ("benchmarks", "machine_info", "stats"), _read_pytest),
    TimerJson("pyperf", ("benchmarks", "runs", "metadata"), _read_pyperf),
    TimerJson("hyperfine", ("results", "command", "times"), _read_hyperfine),
)
