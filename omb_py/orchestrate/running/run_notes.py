"""Notes of a run beside its rows: the drift of a soak (``--repeat-for``), and ranks that finish last too often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from omb_py.results.store.row import Row
from omb_py.results.units import counted
from omb_py.suites.registry import find

CellName: TypeAlias = "tuple[str, str, str, str, str | None, int]"
PASS = "pass"
"""Key of `parameters`: the number of the pass, from 1."""
_NAMED = 8
"""Cells that a line names at most."""


def _cell_of(row: Row) -> CellName:
    return row["benchmark"], row["backend"], row["binding"], row["dtype"], row["op"], row["size_bytes"]


class PassDrift:
    """Takes rows one by one, and gives a line of text at the end of each pass."""

    def __init__(self) -> None:
        self._first: dict[CellName, float] = {}
        self._now: dict[CellName, float] = {}
        self.number = 0
        """Number of the current pass; 0 outside a soak."""

    def add(self, row: Row) -> str:
        """Add a row. Returns the line of the pass before when the row begins another pass, else an empty text."""
        number = int((row.get("parameters") or {}).get(PASS, 0))
        if not number:
            return ""
        line = self.line() if self.number and number != self.number else ""
        if number != self.number:
            self._now, self.number = {}, number
        self._now[_cell_of(row)] = float(row["median_us"])
        if number == 1:
            self._first[_cell_of(row)] = float(row["median_us"])
        return line

    def line(self) -> str:
        """The drift of each cell's median against the first pass, in words; of many cells, the largest drifts."""
        shares = [
            (cell, 100 * (median / self._first[cell] - 1))
            for cell, median in self._now.items()
            if self._first.get(cell)
        ]
        if self.number < 2 or not shares:
            return f"pass {self.number}: {len(self._now)} cells measured; later passes are compared with this one"
        typed = len({cell[:-1] for cell, _ in shares}) > 1
        named = sorted(shares, key=lambda share: -abs(share[1]))[:_NAMED] if len(shares) > _NAMED else shares
        words = [f"{_name(cell, typed)} {share:+.1f} %" for cell, share in named]
        rest = f" and {len(shares) - len(named)} more, which drifted less" if len(named) < len(shares) else ""
        return f"pass {self.number}, medians against the first: {', '.join(words)}{rest}"


def _name(cell: CellName, typed: bool) -> str:
    size = f"{cell[-1]} B" if cell[-1] else str(cell[0])
    return f"{cell[2]} {cell[3]} {size}" if typed else size


_NAMED_RANKS = 3
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
        if not self.cells:
            return []
        from omb_py.results.analysis.stragglers import Last, stragglers

        sentences = []
        for (name, hosts), cells in self.cells.items():
            late = stragglers([Last(*cell) for cell in cells])
            if not late:
                continue
            who = " and ".join(
                f"rank {last.rank} ({hosts[last.rank]}) finished last in {100 * last.share:.0f} % of calls"
                for last in late[:_NAMED_RANKS]
            )
            sentences.append(
                f"{name}: {who} ({100 * late[0].chance:.0f} % expected, "
                f"{counted(len(cells), 'cell')}): a slow rank, a shared core, or the shape of "
                "the algorithm"
            )
        return sentences
