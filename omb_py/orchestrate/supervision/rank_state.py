"""The supervisor's knowledge of each rank, and the words for it in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omb_py.engine.rank.link import Message

PHASES = ("start", "validate", "loop", "write", "done")
"""Phases of a cell, in order."""
_NAMED_AT_MOST = 4


@dataclass(slots=True)
class RankState:
    """Knowledge of one rank process. Times are seconds on the supervisor's clock."""

    host: str
    pid: int
    ticks: int | None
    env_rank: int | None
    seen: float
    """Time of its last message."""
    rank: int | None = None
    size: int | None = None
    beat: Message | None = None
    done: bool = False
    lost: bool = False

    @property
    def number(self) -> int | None:
        """The rank in the joined world; before it has joined, the one from the launcher's variables."""
        return self.env_rank if self.rank is None else self.rank

    @property
    def name(self) -> str:
        """The name in messages: ``rank 3 on node7 (pid 1234)``."""
        who = "a rank process" if self.number is None else f"rank {self.number}"
        return f"{who} on {self.host} (pid {self.pid})"

    def catch_up(self, place: Message) -> None:
        """Take a place for the last known one where it is further on."""
        ahead = RankState(self.host, self.pid, self.ticks, self.env_rank, self.seen, self.rank, beat=place)
        if position(ahead) > position(self):
            self.beat = place


def next_cell(cells: Sequence[Message], message: Message) -> Message | None:
    """The place of ranks whose cell is done, as a heartbeat would say it.

    Args:
        cells: those of the launch, as the spec has them.

    Returns:
        None after the last cell, and for what is no end of one.
    """
    index = _whole(message.get("index"))
    unfinished = "index" not in message or message.get("last") is False
    if unfinished or not 0 <= index < len(cells) - 1:
        return None
    cell = cells[index + 1]
    size = f" {cell['size']} B" if cell.get("size") else ""
    return {"phase": "start", "cell": index + 1, "label": f"{cell['benchmark']}{size}"}


def position(state: RankState) -> tuple[int, int, int, int]:
    """(cell, phase, iteration, step) of a rank. A smaller one is further behind."""
    if state.done:
        return (1 << 62, 0, 0, 0)
    if state.beat is None:
        return (-2 if state.rank is None else -1, 0, 0, 0)
    phase = state.beat.get("phase", "start")
    order = PHASES.index(phase) if phase in PHASES else 0
    cell, iteration, step = (_whole(state.beat.get(key)) for key in ("cell", "iteration", "step"))
    return (cell, order, iteration, step)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def doing(state: RankState) -> str:
    """The last known activity of a rank, in words."""
    if state.beat is None:
        if state.rank is None:
            return "starting: it has not joined the other ranks (still in the library's start-up)"
        return "preparing: it has joined the other ranks and not begun to measure"
    phase = state.beat.get("phase", "start")
    label = state.beat.get("label") or "no cell yet"
    step = state.beat.get("doing") or ""
    if phase in ("validate", "loop"):
        iteration = _whole(state.beat.get("iteration"))
        text = f"{label}, " + ("a warm-up iteration" if iteration < 0 else f"{phase} iteration {iteration}")
        return f"{text}, {step}" if step and step != phase else text
    return f"{label}, phase {phase}" + (f", {step}" if step and step != phase else "")


def names(states: Sequence[RankState]) -> str:
    """Names of the first few ranks, and the number of the others."""
    shown = [state.name for state in sorted(states, key=_order)[:_NAMED_AT_MOST]]
    more = len(states) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _order(state: RankState) -> tuple[bool, int]:
    return (state.number is None, state.number or 0)


def find_behind(states: Iterable[RankState]) -> list[RankState]:
    """The ranks whose position is the smallest."""
    live = [state for state in states if not state.lost]
    if not live:
        return []
    least = min(position(state) for state in live)
    return [state for state in live if position(state) == least]


def numbers(missing: Iterable[int], what: str = "rank") -> str:
    """Numbers of ranks, or of something else, as text, with runs shortened.

    >>> numbers([0, 1, 2, 5]), numbers([3])
    ('ranks 0-2, 5', 'rank 3')
    """
    runs: list[list[int]] = []
    for number in sorted(missing):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    plural = "s" if len(runs) > 1 or any(a != b for a, b in runs) else ""
    return f"{what}{plural} " + ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
