"""What is slow is named by groups; what cannot be known is a set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.results.checks.isolation import MOST_LAUNCHES, Culprit, Isolation
from tests.support.machines.slow_groups import FAULTS, KINDS, Machine, broken, searched, switches_of


@pytest.mark.slow
@given(
    st.integers(4, 150).filter(lambda nodes: nodes != 5),
    st.sampled_from([0, 1, 2, 3, 4, 7, 16]),
    st.integers(0, 2**32),
    st.floats(0, 1),
)
@settings(max_examples=100, deadline=None)
def test_every_split_has_all_nodes_once_and_groups_of_one_size(
    nodes: int, per_switch: int, seed: int, slow: float
) -> None:
    search, random = Isolation(nodes, switches_of(nodes, per_switch), seed), np.random.default_rng(seed)
    while (split := search.next_split()) is not None:
        assert sorted(node for group in (*split.groups, split.rest) for node in group) == list(range(nodes))
        assert len(split.groups) >= 2 and len({len(group) for group in split.groups}) == 1
        assert len(split.groups[0]) >= 2 and len(split.rest) != 1
        search.add(split, [2.0 if drawn < slow else 1.0 for drawn in random.random(len(split.groups))])
    assert search.launches <= MOST_LAUNCHES


@pytest.mark.slow
@given(st.integers(16, 200), st.booleans(), st.integers(0, 2**32), st.integers(0, 2), st.floats(1.35, 10))
@settings(max_examples=40, deadline=None)
def test_slow_nodes_are_named_and_no_others(nodes: int, tree: bool, seed: int, count: int, factor: float) -> None:
    slow = np.random.default_rng(seed).choice(nodes, count, replace=False).tolist()
    machine = Machine(nodes, "quiet", slow=dict.fromkeys(slow, factor))
    search = searched(machine, switches_of(nodes, 8) if tree and nodes % 8 == 0 else [], seed)
    assert set(search.named) == {Culprit("node", (node,)) for node in slow} and not search.possible


@pytest.mark.parametrize("per_switch", [1, 2, 3, 4, 5, 31])
def test_nodes_of_small_switches_are_judged_too(per_switch: int) -> None:
    for slow in (0, 30, 31):
        machine = Machine(32, "quiet", slow={slow: 1.5})
        assert Culprit("node", (slow,)) in searched(machine, switches_of(32, per_switch), 3).named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param(fault, KINDS[place % len(KINDS)], marks=pytest.mark.slow if place else ())
        for place, fault in enumerate(FAULTS)
    ],
)
def test_among_1024_nodes_it_is_named_in_95_of_100(fault: str, kind: str) -> None:
    """`python -m tests.lab.error_rates.isolation` counts more."""
    exact = innocent = 0
    for seed in range(100, 120):
        machine, wanted = broken(fault, 1024, 32, kind, seed, 1.5)
        search = searched(machine, switches_of(1024, 32), seed)
        exact += set(search.named) == wanted
        innocent += bool(set(search.named) - wanted)
    assert exact >= 19 and innocent == 0


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [2, 3])
def test_a_link_that_another_job_hides_in_some_launches_is_named(hidden: int) -> None:
    """The job slows the half without the link as much, so both are equal and slower than in other launches."""
    for seed in range(12):
        search, shown = Isolation(128, switches_of(128, 8), seed), 0
        while (split := search.next_split()) is not None:
            slow = [min(group) < 8 and any(8 <= node < 16 for node in group) for group in split.groups]
            shown += any(slow)
            hides = any(slow) and shown % hidden == 0
            search.add(split, [1.5 if own or hides else 1.0 for own in slow])
        assert search.named == [Culprit("link", (0, 1))]


def test_two_nodes_that_no_launch_told_apart_are_a_set() -> None:
    search = Isolation(16, seed=1)
    for _ in range(3):
        split = search.next_split()
        assert split is not None
        search.add(split, [2.0 if 3 in group else 1.0 for group in split.groups])
    assert search.named == [] and Culprit("node", (3,)) in search.possible


@pytest.mark.parametrize(("noise", "least", "most"), [(0.0, 1.2, 1.2), (0.05, 1.2, 1.3), (0.7, 3.0, 30.0)])
def test_it_says_how_slow_a_group_must_be_to_count(noise: float, least: float, most: float) -> None:
    search, random = Isolation(8), np.random.default_rng(1)
    while (split := search.next_split()) is not None:
        search.add(split, np.exp(noise * random.standard_normal(len(split.groups))).tolist())
    assert least - 1e-9 <= search.counted_from <= most + 1e-9


@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_too_few_nodes_are_refused(nodes: int) -> None:
    with pytest.raises(ValueError, match=f"{nodes} nodes make no two groups"):
        Isolation(nodes)
