"""Slow nodes and slow links in measurements of every pair: pure functions, derived in docs/statistics.md.

Values are logs of times, so that more is slower and a difference is a ratio. Arrays have a column for each pair of n
nodes, in the order of :func:`pair_ends`, and a row for each pass over all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Kind = Literal["node", "link"]

LEAST = 4
"""With fewer nodes a slow node looks like slow links."""
DELTAS: Mapping[str, float] = {"latency": 0.03, "tail": 1.0, "bandwidth": 0.03}
"""Metric -> by what part one must be slower to count."""
ALPHA = 0.03
"""At most about this share of the sweeps over healthy nodes has a suspect: all metrics, nodes and links together."""
TAIL = 0.1
"""The tail of a pair is the mean of this share of its samples, the slowest."""
_SIGMA = 1.0 / special.ndtri(0.75)
"""Standard deviation over median absolute deviation, of a normal distribution."""
_MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normal values."""
_POLISHES = 4
_PRIOR = 4
"""As if so many differences between links had shown no more than their noise."""


@dataclass(frozen=True, slots=True)
class Effects:
    """A sweep taken apart: value of pair (i, j) = level + node[i] + node[j] + link."""

    level: float
    node: Floats
    link: Floats
    """By pair."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a metric of a sweep says. Limits are in logs, as the effects."""

    effects: Effects
    node_limit: float
    link_limit: float
    nodes: Ints
    """Those beyond the limit, the slowest first."""
    links: Ints
    """The same, as columns."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node or link that is slower than the others, in one metric."""

    kind: Kind
    ends: tuple[int, ...]
    """The node, or both ends of the link."""
    metric: str
    slower: float
    """How many times as long as without its own effect."""
    limit: float
    """What would have been too much by chance alone."""


def pair_ends(n: int) -> tuple[Ints, Ints]:
    """(smaller end, larger end) of each pair of n nodes, n(n - 1)/2 of them."""
    first, second = np.triu_indices(n, 1)
    return first.astype(np.intp), second.astype(np.intp)


def column_of(n: int, a: int, b: int) -> int:
    """The column of a pair."""
    i, j = min(a, b), max(a, b)
    return i * n - i * (i + 1) // 2 + j - i - 1


def square(values: Floats, n: int, own: float = math.nan) -> Floats:
    """Values by pair as a symmetric matrix; `own` on the diagonal."""
    grid = np.full((n, n), own)
    first, second = pair_ends(n)
    grid[first, second] = values
    grid[second, first] = values
    return grid


def take_apart(values: Floats, n: int) -> Effects:
    """Level, nodes and links by median polish (J. W. Tukey, Exploratory Data Analysis, 1977) on a symmetric table.

    A node's effect is the median over its pairs, so a few slow links do not move it, and a slow node is not found again
    in each of its links. Needs n >= 3 nodes; time and memory go with the number of pairs.
    """
    grid = square(values, n)
    off = ~np.eye(n, dtype=bool)
    rows = grid[off].reshape(n, n - 1)
    # half of all pairs may have a slow end, but not half of the pairs of most nodes
    level = float(np.median(np.median(rows, axis=1)))
    node = np.zeros(n)
    for _ in range(_POLISHES):
        others = np.broadcast_to(node, (n, n))[off].reshape(n, n - 1)
        node = np.median(rows - level - others, axis=1)
        middle = float(np.median(node))
        node, level = node - middle, level + 2 * middle
    first, second = pair_ends(n)
    return Effects(level, node, values - level - node[first] - node[second])


def spread(values: Floats) -> float:
    """Standard deviation, from the median absolute deviation."""
    return float(_SIGMA * np.median(np.abs(values - np.median(values))))


def within(passes: Floats) -> float:
    """Standard error of a pair's median over the passes, pooled over pairs. 0 with one pass."""
    count = len(passes)
    if count < 2:
        return 0.0
    off = passes - np.median(passes, axis=0)
    single = _SIGMA * np.median(np.abs(off)[np.abs(off) > 0]) if np.any(off) else 0.0
    return float(single * math.sqrt(count / (count - 1)) * _MEDIAN / math.sqrt(count))


