"""A node is late when its ranks are, not when one of them is."""

from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.base import series
from omb_py.dashboards.figures.stragglers import LateNode, late_nodes


def late(cell, shares: list[float], hosts: str = "aabbccdd", **more: int) -> list[LateNode]:
    rows = [
        cell(2.0, n, benchmark=name, slowest_rank_share=shares, hosts=list(hosts), ranks=len(hosts), **more)
        for name in ("allreduce", "bcast")
        for n in range(4)
    ]
    return late_nodes(series.prepared(pd.DataFrame(rows)))


def test_a_node_whose_ranks_share_the_lateness(cell) -> None:
    (node,) = late(cell, [0.02, 0.02, 0.02, 0.02, 0.44, 0.44, 0.02, 0.02])
    assert (node.host, node.share, node.even) == ("c", pytest.approx(0.88), 0.25) and len(node.parts) == 2
    assert node.sentence == (
        "c is late: one of its ranks is the last in 88 % of the calls of 2 benchmarks; an even share is 25 %"
    )


@pytest.mark.parametrize(
    ("shares", "hosts"),
    [
        ([0.125] * 8, "aabbccdd"),  # nobody
        ([0.02, 0.02, 0.02, 0.02, 0.86, 0.02, 0.02, 0.02], "aabbccdd"),  # one rank
        ([0.02, 0.02, 0.02, 0.02, 0.44, 0.44, 0.02, 0.02], "abbbccdd"),  # nodes of unlike numbers of ranks
        ([0.5, 0.5, 0.0, 0.0], "aaaa"),  # one node
        ([0.9, 0.1], "ab"),  # one rank a node: a late rank
    ],
)
def test_what_is_no_late_node(cell, shares: list[float], hosts: str) -> None:
    assert late(cell, shares, hosts) == []


def test_three_calls_a_launch_are_too_few_to_name_a_node(cell) -> None:
    """The same rank may be last in all three by chance; four launches are four draws."""
    shares = [0.0, 0.0, 0.5, 0.5]
    assert late(cell, shares, "aabb", iterations=3) == []
    assert [node.host for node in late(cell, shares, "aabb", iterations=1200)] == ["b"]
