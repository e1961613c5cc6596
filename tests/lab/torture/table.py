"""The table that the torture prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.lab.torture.moment import ACTIONS, TARGETS
from tests.lab.torture.workloads import WORKLOADS


def of_moments(records: Sequence[dict[str, Any]], seed: int) -> str:
    """A row for each workload and library: how often each process was struck, and what went wrong."""
    groups = sorted({(r["moment"]["workload"], r["moment"]["library"]) for r in records if "moment" in r})
    head = [
        "workload",
        "library",
        *TARGETS,
        "had ended",
        "rows on disk or printed",
        "rows stored",
        "exit codes",
        "wrong",
    ]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "--:|" * (len(TARGETS) + 3) + "---|--:|"]
    for work in WORKLOADS:
        for name, library in groups:
            if name == work:
                mine = [r for r in records if r.get("moment", {}).get("workload") == name]
                lines.append(_row(name, library, [r for r in mine if r["moment"]["library"] == library]))
    struck = sum(bool(r.get("struck")) for r in records)
    by_action = Counter(r["moment"]["action"] for r in records if r.get("struck"))
    actions = ", ".join(f"{by_action[action]} × {action}" for action in ACTIONS)
    wrong = sum(bool(r.get("wrong")) for r in records)
    summary = (
        f"{len(records)} moments of seed {seed}; a process was there at {struck} of them ({actions}). Wrong: {wrong}."
    )
    return "\n".join([summary, "", *lines])


def _row(workload: str, library: str, records: Sequence[dict[str, Any]]) -> str:
    targets = Counter(r["moment"]["target"] for r in records if r.get("struck"))
    codes = Counter(r.get("code") for r in records)
    cells = [
        workload,
        library,
        *(str(targets[target]) for target in TARGETS),
        str(sum(not r.get("struck") for r in records)),
        str(sum(r.get("announced", 0) for r in records)),
        str(sum(r.get("stored", 0) for r in records)),
        ", ".join(f"{code} ({count})" for code, count in sorted(codes.items(), key=str)),
        str(sum(bool(r.get("wrong")) for r in records)),
    ]
    return f"| {' | '.join(cells)} |"