def judge(passes: Floats, n: int, delta: float, alpha: float, counts: tuple[int, int] | None = None) -> Judged:
    """Which nodes and links are slower than chance explains.

    Args:
        passes: logs of times, shape (passes, pairs).
        n: nodes, :data:`LEAST` or more.
        delta: by what part one must be slower to count.
        alpha: chance that any node, and that any link, is beyond its limit although all are alike (Bonferroni).
        counts: how many nodes and links are looked at; None: all.

    Raises ValueError on fewer nodes, or columns that are not their pairs.
    """
    passes = np.atleast_2d(np.asarray(passes, np.float64))
    if n < LEAST or passes.shape[1] != n * (n - 1) // 2:
        raise ValueError(f"{passes.shape[1]} pairs of {n} nodes")
    effects = take_apart(np.median(passes, axis=0), n)
    pairs, looked = passes.shape[1], counts or (n, passes.shape[1])
    noise = _Spread(within(passes), (len(passes) - 1) * pairs)
    between = _shrunk(_Spread(spread(effects.link) * math.sqrt(pairs / (pairs - n)), pairs - n), noise)
    link_limit = _limit((noise, between), delta, alpha, looked[1])
    # what the noise of its links leaves in the effect of a node, and how much nodes differ
    shrink = _MEDIAN / math.sqrt(n - 1)
    of_links = [_Spread(deviation.sd * shrink, deviation.freedom) for deviation in (noise, between)]
    node_limit = _limit((*of_links, _Spread(spread(effects.node), n - 1)), delta, alpha, looked[0])
    return Judged(
        effects,
        float(node_limit),
        float(link_limit),
        _beyond(effects.node, node_limit),
        _beyond(effects.link, link_limit),
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """A standard deviation, and from how many independent differences it is known."""

    sd: float
    freedom: float


def _shrunk(between: _Spread, noise: _Spread) -> _Spread:
    """How much links differ, where few links show it: they may differ as their noise lets them."""
    if noise.freedom == 0:
        return between
    freedom = between.freedom + _PRIOR
    return _Spread(math.sqrt((between.freedom * between.sd**2 + _PRIOR * noise.sd**2) / freedom), freedom)


def _limit(spreads: Sequence[_Spread], delta: float, alpha: float, count: int) -> float:
    """What none of `count` values exceeds by chance; each spread by Student's t, since few values show it badly."""
    known = [deviation for deviation in spreads if deviation.freedom > 0]
    chance = (
        float(special.stdtrit(deviation.freedom, 1 - alpha / max(1, count))) * deviation.sd for deviation in known
    )
    return max(math.log1p(delta), *chance)


def _beyond(values: Floats, limit: float) -> Ints:
    columns = np.flatnonzero(values > limit)
    return columns[np.argsort(-values[columns], kind="stable")]


def suspects(sweep: Mapping[str, Floats], n: int, alpha: float = ALPHA) -> list[Suspect]:
    """The suspects of a sweep, the slowest first.

    Args:
        sweep: metric -> logs of times, shape (passes, pairs); metrics are keys of :data:`DELTAS`.
        n: nodes.
        alpha: chance of any suspect at all although all are alike.
    """
    share = alpha / (2 * len(sweep))
    slow = []
    for metric, passes in sweep.items():
        judged = judge(passes, n, DELTAS[metric], share)
        slow += _named(judged, n, metric)
    return sorted(slow, key=lambda suspect: -suspect.slower)


def _named(judged: Judged, n: int, metric: str) -> list[Suspect]:
    first, second = pair_ends(n)
    nodes = [
        Suspect("node", (int(i),), metric, math.exp(judged.effects.node[i]), math.exp(judged.node_limit))
        for i in judged.nodes
    ]
    links = [
        Suspect(
            "link",
            (int(first[c]), int(second[c])),
            metric,
            math.exp(judged.effects.link[c]),
            math.exp(judged.link_limit),
        )
        for c in judged.links
    ]
    return nodes + links


def again(suspected: Sequence[Suspect], effects: Sequence[Effects], most: int = 32, beside: int = 8) -> tuple[int, ...]:
    """Who is measured again: the ends of the suspects, the slowest first, and others that looked like the rest.

    So every suspect meets other partners, and they are enough to show what is usual.

    Args:
        suspected: suspects, the slowest first.
        effects: of every metric.
        most: at most so many ends of suspects.
        beside: at least so many others, and as many as ends; fewer where there are no more.
    """
    ends: dict[int, None] = {}
    for suspect in suspected:
        if len({*ends, *suspect.ends}) <= most:
            ends |= dict.fromkeys(suspect.ends)
    strange = np.max([np.abs(effect.node) / max(spread(effect.node), 1e-12) for effect in effects], axis=0)
    calm = [int(i) for i in np.argsort(strange, kind="stable") if int(i) not in ends]
    return tuple(sorted([*ends, *calm[: max(beside, len(ends))]]))


def confirm(
    suspected: Sequence[Suspect], sweep: Mapping[str, Floats], members: Sequence[int], alpha: float = ALPHA
) -> dict[Suspect, Suspect | None]:
    """What the repeat says of each suspect: what it found, None where it cleared it. Those not repeated are left out.

    Args:
        suspected: the suspects.
        sweep: the repeat, as in :func:`suspects`; measured afresh.
        members: the nodes of the repeat, in the order of its columns.
        alpha: chance that any suspect is found again by chance.
    """
    place = {node: k for k, node in enumerate(members)}
    repeated = [suspect for suspect in suspected if all(end in place for end in suspect.ends)]
    share = alpha / max(1, len(repeated))
    outcomes: dict[Suspect, Suspect | None] = {}
    judged = {metric: judge(passes, len(members), DELTAS[metric], share, (1, 1)) for metric, passes in sweep.items()}
    for suspect in repeated:
        result = judged[suspect.metric]
        ends = [place[end] for end in suspect.ends]
        if suspect.kind == "node":
            effect, limit = result.effects.node[ends[0]], result.node_limit
        else:
            effect, limit = result.effects.link[column_of(len(members), *ends)], result.link_limit
        repeat = Suspect(suspect.kind, suspect.ends, suspect.metric, math.exp(effect), math.exp(limit))
        outcomes[suspect] = repeat if effect > limit else None
    return outcomes


def tail(samples: Floats) -> Floats:
    """Mean of the slowest :data:`TAIL` of the samples, at least of one, along the last axis."""
    count = max(1, math.ceil(TAIL * samples.shape[-1]))
    slowest: Floats = np.partition(samples, -count, axis=-1)[..., -count:].mean(axis=-1)
    return slowest
