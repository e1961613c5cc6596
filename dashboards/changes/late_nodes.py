"""Nodes all of whose ranks are late: which node finishes last more often than its share of the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.view import plural
from omb_py.results.analysis.stragglers import Last, stragglers

if TYPE_CHECKING:
    import pandas as pd

ONE_RANK = 0.8
"""A rank with this share of its node's late calls is late by itself: the node is not."""


@dataclass(frozen=True)
class LateNode:
    """A node whose ranks are late."""

    host: str
    share: float
    """Share of the calls in which one of its ranks was the last, 0 to 1; median over :attr:`parts`."""
    even: float
    """Share that it would have if all nodes were alike, of the same part."""
    parts: tuple[pd.DataFrame, ...]
    """Cells in which it is late: of one benchmark, side and number of ranks each."""

    @property
    def sentence(self) -> str:
        """``node3 is late: …``."""
        benchmarks = {str(part["benchmark"].iloc[0]) for part in self.parts}
        return (
            f"{self.host} is late: one of its ranks is the last in {100 * self.share:.0f} % of the calls of "
            f"{plural(len(benchmarks), 'benchmark')}; an even share is {100 * self.even:.0f} %"
        )


def late_nodes(ranked: pd.DataFrame) -> list[LateNode]:
    """The nodes that are late, the latest first.

    Args:
        ranked: rows with ``slowest_rank_share``, ``hosts`` and ``iterations`` of launches on two nodes or more.
    """
    late: dict[str, list[tuple[float, float, pd.DataFrame]]] = {}
    for part, hosts, cells, single in _parts(ranked):
        for straggler in stragglers(cells):
            if straggler.rank not in single:
                late.setdefault(hosts[straggler.rank], []).append((straggler.share, straggler.chance, part))
    known = []
    for host, several in late.items():
        several.sort(key=lambda seen: seen[0])
        share, even, _ = several[len(several) // 2]
        known.append(LateNode(host, share, even, tuple(part for *_, part in several)))
    return sorted(known, key=lambda node: -node.share)


def _parts(ranked: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, list[str], list[Last], set[int]]]:
    """Cells of one benchmark, side and set of hosts: rows, hosts in order, shares by host, hosts with one late rank."""
    import numpy as np

    names = [n for n in (*series.PANEL, "library", "library_version", "binding", "ranks") if n in ranked]
    usable = ranked[[_alike(s, h) for s, h in zip(ranked["slowest_rank_share"], ranked["hosts"], strict=True)]]
    usable = usable.assign(_placed=[" ".join(map(str, hosts)) for hosts in usable["hosts"]])
    for _, part in usable.groupby([*names, "_placed"], dropna=False, observed=True):
        placed = [str(host) for host in part["hosts"].iloc[0]]
        hosts = list(dict.fromkeys(placed))
        counts = {placed.count(host) for host in hosts}
        if len(hosts) < 2 or len(counts) != 1 or min(counts) < 2:
            continue
        number = np.array([hosts.index(host) for host in placed])
        shares = np.stack([np.asarray(value, dtype=np.float64) for value in part["slowest_rank_share"]])
        by_host = np.stack([np.bincount(number, weights=row, minlength=len(hosts)) for row in shares])
        calls = [int(theme.finite(value) or 0) for value in part["iterations"]]
        # the store does not say how often the last rank changed: the longest stays that the test knows are assumed
        cells = [Last([float(v) for v in row], count, 0.0) for row, count in zip(by_host, calls, strict=True)]
        mean = shares.mean(axis=0)
        totals = np.bincount(number, weights=mean, minlength=len(hosts))
        single = {int(host) for rank, host in enumerate(number) if mean[rank] >= ONE_RANK * totals[host]}
        yield part.drop(columns="_placed"), hosts, cells, single


def _alike(shares: Any, hosts: Any) -> bool:
    return hasattr(shares, "__len__") and hasattr(hosts, "__len__") and len(shares) == len(hosts) > 1
