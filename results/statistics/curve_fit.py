"""Piecewise alpha-beta: T(m) = alpha + beta m on each stretch of sizes, fitted to logs (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEAST = 4
SEGMENTS = 4
SCALE = 0.03
"""Residual (of logs) beyond which a size counts less, so that a lone outlier does not bend the curve."""
_FLOOR = 0.005
"""Least noise (of logs) that is assumed, so that rounding errors do not split a perfect curve."""
_CAP = 2.5
"""Most noises that one size can cost, so that a segment made for an outlier does not pay."""
_STEPS = 100
_PENALTY = 4.0
"""Cost of a segment in units of ln n: one each for alpha, beta, its end, and the search for that end."""

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
    """Time per byte in µs; 0 where the time does not grow."""

    def time_us(self, sizes: ArrayLike) -> Array:
        """Compute the times in µs at sizes in bytes."""
        return np.asarray(self.alpha_us + self.beta_us * np.asarray(sizes, dtype=np.float64), dtype=np.float64)

    @property
    def bandwidth(self) -> float | None:
        """Bandwidth 1 / beta in MB/s (10^6 bytes/s); None where the time does not grow."""
        return 1 / self.beta_us if self.beta_us > 0 else None


@dataclass(frozen=True, slots=True)
class Curve:
    """A fit over all sizes."""

    segments: tuple[Segment, ...]
    error: float
    """Mean relative distance of the measured times from the curve."""

    def time_us(self, sizes: ArrayLike) -> Array:
        """Compute the times in µs at sizes in bytes; between two segments the earlier one holds."""
        wanted = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
        out = self.segments[0].time_us(wanted)
        for segment in self.segments[1:]:
            out = np.where(wanted >= segment.first, segment.time_us(wanted), out)
        return out

    @property
    def breaks(self) -> tuple[tuple[int, int], ...]:
        """Pairs of sizes between which one segment gives way to the next."""
        return tuple((a.last, b.first) for a, b in zip(self.segments, self.segments[1:], strict=False))


def fit(sizes: Sequence[int], times_us: ArrayLike) -> Curve:
    """Fit a curve to sizes and their times.

    Every possible segment is fitted once. The number k of segments minimises the sum of min((r/noise)², cap²) over the
    sizes, plus the penalty 4 k ln n.

    Args:
        sizes: message sizes in bytes, growing, shape (n,), n >= :data:`LEAST`.
        times_us: times in µs, positive, shape (n,).

    Raises:
        ValueError: there are too few sizes, they do not grow, or a time is not positive and finite.
    """
    m, t = np.asarray(sizes, dtype=np.float64), np.asarray(times_us, dtype=np.float64)
    if m.size < LEAST or m.size != t.size or np.any(np.diff(m) <= 0) or not np.all((t > 0) & np.isfinite(t)):
        raise ValueError(f"a fit needs at least {LEAST} growing sizes and positive times")
    places = [(i, j) for i in range(m.size) for j in range(i + LEAST, m.size + 1)]
    weights = np.array([[float(i <= k < j) for k in range(m.size)] for i, j in places])
    columns = np.column_stack([np.ones_like(m), m])
    coefficients, outlier_costs = robust(columns, t, weights)
    ratios = [(columns[i:j] @ c / t[i:j]) for (i, j), c in zip(places, coefficients, strict=True)]
    parts = {
        place: (c, np.log(ratio), float(cost))
        for place, c, ratio, cost in zip(places, coefficients, ratios, outlier_costs, strict=True)
    }
    most = min(SEGMENTS, m.size // LEAST)
    # the noise is that of the finest cut: with fewer segments, residuals would hold bends of the curve as well
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


def robust(columns: Array, times: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Find the non-negative c that brings ln(columns @ c) nearest to ln(times), by soft-L1 cost.

    All problems are solved at once, by Gauss-Newton steps on the iteratively reweighted residuals, damped (Levenberg,
    Marquardt) and projected on c >= 0.

    Args:
        columns: values of the two terms, non-negative, shape (n, 2).
        times: times, positive, shape (n,).
        weights: 0 or 1, shape (..., n). Each row is a problem of the times whose weight is 1. None: one of all times.

    Returns:
        The coefficients c, shape (..., 2), and twice the soft-L1 costs, shape (...).
    """
    weights = np.ones(times.shape) if weights is None else weights
    # columns of ones and of sizes up to megabytes: without scaling the equations are close to singular
    scale = np.maximum(columns.max(axis=0), 1e-300)
    unit, logs, least = columns / scale, np.log(times), 1e-8 * float(times.min())

    def evaluate(c: Array) -> tuple[Array, Array, Array]:
        with np.errstate(divide="ignore"):
            fitted = c @ unit.T
            off = np.where(weights > 0, np.log(fitted) - logs, 0.0)
        return fitted, off, 2 * SCALE**2 * (np.sqrt(1 + (off / SCALE) ** 2) - 1).sum(axis=-1)

    c = np.maximum(_start(unit, times, weights), least)
    fitted, off, cost = evaluate(c)
    damping = np.full(cost.shape, 1e-3)
    diagonal = np.eye(c.shape[-1], dtype=bool)
    for _ in range(_STEPS):
        slopes = unit / np.where(weights > 0, fitted, 1.0)[..., None]
        weighted = slopes * (weights / np.sqrt(1 + (off / SCALE) ** 2))[..., None]
        down = np.einsum("...nk,...n->...k", weighted, off)
        bend = np.einsum("...nk,...nl->...kl", weighted, slopes)
        stays = (c <= 0) & (down > 0)
        steep = np.where(stays, 1.0, np.einsum("...kk->...k", bend) * (1 + damping[..., None]) + 1e-30)
        bend = np.where(diagonal, steep[..., None], np.where(stays[..., None] | stays[..., None, :], 0.0, bend))
        # a coefficient that is 0 and would become negative keeps its value: its equation is replaced by step = 0
        step = np.linalg.solve(bend, np.where(stays, 0.0, down)[..., None])[..., 0]
        tried = np.maximum(c - step, 0.0)
        fitted_then, off_then, cost_then = evaluate(tried)
        better = cost_then < cost
        won = np.where(better, cost - cost_then, 0.0)
        c = np.where(better[..., None], tried, c)
        fitted, off = (np.where(better[..., None], new, old) for new, old in ((fitted_then, fitted), (off_then, off)))
        cost = np.where(better, cost_then, cost)
        damping = np.where(better, damping / 10, damping * 10)
        if np.all((won <= 1e-12 * cost) & (better | (damping > 1e6)) | (cost <= 1e-20)):
            break
    return np.where(c <= 10 * least, 0.0, c) / scale, cost


