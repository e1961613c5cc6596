"""Progress of a command that makes launches: launches done, of how many, and the time left.

On a terminal it is one line of stderr that changes; elsewhere it is a line of its own every :data:`PLAIN_S` seconds.
``OMB_PY_PROGRESS=never`` switches it off, ``plain`` forces lines.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from omb_py.grammar.values import duration_text

VARIABLE = "OMB_PY_PROGRESS"
PLAIN_S = 20.0
"""Seconds between two lines where stderr is no terminal; a command that ends sooner prints none."""
_DRAWN_S = 0.2
"""Seconds between two changes of the line on a terminal."""
_ENOUGH_CELLS = 3
"""Cells of the first launch after which the time left is estimated."""

Clock = Callable[[], float]


@dataclass(slots=True)
class Tally:
    """Counts of launches and cells, and the time that is left by what they have taken so far."""

    clock: Clock
    waiting: deque[int] = field(default_factory=deque)
    """Number of cells of each planned launch that has not begun."""
    launches: int = 0
    """Launches that ended."""
    cells: int = 0
    """Finished cells of the current launch."""
    of_cells: int = 0
    """Cells of the current launch; 0 between launches."""
    began: float | None = None
    """Time of the first launch's beginning."""
    _launch_began: float = 0.0
    _first_cell: float | None = None
    _starts: list[float] = field(default_factory=list)
    """Seconds from the beginning of each launch to its first cell."""
    _per_cell: list[float] = field(default_factory=list)
    """Seconds of every later cell."""
    _last_cell: float = 0.0

    @property
    def running(self) -> bool:
        return self.of_cells > 0

    @property
    def total(self) -> int:
        return self.launches + self.running + len(self.waiting)

    def plan(self, cells: Sequence[int]) -> None:
        """Expect these launches, each with a number of cells, and no others that were planned before."""
        self.waiting = deque(cells)

    def begin(self, cells: int) -> None:
        """Count a launch that begins. One that was not planned is added to those that were."""
        if self.waiting:
            self.waiting.popleft()
        now = self.clock()
        self.began = now if self.began is None else self.began
        self._launch_began, self._first_cell = now, None
        self.cells, self.of_cells = 0, max(1, cells)

    def cell(self) -> None:
        now = self.clock()
        if self._first_cell is None:
            self._first_cell = now
            self._starts.append(now - self._launch_began)
        else:
            self._per_cell.append(now - self._last_cell)
        self._last_cell = now
        self.cells += 1

    def end(self) -> None:
        self.launches += 1
        self.cells = self.of_cells = 0

    def left_s(self) -> float | None:
        """Estimate the seconds left: a start for each launch, and a mean time for each cell; None: not known yet."""
        if not self._starts or not (self.launches or self.cells >= _ENOUGH_CELLS):
            return None
        start = sum(self._starts) / len(self._starts)
        # a launch of one cell says nothing about the time of a cell alone; its start holds both
        cell = sum(self._per_cell) / len(self._per_cell) if self._per_cell else 0.0
        left = sum(start + cell * (count - 1) for count in self.waiting)
        if self.running:
            more = max(0, self.of_cells - max(1, self.cells)) * cell
            if not self.cells:
                more += max(0.0, start - (self.clock() - self._launch_began))
            left += more
        return left

    def text(self) -> str:
        """Write the counts as ``launch 7 of 20, 3 of 12 cells, about 40 s left``."""
        parts = [f"launch {self.launches + self.running} of {self.total}"] if self.total > 1 else []
        if self.of_cells > 1:
            parts.append(f"{self.cells} of {self.of_cells} cells")
        left = self.left_s()
        if left is None:
            elapsed = self.clock() - (self.began if self.began is not None else self.clock())
            parts.append(f"{duration_text(elapsed)} so far")
        else:
            parts.append(f"about {duration_text(left)} left")
        return ", ".join(parts)


class Progress:
    """Shows a :class:`Tally` while launches are made. It shows nothing before the first one begins."""

    def __init__(self, out: TextIO | None, terminal: bool, clock: Clock = time.monotonic) -> None:
        """Create a display.

        Args:
            out: where it is written; None: nowhere.
            terminal: whether `out` can overwrite a line.
            clock: gives seconds.
        """
        self.tally = Tally(clock)
        self._out, self._terminal, self._clock = out, terminal, clock
        self._drawn = False
        self._last: float | None = None

    def plan(self, cells: Sequence[int]) -> None:
        """Expect these launches, each with a number of cells, and no others that were planned before."""
        self.tally.plan(cells)

    def begin(self, cells: int) -> None:
        self.tally.begin(cells)
        if self._last is None:
            self._last = self._clock() - (_DRAWN_S if self._terminal else 0.0)
        self.tick()

    def cell(self) -> None:
        if self.tally.running:
            self.tally.cell()
            self.tick()

    def end(self) -> None:
        self.tally.end()
        self.clear()

    def tick(self) -> None:
        """Show how time passes, unless the line was written a moment ago."""
        if self._out is None or not self.tally.running or self._last is None:
            return
        now = self._clock()
        if now - self._last < (_DRAWN_S if self._terminal else PLAIN_S):
            return
        self._last = now
        text = f"omb-py: {self.tally.text()}"
        self._out.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        self._out.flush()
        self._drawn = self._terminal

    def clear(self) -> None:
        """Remove the line from a terminal, before something else is printed there."""
        if self._drawn and self._out is not None:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._drawn = False


def silent() -> Progress:
    return Progress(None, terminal=False)


def progress_for(quiet: bool, environ: Mapping[str, str] = os.environ) -> Progress:
    """Create the display of a command on stderr, as the user and :data:`VARIABLE` want it."""
    mode = environ.get(VARIABLE, "auto")
    if quiet or mode == "never":
        return silent()
    return Progress(sys.stderr, terminal=mode != "plain" and sys.stderr.isatty() and environ.get("TERM") != "dumb")
