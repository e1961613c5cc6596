"""Collects from the rows of a run how often each rank was the last, and says it where it is not chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omb_py.suites.registry import find

_SAID = 3


@dataclass(slots=True)
class LastRanks:
    """Of every collective in which all ranks do the same: a root is late by the nature of its operation."""

    cells: dict[tuple[str, tuple[str, ...]], list[tuple[list[float], float]]] = field(default_factory=dict)
    """(benchmark, hosts of the ranks) -> (shares by rank, effective samples) of each cell."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in a row."""
        benchmark = find(row["benchmark"])
        # a guideline has roots on either side, and shares of one side only
        apart = benchmark.rooted or benchmark.once or benchmark.family in ("pt2pt", "guideline")
        if benchmark.timed != "all" or apart:
            return
        trials = min(float(row["iterations"]), float(row["ess"] or 0))
        key = benchmark.name, tuple(row["hosts"])
        self.cells.setdefault(key, []).append((list(row["slowest_rank_share"]), trials))

    def lines(self) -> list[str]:
        """A sentence for each benchmark in which some rank is the last too often."""
        from omb_py.results.analysis.stragglers import Last, stragglers

        told = []
        for (name, hosts), cells in self.cells.items():
            found = stragglers([Last(shares, trials) for shares, trials in cells])
            if not found:
                continue
            who = ", ".join(f"rank {one.rank} ({hosts[one.rank]}) in {one.share:.0%}" for one in found[:_SAID])
            told.append(
                f"{name}: the last to finish is not chance: {who} of the calls, where {found[0].chance:.0%} would be "
                f"usual ({len(cells)} {'cell' if len(cells) == 1 else 'cells'}): a slow rank, a shared core, or the "
                "shape of the algorithm"
            )
        return told
