"""A soak (``--repeat-for``): passes over the same cells in one launch, and their drift from the first pass."""

from __future__ import annotations

from typing import TypeAlias

from omb_py.results.store.row import Row

CellName: TypeAlias = "tuple[str, str, str, str, str | None, int]"
PASS = "pass"
"""Key of `parameters`: the number of the pass, from 1."""
_NAMED = 8
"""Cells that a line names at most."""


def pass_of(row: Row) -> int:
    return int((row.get("parameters") or {}).get(PASS, 0))


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
        number = pass_of(row)
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
