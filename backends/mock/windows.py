"""One-sided operations in the simulation: what is under way from each rank, and what it does when it is completed.

An operation takes ``alpha + n beta`` from its call, on its origin's link, as a message does; nobody waits for it until
a synchronisation completes it. Its effects, in the target's window and in the origin's buffers, happen then, in the
order of the calls. Taking a lock costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omb_py.backends.mock.data import REDUCTIONS, Bytes, work_type
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Step

POST_TAG: Final = -1
"""Of the message that a post sends to those who start."""
COMPLETE_TAG: Final = -2
ENDS: Final = frozenset({"win_unlock", "win_unlock_all", "win_flush", "win_flush_local"})
"""Passive steps that complete what their rank has under way; a local flush waits for the whole operation too."""

Put = Callable[[int, Bytes, Bytes, int], None]
"""(rank whose memory it is, where, what, iteration)."""


@dataclass(frozen=True, slots=True)
class Access:
    """An operation on a window, with the memory that it touches (None where no data is moved)."""

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
        new = self._written(parts, old)
        if new is not None:
            put(self.target, window, new, iteration)

    def _written(self, parts: Mapping[str, Bytes], old: Bytes) -> Bytes | None:
        """What the window holds then; None: it stays as it is."""
        match self.step.op:
            case "get" | "rget":
                return None
            case "put" | "rput":
                return parts["send"]
            case "compare_and_swap":
                return parts["send"] if np.array_equal(old, parts["compare"]) else None
        kind = np.dtype(DTYPES[self.step["dtype"]].numpy)
        reduction = REDUCTIONS[self.step["op"]]
        with np.errstate(over="ignore"):  # a window that is added to again and again
            result: np.ndarray[Any, Any] = reduction(
                old.view(kind), parts["send"].view(kind), dtype=work_type(reduction, kind)
            )
        return result.astype(kind, copy=False).view(np.uint8)


@dataclass(frozen=True, slots=True)
class _Underway:
    access: Access
    done: int
    iteration: int


class Windows:
    """Operations that are not completed yet, by origin."""

    def __init__(self, ranks: int, put: Put) -> None:
        self._underway: list[list[_Underway]] = [[] for _ in range(ranks)]
        self._put = put

    def begin(self, rank: int, access: Access, done: int, iteration: int) -> None:
        """An operation of `rank` that takes until `done`, ns."""
        self._underway[rank].append(_Underway(access, done, iteration))

    def complete(self, rank: int, target: int, now: int) -> int:
        """Complete what `rank` has under way to `target` (-1: to all). Returns when that is, not before `now`."""
        mine: list[_Underway] = []
        rest: list[_Underway] = []
        for one in self._underway[rank]:
            (mine if target in (-1, one.access.target) else rest).append(one)
        self._underway[rank] = rest
        for one in mine:
            one.access.effect(rank, one.iteration, self._put)
        return max([now, *(one.done for one in mine)])
