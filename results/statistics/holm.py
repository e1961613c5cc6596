"""Holm's method: many hypotheses with one chance of an error. It needs no NumPy, and so loads at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method, in the order given.

    Reject the hypotheses whose adjusted p-value is at most alpha: the chance of any false rejection is at most alpha.
    This holds for any dependence between the hypotheses (S. Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = largest
    return adjusted
