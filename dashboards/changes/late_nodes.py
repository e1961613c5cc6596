"""Nodes all of whose ranks are late: which node finishes last more often than its share of the ranks."""

from __future__ import annotations

from collections import Counter
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
    usable = ranked[[_alike(s, h) for s, h in zip(ranked["slowest_rank_share"], ranked["hosts"], strict=True)]]
    for places, hosts, cells, single in _parts(usable):
        for straggler in stragglers(cells):
            if straggler.rank not in single:
                part = usable.iloc[places]
                late.setdefault(hosts[straggler.rank], []).append((straggler.share, straggler.chance, part))
    known = []
    for host, several in late.items():
        several.sort(key=lambda seen: seen[0])
        share, even, _ = several[len(several) // 2]
        known.append(LateNode(host, share, even, tuple(part for *_, part in several)))
    return sorted(known, key=lambda node: -node.share)


def _parts(usable: pd.DataFrame) -> Iterator[tuple[Any, list[str], list[Last], set[int]]]:
    """Cells of one benchmark, side and set of hosts: places of their rows, hosts, shares by host, hosts with one late
    rank."""
    import numpy as np

    names = [n for n in (*series.PANEL, "library", "library_version", "binding", "ranks") if n in usable]
    texts = usable.assign(_placed=[" ".join(map(str, hosts)) for hosts in usable["hosts"]])
    part_of = texts.groupby([*names, "_placed"], dropna=False, observed=True).ngroup().to_numpy()
    shares_of, hosts_of = usable["slowest_rank_share"].to_numpy(), usable["hosts"].to_numpy()
    calls_of = [int(theme.finite(value) or 0) for value in usable["iterations"]]
    for part in range(part_of.max() + 1 if part_of.size else 0):
        places = np.flatnonzero(part_of == part)
        placed = [str(host) for host in hosts_of[places[0]]]
        counts = Counter(placed)
        hosts = list(counts)
        if len(hosts) < 2 or len({*counts.values()}) != 1 or counts[hosts[0]] < 2:
            continue
        number = np.array([hosts.index(host) for host in placed])
        shares = np.stack([np.asarray(shares_of[place], dtype=np.float64) for place in places])
        by_host = shares @ (number[:, None] == np.arange(len(hosts)))
        # the store does not say how often the last rank changed: the longest stays that the test knows are assumed
        cells = [Last(row, calls_of[place], 0.0) for row, place in zip(by_host.tolist(), places, strict=True)]
        mean = shares.mean(axis=0)
        totals = by_host.mean(axis=0)
        single = {int(host) for rank, host in enumerate(number) if mean[rank] >= ONE_RANK * totals[host]}
        yield places, hosts, cells, single


def _alike(shares: Any, hosts: Any) -> bool:
    return hasattr(shares, "__len__") and hasattr(hosts, "__len__") and len(shares) == len(hosts) > 1
