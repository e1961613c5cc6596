"""Slow nodes and slow links in measurements of every pair: pure functions.

Values are logs of times, so that more is slower and a difference is a ratio. Arrays have a column for each pair of n
nodes, in the order of :func:`pair_ends`, and a row for each launch, or for each pass where there is one launch only. A
pair counts by its fastest launch: what is slow for good is slow in every launch, and what a launch draws by chance is
not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, overload

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Kind = Literal["node", "link", "group"]

LEAST = 4
"""With fewer nodes a slow node looks like slow links."""
DELTAS: Mapping[str, float] = {"latency": 0.03, "tail": 1.0, "bandwidth": 0.03}
"""Metric -> part by which a node or link must be slower to count."""
ALPHA = 0.03
"""Largest chance, roughly, of any suspect in a sweep of healthy nodes: all metrics, nodes and links together."""
TAIL = 0.1
"""The tail of a pair is the mean of this share of its samples, the slowest."""
_SIGMA = 1.482602218505602
"""Standard deviation over median absolute deviation of a normal distribution: 1 / ndtri(3/4)."""
_MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of normal values."""
_POLISHES = 4
_TOLD = 0.2
"""Degrees of freedom of the spread of links for each pair that is left when nodes are taken out. The median of what a
median polish leaves tells less than a sum of squares, and is smaller; 0.2 keeps the rate in simulated sweeps."""
_PRIOR = 4
"""Weight of the noise in the spread of links: so many differences that show no more than the noise are added."""


@dataclass(frozen=True, slots=True)
class Effects:
    """The parts of a sweep: value of pair (i, j) = level of their groups + node[i] + node[j] + link."""

    level: float
    node: Floats
    link: Floats
    """Effect of each pair's link, shape (pairs,)."""
    groups: Ints
    """Group of each node, such as its rack; all 0 where there are none."""


@dataclass(frozen=True, slots=True)
class JudgedLinks:
    """The nodes and links of one metric of a sweep that are too slow. Limits and effects are in logs."""

    values: Floats
    """Value of each pair (:func:`usual_value`)."""
    effects: Effects
    node_limit: float
    link_limit: float
    nodes: Ints
    """Nodes beyond their limit, the slowest first."""
    links: Ints
    """Columns of the links beyond their limit, the slowest first."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node, a link or a group of nodes that is slower than the others, in one metric."""

    kind: Kind
    ends: tuple[int, ...]
    """The node, both ends of the link, or the nodes of a group, which are slow to all others but not to each other."""
    metric: str
    slower: float
    """Time over the time without its own effect."""
    limit: float
    """Largest value of `slower` that counts as chance."""


def pair_ends(n: int) -> tuple[Ints, Ints]:
    """List (smaller ends, larger ends) of all n(n - 1)/2 pairs of n nodes, each as an array."""
    first, second = np.triu_indices(n, 1)
    return first.astype(np.intp), second.astype(np.intp)


@overload
def column_of(n: int, a: int, b: int) -> int: ...


@overload
def column_of(n: int, a: Ints, b: Ints) -> Ints: ...


def column_of(n: int, a: int | Ints, b: int | Ints) -> int | Ints:
    """Compute the column of the pair of nodes a and b among n nodes, or the columns of many pairs."""
    i, j = np.minimum(a, b), np.maximum(a, b)
    column: int | Ints = i * n - i * (i + 1) // 2 + j - i - 1
    return column


def square(values: Floats, n: int, own: float = math.nan) -> Floats:
    """Arrange values by pair, shape (pairs,), as a symmetric matrix (n, n) with `own` on the diagonal."""
    grid = np.full((n, n), own)
    first, second = pair_ends(n)
    grid[first, second] = values
    grid[second, first] = values
    return grid


def take_apart(values: Floats, n: int) -> Effects:
    """Split a sweep into level, nodes and links by median polish on a symmetric table.

    The method is that of J. W. Tukey, Exploratory Data Analysis, 1977. A node's effect is the median over its pairs, so
    a few slow links do not move it, and a slow node does not show in each of its links. Groups of nodes that are nearer
    to each other (:func:`.racks.groups_of`) have levels of their own, so that a small rack is not a set of slow nodes.
    Time and memory grow with the number of pairs.

    Args:
        values: logs of times by pair, shape (pairs,).
        n: number of nodes, 3 or more.
    """
    groups = groups_of(values, n)
    node = np.zeros(n)
    levels = _levels(values, node, groups)
    for _ in range(_POLISHES):
        node = _row_medians(square(values - levels, n) - node[None, :])
        for group in range(int(groups.max()) + 1):
            members = groups == group
            # of two nodes the faster is the usual one
            node[members] -= np.median(node[members]) if members.sum() > 2 else node[members].min()
        levels = _levels(values, node, groups)
    first, second = pair_ends(n)
    return Effects(float(np.median(levels)), node, values - levels - node[first] - node[second], groups)


