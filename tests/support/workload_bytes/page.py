"""The page of the published bytes, with what the workloads really move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from omb_py.suites.workloads.families import parse_workload
from tests.support.workload_bytes.published import PUBLISHED, Published

FILE = Path(__file__).parents[2] / "lab" / "evidence" / "workload_bytes.md"

HEAD = """# Bytes of every workload

Each row is what one rank puts into the calls of a step: the formula as it was published, the same in numbers, and the
bytes of the workload. `tests/suites/workloads/test_published_bytes.py` computes the fourth column and compares it with
the workload call by call. This page is made by `python -m tests.support.workload_bytes`; a test holds it to the code.

| workload | rank of n | published | in numbers: calls × bytes | bytes in all | source |
|---|--:|---|---|--:|---|
"""


def counted(entry: Published) -> dict[int, int]:
    """Bytes of a call -> number of such calls that the rank makes in a step; what it only receives is not counted."""
    calls = parse_workload(entry.text).calls(entry.rank, entry.ranks)
    return Counter(call.sent for call in calls if call.sent)


def page() -> str:
    """The whole page."""
    rows = []
    for entry in PUBLISHED:
        total = sum(nbytes * count for nbytes, count in counted(entry).items())
        numbers = "; ".join(entry.numbers)
        rank = f"{entry.rank} of {entry.ranks}"
        rows.append(f"| `{entry.text}` | {rank} | {entry.symbols} | {numbers} | {total:,} | {entry.source} |\n")
    return HEAD + "".join(rows)