def _start(unit: Array, times: Array, weights: Array) -> Array:
    """Start from the non-negative least squares of the relative distances: both terms, or the better one alone."""
    relative = unit / times[:, None]
    square = np.einsum("...n,nk,nl->...kl", weights, relative, relative)
    aim = np.einsum("...n,nk->...k", weights, relative)
    alone = aim / np.maximum(np.einsum("...kk->...k", square), 1e-300)
    better = aim * alone >= (aim * alone).max(axis=-1, keepdims=True)  # the sum of squares falls by so much
    determinant = square[..., 0, 0] * square[..., 1, 1] - square[..., 0, 1] ** 2
    crossed = np.stack(
        [
            square[..., 1, 1] * aim[..., 0] - square[..., 0, 1] * aim[..., 1],
            square[..., 0, 0] * aim[..., 1] - square[..., 0, 1] * aim[..., 0],
        ],
        axis=-1,
    )
    both = crossed / np.where(determinant > 0, determinant, 1.0)[..., None]
    usable = (determinant > 0) & (both > 0).all(axis=-1)
    return np.asarray(np.where(usable[..., None], both, np.where(better, alone, 0.0)), dtype=np.float64)


def _noise(residuals: Array, free: int) -> float:
    """Standard deviation of the logs, from the median absolute residual and `free` degrees of freedom."""
    spread = 1.4826 * float(np.median(np.abs(residuals)))
    return max(_FLOOR, spread * math.sqrt(residuals.size / max(1, free)))


def _cheapest(n: int, count: int, costs: dict[tuple[int, int], float]) -> tuple[float, list[tuple[int, int]]]:
    """Find the cheapest way to cut n sizes into `count` segments (dynamic programming over the ends)."""
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