def _row_medians(grid: Floats) -> Floats:
    n = len(grid)
    medians: Floats = np.median(grid[~np.eye(n, dtype=bool)].reshape(n, n - 1), axis=1)
    return medians


def _levels(values: Floats, node: Floats, groups: Ints) -> Floats:
    """Level of each pair: that of its two groups, the median over nodes of the median over their pairs."""
    n = len(node)
    first, second = pair_ends(n)
    grid = square(values - node[first] - node[second], n)
    levels = np.empty_like(values)
    for a in range(int(groups.max()) + 1):
        for b in range(a, int(groups.max()) + 1):
            # half of all pairs may have a slow end, but not half of the pairs of most nodes
            block = grid[np.ix_(groups == a, groups == b)]
            rows = _row_medians(block) if a == b else np.median(block, axis=1)
            own = ((groups[first] == a) & (groups[second] == b)) | ((groups[first] == b) & (groups[second] == a))
            levels[own] = np.median(rows)
    return levels


def spread(values: Floats) -> float:
    """Estimate the standard deviation of values from their median absolute deviation."""
    return float(_SIGMA * np.median(np.abs(values - np.median(values))))


def single_noise(launches: Floats) -> float:
    """Estimate the standard deviation of one launch (or pass) of a pair, pooled over pairs; 0 with one of them."""
    count = len(launches)
    if count < 2:
        return 0.0
    off = launches - np.median(launches, axis=0)
    single = _SIGMA * np.median(np.abs(off)[np.abs(off) > 0]) if np.any(off) else 0.0
    return float(single * math.sqrt(count / (count - 1)))


@lru_cache(maxsize=64)
def of_fastest(count: int) -> float:
    """Standard deviation of the smallest of so many standard normal values.

    >>> of_fastest(1), round(of_fastest(2), 3), round(of_fastest(5), 3)
    (1.0, 0.826, 0.669)
    """
    if count == 1:
        return 1.0
    x = np.linspace(-9, 9, 4001)
    # the density of the smallest is proportional to φ(x) · (1 - Φ(x))^(count - 1)
    density = np.exp(-(x**2) / 2) * scipy.special.ndtr(-x) ** (count - 1)
    density /= density.sum()
    mean = float(density @ x)
    return math.sqrt(float(density @ (x - mean) ** 2))


def usual_value(launches: Floats, fresh: bool) -> tuple[Floats, float]:
    """Compute the value of each pair, and its standard error.

    Args:
        launches: shape (launches, pairs), or (passes, pairs) of one launch.
        fresh: True if every row is a launch of its own: the fastest counts. False for the passes of one launch: their
            median counts.
    """
    count, noise = len(launches), single_noise(launches)
    if fresh:
        return launches.min(axis=0), noise * of_fastest(count)
    return np.median(launches, axis=0), noise * _MEDIAN / math.sqrt(count)


