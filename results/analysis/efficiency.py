"""Scaling efficiency of a step (docs/workloads/predict.md).

With weak scaling each rank computes the same at every number of ranks; with strong scaling all ranks together do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omb_py.errors import UsageError

Kind = Literal["weak", "strong"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """A step at a number of ranks."""

    ranks: int
    step_us: float
    compute_us: float
    """Time of the step that is spent computing."""
    exposed_us: float
    """Time of the step beyond its computing."""
    efficiency: float
    """Efficiency against the smallest number of ranks; 1 is as good."""
    alone: float
    """Efficiency against one rank, which waits for nobody: computing over step."""

    @property
    def speedup(self) -> float:
        return self.ranks * self.alone


def efficiencies(steps: Mapping[int, tuple[float, float]], kind: Kind) -> list[Scaling]:
    """Compute the efficiency at each number of ranks.

    With T(n) the time of a step at n ranks and b the smallest number of ranks, weak efficiency is T(b) / T(n) and
    strong efficiency is b · T(b) / (n · T(n)). Against one rank, which only computes, both are
    computing / T(n).

    Args:
        steps: ranks -> (compute µs, exposed µs) of a step, as means over ranks.
        kind: ``weak`` if each rank computes as long at every number of ranks, ``strong`` if all together do.

    Raises:
        UsageError: there are fewer than two numbers of ranks, or a step computes nothing.
    """
    if len(steps) < 2:
        listed = ", ".join(map(str, steps)) or "none"
        raise UsageError(f"an efficiency needs steps at two or more numbers of ranks; there are {listed}")
    if any(compute <= 0 for compute, _ in steps.values()):
        raise UsageError("a step without computing has no efficiency: write compute=5ms")
    first = min(steps)
    base = sum(steps[first]) * (first if kind == "strong" else 1)
    scalings = []
    for ranks, (compute, exposed) in sorted(steps.items()):
        whole = compute + exposed
        ratio = base / (whole * (ranks if kind == "strong" else 1))
        scalings.append(Scaling(ranks, whole, compute, exposed, ratio, compute / whole))
    return scalings
