"""Algorithm and bus bandwidth, by the formulas of nccl-tests. GB = 10^9 bytes.

*algbw* is the size of the operation over its time. *busbw* scales it by what a ring sends over each link, so that the
number can be held against the link's speed whatever the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


def _all_bytes(ranks: int) -> float:
    return 1.0


def _others(ranks: int) -> float:
    return (ranks - 1) / ranks


def _twice_others(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


@dataclass(frozen=True, slots=True)
class Formula:
    """The formulas of both bandwidths of one operation."""

    algorithm: Callable[[int], float]
    """Share of bytes_total that counts for algbw."""
    bus: Callable[[int], float]
    """busbw / algbw."""
    text: str
    """Both formulas for a reader. S is bytes_total, n the number of ranks, t the time in seconds."""


_VECTOR = Formula(_all_bytes, _all_bytes, "algbw = S / t; busbw = algbw")
_BLOCKS = Formula(_all_bytes, _others, "algbw = S / t; busbw = algbw · (n-1)/n")

PREFIX: Final = "nccl-tests:"
PURE: Final = ":pure"
"""Suffix in the column ``bw_formula``: t is the time of the communication alone, without the computing beside it."""

FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "all_reduce": Formula(_all_bytes, _twice_others, "algbw = S / t; busbw = algbw · 2(n-1)/n"),
        "all_gather": _BLOCKS,
        "reduce_scatter": _BLOCKS,
        "alltoall": _BLOCKS,
        "alltoallv": _BLOCKS,
        "gather": _BLOCKS,
        "scatter": _BLOCKS,
        "broadcast": _VECTOR,
        "reduce": _VECTOR,
        "sendrecv": _VECTOR,
        "hypercube": Formula(_others, _all_bytes, "algbw = S · (n-1)/n / t; busbw = algbw"),
    }
)
"""Operation, named as in nccl-tests -> its formulas."""


def bandwidth(name: str, bytes_total: int, ranks: int, seconds: float) -> tuple[float, float | None]:
    """Compute the algorithm and bus bandwidth of an operation.

    Args:
        name: a key of :data:`FORMULAS`.
        bytes_total: bytes of the whole operation: the *size* column of nccl-tests (the vector of an all_reduce or
            broadcast, all ranks' blocks together otherwise).
        ranks: number of ranks; with one, no bytes cross a link and busbw is None.
        seconds: time of one operation; algbw is NaN and busbw None when it is not positive.

    Returns:
        (algbw, busbw) in GB/s.

    Raises:
        ValueError: no formula has this name.
    """
    formula = FORMULAS.get(name)
    if formula is None:
        raise ValueError(f"no bandwidth formula {name!r}; there are {', '.join(FORMULAS)}")
    if not seconds > 0:
        return math.nan, None
    algbw = bytes_total * formula.algorithm(ranks) / seconds / 1e9
    return algbw, algbw * formula.bus(ranks) if ranks > 1 else None


def shown_gbps(value: float) -> str:
    """GB/s with digits that say something: 8 B in 145 µs are 0.0000552, not 0.00."""
    if value >= 1 or not value or not math.isfinite(value):
        return f"{value:.2f}"
    return f"{value:.{2 - math.floor(math.log10(value))}f}"


def formula_column(name: str, pure: bool = False) -> str:
    """Value of the column ``bw_formula``: ``nccl-tests:all_reduce``, with ``:pure`` for :data:`PURE`."""
    return f"{PREFIX}{name}{PURE if pure else ''}"


def formula_name(column: str | None) -> str:
    """Key of :data:`FORMULAS` in a value of the column ``bw_formula``, or in a key itself; empty for None."""
    return (column or "").removeprefix(PREFIX).removesuffix(PURE)
