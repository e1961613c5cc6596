"""Tokens whose experts are drawn: exact counts, the limit of nodes, and two levels that lose no token."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.suites.workloads.routing import Routing, distinct, draw_copies
from tests.suites.workloads.test_families import calls

UNIFORM = (1.0,) * 64


def routing(**more: int) -> Routing:
    return Routing(**{"experts": 64, "top": 8, "tokens": 50, "ranks": 8, "node": 2, "limit": 0, "seed": 1, **more})


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_the_mean_of_distinct_ranks_is_exact(ranks: int, each: int, data: st.DataObject) -> None:
    """Against all choices of experts, counted one by one."""
    experts = ranks * each
    top = data.draw(st.integers(1, experts))
    counts = [len({expert // each for expert in chosen}) for chosen in combinations(range(experts), top)]
    assert distinct(ranks, top, experts) == pytest.approx(sum(counts) / len(counts))


@given(st.integers(0, 20), st.sampled_from([1, 2, 4, 8]), st.sampled_from([0, 1, 2, 3]), st.integers(1, 8))
def test_counts_agree_with_each_other(seed: int, node: int, limit: int, top: int) -> None:
    made = routing(seed=seed, node=node, limit=limit, top=top)
    copies, nodes = draw_copies(made, UNIFORM), 8 // node
    assert (copies.to_expert.sum(axis=1) == made.tokens * top).all()
    assert (copies.to_rank <= copies.to_expert).all() and (copies.to_rank <= made.tokens).all()
    by_node = copies.to_rank.reshape(8, nodes, node)
    assert (by_node.max(axis=2) <= copies.to_node).all() and (copies.to_node <= by_node.sum(axis=2)).all()
    assert (copies.to_node.sum(axis=1) <= made.tokens * min(limit or nodes, nodes)).all()


def test_a_token_has_distinct_experts_on_few_nodes() -> None:
    made = routing(limit=2)
    for rank in range(8):
        chosen = made.chosen(rank, UNIFORM)
        assert chosen.shape == (50, 8) and all(len(set(row)) == 8 for row in chosen.tolist())
        assert max(len({expert // 16 for expert in row}) for row in chosen.tolist()) == 2


def test_the_draw_follows_the_weights_and_the_seed() -> None:
    hot = tuple([100.0] + [1.0] * 63)
    assert (draw_copies(routing(tokens=400), hot).to_expert[:, 0] > 390).all(), "the hot expert is in nearly every draw"
    even = draw_copies(routing(tokens=4000), UNIFORM).to_rank.mean() / 4000 * 8
    assert even == pytest.approx(distinct(8, 8, 64), rel=0.01)
    again, other = draw_copies(routing(seed=1), UNIFORM), draw_copies(routing(seed=2), UNIFORM)
    assert np.array_equal(again.to_rank, draw_copies(routing(), UNIFORM).to_rank)
    assert not np.array_equal(again.to_rank, other.to_rank)


DEEPSEEK = "moe:tokens=64,experts=256,routing=drawn,node=4,limit=4,backward=on"


def test_two_levels_hand_every_copy_on() -> None:
    """What a node gets and has is handed on to its ranks: each has one copy of each token that it wants."""
    own = calls(DEEPSEEK, 32)
    flat = calls(f"{DEEPSEEK.replace('node=4,limit=4', 'node=4,limit=4,copies=ranks')}", 32)
    counted = draw_copies(Routing(256, 8, 64, 32, 4, 4, 1), (1.0,) * 256)
    assert [sum(c.back) for (_, c, *_) in own] == (counted.to_rank.sum(axis=0) * (7168 + 4 * 56)).tolist()
    assert [[c.sent for c in rank] for rank in own] == [[c.sent for c in rank] for rank in flat]
    for rank, (between, within, *rest) in enumerate(own):
        assert between.out[rank // 4] == 0, "nothing crosses to a rank's own node"
        assert sum(between.out) <= 64 * 4 * (7168 + 4 * 56), "at most four nodes a token"
        assert len(within.group) == 4 and len(between.group) == 8
        assert [c.dtype for c in (between, within, *rest)] == ["uint8", "uint8", "bfloat16", "bfloat16"] * 2
