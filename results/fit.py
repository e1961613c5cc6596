"""Piecewise alpha-beta: T(m) = alpha + beta m on each stretch of sizes, fitted to logs (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST = 4
"""Sizes of the shortest segment."""
SEGMENTS = 4
SCALE = 0.03
"""Residuals (of logs) beyond which a size counts less: a lone outlier does not bend the curve."""
_FLOOR = 0.005
"""Noise (of logs) that is always assumed, so that a perfect curve is not cut for rounding errors."""
_CAP = 2.5
"""Noises that one size can cost at most: a segment made to please an outlier does not pay."""
_PENALTY = 4.0
"""Times ln n, for each segment: alpha, beta, the place of its end, and that the place was searched for."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of sizes with one alpha and one beta."""

    first: int
    """Smallest size in bytes."""
    last: int
    """Largest measured size in bytes."""
    alpha_us: float
    beta_us: float
    """Per byte; 0 where the time does not grow."""

    def time_us(self, sizes: ArrayLike) -> Array:
        """The times of sizes in bytes."""
        return np.asarray(self.alpha_us + self.beta_us * np.asarray(sizes, dtype=np.float64), dtype=np.float64)

    @property
    def bandwidth(self) -> float | None:
        """1 / beta in MB/s (10^6 bytes); None where the time does not grow."""
        return 1 / self.beta_us if self.beta_us > 0 else None


@dataclass(frozen=True, slots=True)
class Curve:
    """A fit over all sizes."""

    segments: tuple[Segment, ...]
    error: float
    """Mean relative distance of the measured times from the curve."""

    def time_us(self, sizes: ArrayLike) -> Array:
        """The times of sizes in bytes; between two segments the earlier one holds."""
        wanted = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        out = self.segments[0].time_us(wanted)
        for segment in self.segments[1:]:
            out = np.where(wanted >= segment.first, segment.time_us(wanted), out)
        return out

    @property
    def breaks(self) -> tuple[tuple[int, int], ...]:
        """Between which two sizes each segment gives way to the next."""
        return tuple((a.last, b.first) for a, b in zip(self.segments, self.segments[1:], strict=False))


def fit(sizes: Sequence[int], times_us: ArrayLike) -> Curve:
    """The curve of some sizes and their times.

    Args:
        sizes: bytes, growing, shape (n,), n >= :data:`LEAST`.
        times_us: positive, shape (n,).

    Raises:
        ValueError: too few sizes, not growing, or a time that is not positive and finite.
    """
    m, t = np.asarray(sizes, dtype=np.float64), np.asarray(times_us, dtype=np.float64)
    if m.size < LEAST or m.size != t.size or np.any(np.diff(m) <= 0) or not np.all((t > 0) & np.isfinite(t)):
        raise ValueError(f"a fit needs at least {LEAST} growing sizes and positive times")
    parts = {(i, j): _segment(m[i:j], t[i:j]) for i in range(m.size) for j in range(i + LEAST, m.size + 1)}
    most = min(SEGMENTS, m.size // LEAST)
    _, finest = _cheapest(m.size, most, {place: cost for place, (_, _, cost) in parts.items()})
    noise = _noise(np.concatenate([parts[place][1] for place in finest]), m.size - 2 * most)
    costs = {
        place: float(np.minimum((residuals / noise) ** 2, _CAP**2).sum()) for place, (_, residuals, _) in parts.items()
    }
    best, best_score = [(0, m.size)], math.inf
    for count in range(1, most + 1):
        cost, cut = _cheapest(m.size, count, costs)
        score = cost + _PENALTY * count * math.log(m.size)
        if score < best_score:
            best, best_score = cut, score
    segments = tuple(
        Segment(int(sizes[i]), int(sizes[j - 1]), float(parts[i, j][0][0]), float(parts[i, j][0][1])) for i, j in best
    )
    curve = Curve(segments, 0.0)
    return Curve(segments, float(np.mean(np.abs(curve.time_us(m) / t - 1))))


def robust(columns: Array, times: Array) -> tuple[Array, float]:
    """Non-negative c that brings ln(columns @ c) near ln(times), and twice the soft-L1 cost.

    Args:
        columns: shape (n, k), non-negative.
        times: shape (n,), positive.
    """
    from scipy import optimize

    start = np.maximum(optimize.nnls(columns / times[:, None], np.ones_like(times))[0], 0)
    scale = np.maximum(columns.max(axis=0), 1e-300)
    floor = 1e-9 * times.min() / scale
    logs = np.log(times)

    def residuals(x: Array) -> Array:
        return np.asarray(np.log(columns @ np.exp(x)) - logs, dtype=np.float64)

    def slopes(x: Array) -> Array:
        parts = columns * np.exp(x)
        return np.asarray(parts / parts.sum(axis=1, keepdims=True), dtype=np.float64)

    first = np.log(np.maximum(start, 10 * floor))
    found = optimize.least_squares(
        residuals, first, jac=slopes, loss="soft_l1", f_scale=SCALE, bounds=(np.log(floor), np.inf),
        max_nfev=100, ftol=1e-7, xtol=1e-7,
    )  # fmt: skip
    c = np.exp(found.x)
    return np.where(c <= 100 * floor, 0.0, c), 2 * float(found.cost)


def _segment(m: Array, t: Array) -> tuple[Array, Array, float]:
    columns = np.column_stack([np.ones_like(m), m])
    c, cost = robust(columns, t)
    return c, np.log(columns @ c) - np.log(t), cost


def _noise(residuals: Array, free: int) -> float:
    """Standard deviation of the logs, of the middle half of the residuals."""
    spread = 1.4826 * float(np.median(np.abs(residuals)))
    return max(_FLOOR, spread * math.sqrt(residuals.size / max(1, free)))


def _cheapest(n: int, count: int, costs: dict[tuple[int, int], float]) -> tuple[float, list[tuple[int, int]]]:
    """The cheapest way to cut n sizes into so many segments (dynamic programming over the ends)."""
    table: dict[tuple[int, int], tuple[float, int]] = {(0, 0): (0.0, 0)}
    for parts in range(1, count + 1):
        for end in range(parts * LEAST, n + 1):
            table[parts, end] = min(
                (table[parts - 1, start][0] + costs[start, end], start)
                for start in range((parts - 1) * LEAST, end - LEAST + 1)
                if (parts - 1, start) in table
            )
    cut, end = [], n
    for parts in range(count, 0, -1):
        start = table[parts, end][1]
        cut.append((start, end))
        end = start
    return table[count, n][0], cut[::-1]
