"""Groups of nodes, such as racks, whose links among themselves are faster than those to others. Pure.

A group is no fault: its nodes are further from the others for good. Found in the table of all pairs, it is taken out
before nodes are compared (docs/statistics.md, All pairs).
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # it loads scipy.cluster when that is first used: help pages need none of it
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

LEAST = 6
"""With fewer nodes two groups look like slow links."""
MOST = 16
"""Most groups that are looked for."""
MANY = 256
"""With more nodes groups are looked for only where the tree is high, since each look at all pairs takes a while."""
LEAST_GAP = math.log1p(0.03)
"""Least difference between groups, in logs: what is less does not count as slow either."""
_SIGMA = 1.482602218505602
_SURE = 5.0
"""Least difference between groups, in standard deviations of the values around the medians of their groups."""
_AGREE = 0.75
"""Share of a node's links that must be on the right side, and share of the nodes of which this is asked."""


def groups_of(values: Floats, n: int) -> Ints:
    """Find groups of nodes by average linkage, as many as stand clearly apart.

    Args:
        values: logs of times by pair, shape (pairs,), in the order of :func:`~omb_py.results.checks.links.pair_ends`.
        n: number of nodes.

    Returns:
        The group of each node from 0, shape (n,); all 0 where there are no groups. Every group has two nodes or more: a
        node that is far from all others is a slow node.
    """
    whole = np.zeros(n, np.intp)
    if n < LEAST or np.ptp(values) < LEAST_GAP:
        return whole
    tree = scipy.cluster.hierarchy.linkage(values - values.min() + 1.0, "average")
    if n > MANY and tree[-1, 2] - 1.0 + values.min() - np.quantile(values, 0.1) < LEAST_GAP:
        return whole
    grid = np.zeros((n, n))
    grid[np.triu_indices(n, 1)] = values
    grid += grid.T
    best = whole
    for count in range(2, min(MOST, n // 2) + 1):
        cut = scipy.cluster.hierarchy.fcluster(tree, count, "maxclust")
        groups = _without_single_nodes(cut.astype(np.intp), grid)
        if groups.max() > best.max() and _stands_apart(groups, grid):
            best = groups
    return best


def _without_single_nodes(labels: Ints, grid: Floats) -> Ints:
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
    gap = float(np.median(between) - np.median(within))
    left = np.concatenate([within - np.median(within), between - np.median(between)])
    if gap < max(LEAST_GAP, _SURE * _SIGMA * float(np.median(np.abs(left)))):
        return False
    middle = (np.median(between) + np.median(within)) / 2
    pairs = [(a, b) for a in range(int(groups.max()) + 1) for b in range(a)]
    if any(np.median(grid[np.ix_(groups == a, groups == b)]) < middle for a, b in pairs):
        return False  # a group was divided
    near = grid < middle
    inside = (near & same & off).sum(axis=1) / np.maximum(1, (same & off).sum(axis=1))
    outside = (~near & ~same).sum(axis=1) / (~same).sum(axis=1)
    return bool(np.mean((inside >= _AGREE) & (outside >= _AGREE)) >= _AGREE)
