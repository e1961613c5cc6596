"""One-sided operations in the simulation: those under way from each rank, and their effects at completion.

Like a message an operation takes ``alpha + n beta`` from its call and uses its origin's link; no rank waits for it
until a synchronisation completes it. Its effects on the target's window and the origin's buffers happen then, in the
order of the calls. Taking a lock costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omb_py.backends.mock.simulator.data import Bytes
from omb_py.engine.measuring.reductions import REDUCTIONS, work_type
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Step

POST_TAG: Final = -1
"""Tag of the message that a post sends to the ranks that start an access."""
COMPLETE_TAG: Final = -2
"""Tag of the message that a complete sends to the rank that waits."""
ENDS: Final = frozenset(
    {"win_unlock", "win_unlock_all", "win_flush", "win_flush_local", "win_flush_all", "win_flush_local_all"}
)
"""Passive steps that complete their rank's operations; a local flush, too, waits for the whole operation."""

Put = Callable[[int, Bytes, Bytes, int], None]
"""(rank whose memory is written, destination, data, iteration)."""


@dataclass(frozen=True, slots=True)
class Access:
    """An operation on a window, with the memory that it uses (None if no data is moved)."""

    step: Step
    target: int
    parts: Mapping[str, Bytes | None]
    """Views of `send`, `recv`, `compare` of the origin and of the target's `window`."""

    def effect(self, origin: int, iteration: int, put: Put) -> None:
        """Move the data."""
        parts = {name: view for name, view in self.parts.items() if view is not None}
        window = parts.get("window")
        if window is None:
            return
        old = window.copy()
        if "recv" in parts:
            put(origin, parts["recv"], old, iteration)
        new = self._replace_content(parts, old)
        if new is not None:
            put(self.target, window, new, iteration)

    def _replace_content(self, parts: Mapping[str, Bytes], old: Bytes) -> Bytes | None:
        """The new content of the window; None: it is unchanged."""
        match self.step.op:
            case "get" | "rget":
                return None
            case "put" | "rput":
                return parts["send"]
            case "compare_and_swap":
                return parts["send"] if np.array_equal(old, parts["compare"]) else None
        kind = np.dtype(DTYPES[self.step["dtype"]].numpy)
        reduction = REDUCTIONS[self.step["op"]]
        with np.errstate(over="ignore"):  # many iterations add to the same window
            result: np.ndarray[Any, Any] = reduction(
                old.view(kind), parts["send"].view(kind), dtype=work_type(reduction, kind)
            )
        return result.astype(kind, copy=False).view(np.uint8)


@dataclass(frozen=True, slots=True)
class _Underway:
    access: Access
    done: int
    iteration: int


class PendingOperations:
    """Operations that are not completed yet, by origin."""

    def __init__(self, ranks: int, put: Put) -> None:
        self._underway: list[list[_Underway]] = [[] for _ in range(ranks)]
        self._put = put

    def begin(self, rank: int, access: Access, done: int, iteration: int) -> None:
        """Begin an operation of `rank` that is done at `done`, ns."""
        self._underway[rank].append(_Underway(access, done, iteration))

    def complete(self, rank: int, target: int, now: int) -> int:
        """Complete the operations of `rank` to `target` (-1: to all).

        Returns:
            The time of completion in ns, `now` or later.
        """
        operations = self._underway[rank]
        completed = [each for each in operations if target in (-1, each.access.target)]
        self._underway[rank] = [each for each in operations if target not in (-1, each.access.target)]
        for each in completed:
            each.access.effect(rank, each.iteration, self._put)
        return max([now, *(each.done for each in completed)])
