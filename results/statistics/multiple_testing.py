"""Many hypotheses, several looks: how often anything is called a change by chance. Derived in docs/statistics.md."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LOOKS = 3


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: those at most alpha are rejected, and the chance of any false rejection is at most alpha.

    Holds for any dependence between the hypotheses (S. Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def spending(alpha: float, looks: int) -> tuple[float, ...]:
    """The part of `alpha` that each look may spend, declared before the first launch.

    A single look spends all. Of several, the first spends nothing: it only chooses what is measured again, and the
    later ones, on fresh launches each, share alpha. Raises ValueError outside 1 to :data:`MOST_LOOKS`.

    >>> spending(0.01, 3)
    (0.0, 0.005, 0.005)
    """
    if not 1 <= looks <= MOST_LOOKS:
        raise ValueError(f"looks are 1 to {MOST_LOOKS}, not {looks}")
    if looks == 1:
        return (alpha,)
    return (0.0, *[alpha / (looks - 1)] * (looks - 1))
