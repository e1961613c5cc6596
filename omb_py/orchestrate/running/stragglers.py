"""Counts in the rows of a run how often each rank finished last, and reports ranks where that is not chance."""

from __future__ import annotations

from dataclasses import dataclass, field

from omb_py.results.store.row import Row
from omb_py.suites.registry import find

_NAMED = 3
"""Ranks that a sentence names at most."""


@dataclass(slots=True)
class LastRanks:
    """Counts of collectives without a root, because a root is late by the nature of its operation."""

    cells: dict[tuple[str, tuple[str, ...]], list[tuple[list[float], int, float]]] = field(default_factory=dict)
    """(benchmark, host of each rank) -> by cell the share of calls in which each rank is last, the number of calls,
    and that of calls at which the last rank changed."""

    def add(self, row: Row, changes: float) -> None:
        """Add a row, and the number of its calls at which another rank was the last than in the call before."""
        benchmark = find(row["benchmark"])
        # a guideline may have a root on either side, and its shares are those of one side only
        apart = benchmark.rooted or benchmark.once or benchmark.family in ("pt2pt", "guideline")
        if benchmark.timed != "all" or apart:
            return
        key = benchmark.name, tuple(row["hosts"])
        self.cells.setdefault(key, []).append((list(row["slowest_rank_share"] or ()), int(row["iterations"]), changes))

    def lines(self) -> list[str]:
        """A sentence for each benchmark in which some rank is the last too often."""
        from omb_py.results.analysis.stragglers import Last, stragglers

        sentences = []
        for (name, hosts), cells in self.cells.items():
            late = stragglers([Last(*cell) for cell in cells])
            if not late:
                continue
            who = " and ".join(
                f"rank {last.rank} ({hosts[last.rank]}) finished last in {100 * last.share:.0f} % of calls"
                for last in late[:_NAMED]
            )
            sentences.append(
                f"{name}: {who} ({100 * late[0].chance:.0f} % expected, "
                f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}): a slow rank, a shared core, or the shape of "
                "the algorithm"
            )
        return sentences
