"""Late ranks and late nodes: which is the slowest, how often, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.theme import Trace
from omb_py.dashboards.base.view import View, plural, table
from omb_py.results.analysis.stragglers import Last
from omb_py.results.analysis.stragglers import stragglers as late_ranks_of
from omb_py.results.units import size_text


def stragglers(rows: pd.DataFrame) -> View | None:
    """The share of calls in which each rank was the slowest, and its mean over the median rank at each size.

    `rows` are cells of one benchmark with one number of ranks, with ``slowest_rank_share``, ``rank_mean_us`` (lists by
    rank) and ``hosts``; those whose lists have another length are left out. None where fewer than two ranks were timed.
    """
    count = max(map(_count_values, rows["slowest_rank_share"]), default=0)
    lists = zip(rows["slowest_rank_share"], rows["rank_mean_us"], strict=True)
    known = rows[[_count_values(a) == count > 1 and _count_values(b) == count for a, b in lists]]
    if not len(known):
        return None
    share = np.mean(_stack(known["slowest_rank_share"]), axis=0)
    hosts = _hosts(known, count)
    names = [f"{rank} ({host})" if host else str(rank) for rank, host in enumerate(hosts)]
    sizes = sorted({int(s) for s in known["size_bytes"].fillna(0)})
    excess = _excess(known, sizes)
    late, even = int(share.argmax()), 1 / count
    title = (
        f"{known['benchmark'].iloc[0]}, {count} ranks: rank {names[late]} is the slowest in "
        f"{100 * share[late]:.0f} % of calls"
    )
    title += " (ties count for each)" if share.sum() > 1.001 else f", an even share is {100 * even:.0f} %"
    return View(
        "stragglers",
        title,
        series.caption(known),
        {"data": [*_bars(share, names), _heat(excess, sizes)], "layout": _layout(count, sizes)},
        notes=("Above: dashed is an even share. Below: a rank's mean time over that of the median rank.",),
        **table(
            ("rank", "host", "slowest, % of calls", "largest excess, %"),
            [(r, hosts[r], float(100 * share[r]), theme.finite(np.nanmax(excess[:, r]))) for r in range(count)],
        ),
    )


def _stack(lists: Iterable[ArrayLike]) -> NDArray[np.float64]:
    return np.stack([np.asarray(values, dtype=np.float64) for values in lists])


def _excess(known: pd.DataFrame, sizes: Sequence[int]) -> NDArray[np.float64]:
    """By size and rank: how many percent the rank's mean time lies over that of the median rank."""
    lines = []
    for size in sizes:
        each = _stack(known[known["size_bytes"].fillna(0) == size]["rank_mean_us"])
        with np.errstate(divide="ignore", invalid="ignore"):
            lines.append(np.median(100 * (each / np.median(each, axis=1, keepdims=True) - 1), axis=0))
    return np.array(lines)


def _bars(share: NDArray[np.float64], names: Sequence[str]) -> list[Trace]:
    count = len(names)
    hover = "rank %{text}: slowest in %{y:.1f} % of calls<extra></extra>"
    look = {"text": [theme.escape(n) for n in names], "textposition": "none", "marker": {"color": theme.colour(0)}}
    bars = {"type": "bar", "x": list(range(count)), "y": theme.numbers(100 * share), "name": "share of calls", **look}
    dashed = {"line": {"color": theme.colour(1), "dash": "dash", "width": 1.5}, "hoverinfo": "skip"}
    even = [100 / count, 100 / count]
    return [{**bars, "hovertemplate": hover}, theme.scatter("lines", [-0.5, count - 0.5], even, "even share", **dashed)]


def _heat(excess: NDArray[np.float64], sizes: Sequence[int]) -> Trace:
    reach = float(max(np.nanmax(np.abs(excess)) if np.isfinite(excess).any() else 0, 1))
    bar = {"title": {"text": "%"}, "len": 0.48, "y": 0.2, "thickness": 12}
    return {
        **theme.diverging(0, reach, bar, "rank %{x}, %{y}: %{z:.1f} % over the median rank<extra></extra>"),
        "x": list(range(excess.shape[1])),
        "y": [size_text(s) if s else "no size" for s in sizes],
        "z": [theme.numbers(line) for line in excess],
        "xaxis": "x2",
        "yaxis": "y2",
        "reversescale": True,
    }


def _layout(count: int, sizes: Sequence[int]) -> theme.Layout:
    ends = {"range": [-0.5, count - 0.5]}
    every = {"dtick": 1} if count <= 16 else {}
    return theme.layout(
        showlegend=False,
        height=420 + 8 * len(sizes),
        xaxis={"domain": [0, 1], "anchor": "y", "showticklabels": False, **ends},
        yaxis={"domain": [0.62, 1], "title": {"text": "slowest (% of calls)"}, "rangemode": "tozero"},
        xaxis2={"anchor": "y2", "title": {"text": "rank"}, **ends, **every},
        yaxis2={"domain": [0, 0.52], "title": {"text": "message size"}, "type": "category"},
    )


def _count_values(values: object) -> int:
    return len(values) if values is not None and hasattr(values, "__len__") else 0


def _hosts(rows: pd.DataFrame, count: int) -> list[str]:
    for hosts in rows.get("hosts", ()):
        if _count_values(hosts) == count:
            return [str(host) for host in hosts]
    return [""] * count


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
    """The nodes that are late, the latest first, by rows with ``slowest_rank_share``, ``hosts`` and ``iterations``."""
    late: dict[str, list[tuple[float, float, pd.DataFrame]]] = {}
    if not len(ranked):
        return []
    lists = zip(ranked["slowest_rank_share"], ranked["hosts"], strict=True)
    usable = ranked[[_count_values(shares) == _count_values(hosts) > 1 for shares, hosts in lists]]
    for places, hosts, cells, single in _parts(usable):
        for straggler in late_ranks_of(cells):
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
    """Places of the rows of one benchmark, side and set of hosts; hosts, shares by host, hosts with one late rank."""
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