def judge(
    passes: Floats, n: int, delta: float, alpha: float, counts: tuple[int, int] | None = None, fresh: bool = False
) -> JudgedLinks:
    """Find the nodes and links that are slower than chance explains.

    The limit is the largest of log(1 + delta) and Student's quantile, corrected for as many as are looked at, times
    each spread that applies: of the pairs' own noise, of links (1.4826 median |r| M/(M - N) for M pairs and N nodes,
    by simulation worth 0.2 (M - N) differences), of nodes, and of what noise leaves in a median of N - 1 links.

    Args:
        passes: logs of times, shape (launches, pairs), or (passes, pairs) of one launch.
        n: number of nodes, :data:`LEAST` or more.
        delta: part by which a node or link must be slower to count.
        alpha: chance that any node, and that any link, is beyond its limit although all are alike (Bonferroni).
        counts: how many nodes and how many links are tested; None means all.
        fresh: as in :func:`usual_value`.

    Raises:
        ValueError: there are too few nodes, or the columns are not the pairs of n nodes.
    """
    passes = np.atleast_2d(np.asarray(passes, np.float64))
    if n < LEAST or passes.shape[1] != n * (n - 1) // 2:
        raise ValueError(f"{passes.shape[1]} pairs of {n} nodes")
    values, error = usual_value(passes, fresh)
    effects = take_apart(values, n)
    pairs, looked = passes.shape[1], counts or (n, passes.shape[1])
    noise = _Spread(error, (len(passes) - 1) * pairs)
    groups = int(effects.groups.max()) + 1
    left = max(1, pairs - n - (groups * (groups + 1) // 2 - 1))
    between = _shrink(_Spread(spread(effects.link) * pairs / left, _TOLD * left), noise)
    link_limit = _limit((noise, between), delta, alpha, looked[1])
    # a node's effect holds the noise of its n - 1 links and their differences, and the differences between nodes
    shrink = _MEDIAN / math.sqrt(n - 1)
    of_links = [_Spread(deviation.sd * shrink, deviation.freedom) for deviation in (noise, between)]
    node_limit = _limit((*of_links, _Spread(spread(effects.node), n - 1)), delta, alpha, looked[0])
    return JudgedLinks(
        values,
        effects,
        float(node_limit),
        float(link_limit),
        _find_beyond(effects.node, node_limit),
        _find_beyond(effects.link, link_limit),
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """A standard deviation, and the number of independent differences from which it is estimated."""

    sd: float
    freedom: float


def _shrink(between: _Spread, noise: _Spread) -> _Spread:
    """Spread between links, drawn towards their noise where it is estimated from few links."""
    if noise.freedom == 0:
        return between
    freedom = between.freedom + _PRIOR
    return _Spread(math.sqrt((between.freedom * between.sd**2 + _PRIOR * noise.sd**2) / freedom), freedom)


def _limit(spreads: Sequence[_Spread], delta: float, alpha: float, count: int) -> float:
    """Limit that none of `count` values exceeds by chance, by Student's t since a spread of few values is uncertain."""
    known = [deviation for deviation in spreads if deviation.freedom > 0]
    chance = (
        float(scipy.special.stdtrit(deviation.freedom, 1 - alpha / max(1, count))) * deviation.sd for deviation in known
    )
    return max(math.log1p(delta), *chance)


def _find_beyond(values: Floats, limit: float) -> Ints:
    columns = np.flatnonzero(values > limit)
    return columns[np.argsort(-values[columns], kind="stable")]


def suspects(
    sweep: Mapping[str, Floats], n: int, alpha: float = ALPHA, fresh: bool = False, hosts: Sequence[str] = ()
) -> list[Suspect]:
    """Find the suspects of a sweep, the slowest first.

    Args:
        sweep: metric -> logs of times, shape (passes, pairs); metrics are keys of :data:`DELTAS`.
        alpha: chance of any suspect at all although all nodes and links are alike.
        fresh: as in :func:`usual_value`.
        hosts: host of each node, where several are of one host.
    """
    # nodes and links of each metric are separate families
    share = alpha / (2 * len(sweep))
    slow = []
    for metric, passes in sweep.items():
        judged = judge(passes, n, DELTAS[metric], share, fresh=fresh)
        slow += [*_name_suspects(judged, n, metric), *_slow_groups(judged.values, judged.effects.groups, metric, hosts)]
    return sorted(slow, key=lambda suspect: -suspect.slower)


def _name_suspects(judged: JudgedLinks, n: int, metric: str) -> list[Suspect]:
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


def _slow_groups(values: Floats, groups: Ints, metric: str, hosts: Sequence[str]) -> list[Suspect]:
    """Name each group of nodes but the largest that is slow to all others: behind an uplink, a switch, or in a rack.

    Of several ranks on a host each host is such a group by nature; two of them are not told from two racks.
    """
    of_host = [set(np.asarray(hosts)[groups == group]) for group in range(int(groups.max()) + 1)] if len(hosts) else []
    if not groups.any() or (len(of_host) == 2 and all(len(names) == 1 for names in of_host)):
        return []
    grid, sizes = square(values, len(groups)), np.bincount(groups)
    largest = groups[np.argmax(sizes[groups])]  # of equal ones that of the first node
    found = []
    for group in range(len(sizes)):
        gap, limit = _gap_of(groups == group, groups, grid, metric)
        if (group != largest or len(sizes) > 2) and gap > limit:
            ends = tuple(int(node) for node in np.flatnonzero(groups == group))
            found.append(Suspect("group", ends, metric, math.exp(gap), math.exp(limit)))
    return found


def _gap_of(
    members: NDArray[np.bool_], groups: Ints, grid: Floats, metric: str, fresh: bool = False
) -> tuple[float, float]:
    """Logs of how much longer links from these nodes to the others take than usual, and the limit.

    Usual are the links between the other groups where there are two or more, since all groups may be as far apart, and
    else those among the nodes of either side. The limit is :data:`_SURE` standard deviations of a link, so that no
    group is found in noise; in `fresh` data, by which the group was not chosen, of the difference of the two medians.
    """
    same = members[:, None] == members[None, :]
    apart = (groups[:, None] != groups[None, :]) & ~members[:, None] & ~members[None, :]
    usual = grid[apart] if apart.any() else grid[same & ~np.eye(len(members), dtype=bool)]
    between = grid[~same]
    gap = float(np.median(between) - np.median(usual))
    left = np.concatenate([usual - np.median(usual), between - np.median(between)])
    deviation = _SIGMA * float(np.median(np.abs(left)))
    error = _MEDIAN * math.sqrt(1 / usual.size + 1 / between.size) if fresh else 1.0
    return gap, max(math.log1p(DELTAS[metric]), LEAST_GAP, _SURE * deviation * error)


def _choose_sample(suspect: Suspect) -> tuple[int, ...]:
    """The ends that are measured again; of a group as many as show it."""
    return suspect.ends[:_OF_GROUP]


def choose_again(
    suspected: Sequence[Suspect], effects: Sequence[Effects], most: int = 32, beside: int = 8
) -> tuple[int, ...]:
    """Choose the nodes of the repeat: the ends of the suspects, and other nodes that looked like the rest.

    So every suspect meets other partners, and they are enough to show what is usual.

    Args:
        most: most ends of suspects.
        beside: fewest other nodes. There are at least as many as ends, and fewer only where no more exist.

    Returns:
        The nodes in order.
    """
    ends: dict[int, None] = {}
    for suspect in suspected:
        if len({*ends, *_choose_sample(suspect)}) <= most:
            ends |= dict.fromkeys(_choose_sample(suspect))
    strange = np.max([np.abs(effect.node) / max(spread(effect.node), 1e-12) for effect in effects], axis=0)
    calm = [int(i) for i in np.argsort(strange, kind="stable") if int(i) not in ends]
    return tuple(sorted([*ends, *calm[: max(beside, len(ends))]]))


def confirm(
    suspected: Sequence[Suspect],
    sweep: Mapping[str, Floats],
    members: Sequence[int],
    alpha: float = ALPHA,
    fresh: bool = False,
) -> dict[Suspect, Suspect | None]:
    """Judge each suspect again by the repeat.

    Args:
        sweep: fresh measurements of the repeat, as in :func:`suspects`.
        members: the nodes of the repeat, in the order of its columns.
        alpha: chance that any suspect is slow again by chance.
        fresh: as in :func:`usual_value`.

    Returns:
        Suspect -> the suspect as the repeat measured it, or None where it cleared it. Suspects that were not measured
        again are left out.
    """
    place = {node: k for k, node in enumerate(members)}
    repeated = [suspect for suspect in suspected if all(end in place for end in _choose_sample(suspect))]
    share = alpha / max(1, len(repeated))
    outcomes: dict[Suspect, Suspect | None] = {}
    judged = {
        metric: judge(launches, len(members), DELTAS[metric], share, (1, 1), fresh)
        for metric, launches in sweep.items()
    }
    for suspect in repeated:
        result = judged[suspect.metric]
        ends = [place[end] for end in suspect.ends if end in place]
        if suspect.kind == "group":
            of_group = np.isin(np.arange(len(members)), ends)
            effect, limit = 0.0, 0.0
            if not of_group.all():
                grid = square(result.values, len(members))
                effect, limit = _gap_of(of_group, result.effects.groups, grid, suspect.metric, fresh=True)
        elif suspect.kind == "node":
            effect, limit = result.effects.node[ends[0]], result.node_limit
        else:
            effect, limit = result.effects.link[column_of(len(members), *ends)], result.link_limit
        repeat = Suspect(suspect.kind, suspect.ends, suspect.metric, math.exp(effect), math.exp(limit))
        outcomes[suspect] = repeat if effect > limit else None
    return outcomes


def tail(samples: Floats) -> Floats:
    """Compute the mean of the slowest :data:`TAIL` of the samples, at least one, along the last axis."""
    count = max(1, math.ceil(TAIL * samples.shape[-1]))
    slowest: Floats = np.partition(samples, -count, axis=-1)[..., -count:].mean(axis=-1)
    return slowest


FEWEST_FOR_GROUPS = 6
"""With fewer nodes two groups look like slow links."""
MOST_GROUPS = 16
"""Most groups that are looked for."""
_OF_GROUP = 8
"""Most nodes of a group that are measured again."""
MANY_NODES = 256
"""With more nodes groups are looked for only where the tree is high, since each look at all pairs takes a while."""
LEAST_GAP = math.log1p(0.03)
"""Least difference between groups, in logs: what is less does not count as slow either."""
_SURE = 5.0
"""Least difference between groups, in standard deviations of the values around the medians of their groups."""
_AGREE = 0.75
"""Share of a node's links that must be on the right side, and share of the nodes of which this is asked."""


def groups_of(values: Floats, n: int) -> Ints:
    """Find groups of nodes by average linkage, as many as stand clearly apart.

    Args:
        values: logs of times by pair, shape (pairs,), in the order of :func:`~omb_py.results.checks.links.pair_ends`.

    Returns:
        The group of each node from 0, shape (n,); all 0 where there are no groups. Every group has two nodes or more: a
        node that is far from all others is a slow node.
    """
    whole = np.zeros(n, np.intp)
    if n < FEWEST_FOR_GROUPS or np.ptp(values) < LEAST_GAP:
        return whole
    tree = scipy.cluster.hierarchy.linkage(values - values.min() + 1.0, "average")
    if n > MANY_NODES and tree[-1, 2] - 1.0 + values.min() - np.quantile(values, 0.1) < LEAST_GAP:
        return whole
    grid, best = square(values, n, 0.0), whole
    for count in range(2, min(MOST_GROUPS, n // 2) + 1):
        cut = scipy.cluster.hierarchy.fcluster(tree, count, "maxclust")
        groups = _absorb_single_nodes(cut.astype(np.intp), grid)
        if groups.max() > best.max() and _stands_apart(groups, grid):
            best = groups
    return best


def _absorb_single_nodes(labels: Ints, grid: Floats) -> Ints:
    """Put nodes that are alone with the group to which their links are the fastest, and number the groups from 0."""
    names, sizes = np.unique(labels, return_counts=True)
    kept = names[sizes > 1]
    if len(kept) < 2:
        return np.zeros(len(labels), np.intp)
    groups = np.searchsorted(kept, labels).clip(max=len(kept) - 1)
    for node in np.flatnonzero(np.isin(labels, names[sizes == 1])):
        groups[node] = np.argmin([np.median(grid[node, labels == name]) for name in kept])
    return groups.astype(np.intp)


def _stands_apart(groups: Ints, grid: Floats) -> bool:
    """Say whether links within groups are clearly faster than those between them, seen from most of the nodes."""
    n = len(groups)
    same, off = groups[:, None] == groups[None, :], ~np.eye(n, dtype=bool)
    within, between = grid[same & off], grid[~same]
    near_value, far_value = float(np.median(within)), float(np.median(between))
    gap = far_value - near_value
    if gap < LEAST_GAP:
        return False
    left = np.concatenate([within - near_value, between - far_value])
    if gap < _SURE * _SIGMA * float(np.median(np.abs(left))):
        return False
    middle = (far_value + near_value) / 2
    pairs = [(a, b) for a in range(int(groups.max()) + 1) for b in range(a)]
    if any(np.median(grid[np.ix_(groups == a, groups == b)]) < middle for a, b in pairs):
        return False  # a group was divided
    near = grid < middle
    inside = (near & same & off).sum(axis=1) / np.maximum(1, (same & off).sum(axis=1))
    outside = (~near & ~same).sum(axis=1) / (~same).sum(axis=1)
    return bool(np.mean((inside >= _AGREE) & (outside >= _AGREE)) >= _AGREE)
