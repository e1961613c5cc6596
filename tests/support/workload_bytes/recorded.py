"""Recorded steps of frameworks (tests/lab/frameworks), as the calls of a workload."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.calls import OF_MESSAGES, Call
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.traces.replay import element_type, op_of

FOLDER = Path(__file__).parents[2] / "lab" / "evidence" / "recorded"
Line = tuple[str, int, str]
"""Op, bytes that the rank puts in, element type."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded step."""

    name: str
    workload: str
    ranks: int
    rank: int
    framework: str
    version: str
    differs: str
    calls: tuple[Line, ...]


def plain(name: str, elements: int, kind: str) -> Line:
    """A call of a trace, under the name that a workload's call has."""
    dtype = element_type(kind)
    return op_of(name) or name.strip("_"), elements * DTYPES[dtype].itemsize, dtype


def recordings() -> list[Recording]:
    """All stored recordings by name."""
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        told = json.loads(file.read_text())
        calls = [(op, n, kind) for count, op, n, kind in told.pop("calls") for _ in range(count)]
        found.append(Recording(file.stem, calls=tuple(calls), **told))
    return found


def lines(calls: tuple[Call, ...]) -> list[Line]:
    """The calls of a workload as a trace lists them: each message apart, those that come first."""
    listed: list[Line] = []
    for call in calls:
        if call.op in OF_MESSAGES:
            listed += [("recv", m.nbytes, call.dtype) for m in call.receives]
            listed += [("send", m.nbytes, call.dtype) for m in call.sends]
        else:
            listed.append((call.op, call.sent, call.dtype))
    return listed


def of_workload(recording: Recording) -> list[Line]:
    """The calls of the workload that stands for a recording."""
    return lines(parse_workload(recording.workload).calls(recording.rank, recording.ranks))


def summary(calls: list[Line] | tuple[Line, ...]) -> str:
    """How many calls of each kind with their bytes in all."""
    counts, sums = Counter(op for op, *_ in calls), Counter[str]()
    for op, nbytes, _ in calls:
        sums[op] += nbytes
    return ", ".join(f"{count} {op} {sums[op]:,} B" for op, count in counts.items())
