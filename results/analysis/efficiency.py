"""How well a step uses more ranks (docs/workloads/predict.md).

Weak scaling: each rank computes as much as on fewer ranks. Strong: all together do.
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
    """Of the step."""
    exposed_us: float
    """Of the step, what it takes beyond its computing."""
    efficiency: float
    """1: as good as at the smallest number of ranks."""
    alone: float
    """Computing over step: efficiency against one rank, which has nobody to wait for."""

    @property
    def speedup(self) -> float:
        """Work of the same time, over that of one rank: ranks · alone."""
        return self.ranks * self.alone


def efficiencies(steps: Mapping[int, tuple[float, float]], kind: Kind) -> list[Scaling]:
    """The efficiency at each number of ranks.

    With T(n) the time of a step at n ranks and b the smallest number of ranks: weak T(b) / T(n); strong
    b · T(b) / (n · T(n)). Against one rank both are computing / T(n): alone a rank computes, and waits for nobody.

    Args:
        steps: ranks -> (compute µs, exposed µs) of a step, as means over ranks.
        kind: ``weak``: each rank computes as long at every number of ranks; ``strong``: all together do.

    Raises:
        UsageError: under two numbers of ranks, or a step that computes nothing.
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
