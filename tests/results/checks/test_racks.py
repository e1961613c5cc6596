"""Groups of nodes that are nearer to each other: found where they are, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from omb_py.results.checks.links import column_of, confirm, groups_of, judge, pair_ends, suspects, take_apart
from tests.support.tiers import few_quick

Floats = NDArray[np.float64]


def racks(sizes: Sequence[int], gap: float = 0.4, noise: float = 0.015, seed: int = 1) -> Floats:
    """One value of each pair, where links between racks take longer by `gap` in logs."""
    own = np.repeat(np.arange(len(sizes)), sizes)
    first, second = pair_ends(len(own))
    return np.where(own[first] == own[second], 0.0, gap) + np.random.default_rng(seed).normal(0, noise, len(first))


@pytest.mark.parametrize("sizes", few_quick([(12, 4), (4, 4), (6, 2), (5, 5, 6), (20, 3, 2)], 2))
def test_racks_are_found_and_no_node_of_them_is_named(sizes: tuple[int, ...]) -> None:
    """Seen from the median of its links, every node of the smaller rack is slow."""
    for seed in range(5):
        values, n = racks(sizes, seed=seed), sum(sizes)
        groups = groups_of(values, n)
        assert len(set(groups.tolist())) == len(sizes) and sorted(np.bincount(groups)) == sorted(sizes)
        found = suspects({"latency": np.stack([values, racks(sizes, seed=seed + 100)])}, n)
        second = tuple(range(n - sizes[-1], n))
        assert [(one.kind, one.ends) for one in found] == ([("group", second)] if len(sizes) == 2 else [])


@pytest.mark.parametrize("sizes", [(4, 4), (9, 3), (5, 5, 6)])
def test_a_group_behind_a_slow_uplink_is_named_not_subtracted(sizes: tuple[int, ...]) -> None:
    """It was taken for a rack, and nothing was said, with exit code 0."""
    n, slow = sum(sizes), tuple(range(sum(sizes) - sizes[-1], sum(sizes)))
    first, second = pair_ends(n)
    over_the_uplink = np.isin(first, slow) != np.isin(second, slow)
    for seed in range(4):
        drawn = [racks(sizes, 0.0 if len(sizes) == 2 else 0.4, seed=10 * seed + look) for look in range(2)]
        sweep = {"bandwidth": np.stack([values + np.where(over_the_uplink, np.log(1.2), 0.0) for values in drawn])}
        (found,) = suspects(sweep, n)
        assert (found.kind, found.ends) == ("group", slow) and found.slower == pytest.approx(1.2, rel=0.03)
        (again,) = confirm([found], sweep, range(n)).values()
        assert again is not None and again.ends == slow


def test_two_hosts_of_several_ranks_are_no_racks() -> None:
    sweep = {"latency": np.stack([racks((4, 4), seed=seed) for seed in range(2)])}
    assert [one.kind for one in suspects(sweep, 8)] == ["group"]
    assert suspects(sweep, 8, hosts=["a"] * 4 + ["b"] * 4) == []


def test_a_group_that_a_repeat_does_not_show_is_cleared() -> None:
    slow = {"latency": np.stack([racks((5, 3), seed=seed) for seed in range(2)])}
    (found,) = suspects(slow, 8)
    assert confirm([found], {"latency": np.stack([racks((8,), seed=5)] * 2)}, range(8)) == {found: None}


@pytest.mark.parametrize("n", [4, 16])
def test_nodes_that_are_alike_make_no_groups(n: int) -> None:
    for seed in range(20):
        assert not groups_of(np.random.default_rng(seed).normal(0, 0.05, n * (n - 1) // 2), n).any()


@pytest.mark.parametrize("slow", [(3,), (3, 9)])
def test_slow_nodes_are_no_rack(slow: tuple[int, ...]) -> None:
    n = 16
    first, second = pair_ends(n)
    values = sum(np.where((first == node) | (second == node), 0.7, 0.0) for node in slow)
    values = values + np.random.default_rng(2).normal(0, 0.015, len(first))
    assert not groups_of(values, n).any()
    judged = judge(np.stack([values, values + 0.001]), n, 0.03, 0.01)
    assert sorted(judged.nodes.tolist()) == list(slow) and judged.links.size == 0


def test_a_slow_node_and_a_slow_link_are_named_within_racks() -> None:
    sizes, n = (12, 4), 16
    values = np.stack([racks(sizes, seed=seed) for seed in range(3)])
    first, second = pair_ends(n)
    values[:, (first == 13) | (second == 13)] += 0.25
    values[:, column_of(n, 2, 5)] += 0.5
    found = {(suspect.kind, suspect.ends) for suspect in suspects({"latency": values}, n)}
    assert found == {("node", (13,)), ("link", (2, 5)), ("group", (12, 13, 14, 15))}


@pytest.mark.slow
@given(st.integers(0, 99), st.floats(-5, 5))
@settings(max_examples=30)
def test_parts_add_up_and_the_names_of_nodes_do_not_matter(seed: int, shift: float) -> None:
    sizes, n = (6, 4), 10
    values = racks(sizes, seed=seed) + shift
    order = np.random.default_rng(seed).permutation(n)
    first, second = pair_ends(n)
    renamed = np.array([column_of(n, int(order[a]), int(order[b])) for a, b in zip(first, second, strict=True)])
    there, here = take_apart(values[renamed], n), take_apart(values, n)
    assert there.link == pytest.approx(here.link[renamed], abs=1e-9)
    assert there.node == pytest.approx(here.node[order], abs=1e-9)
