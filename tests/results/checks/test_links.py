"""Slow nodes and links found in tables whose truth is known, and nothing found where there is nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from omb_py.results.checks import links
from omb_py.results.checks.links import Suspect, column_of, confirm, judge, pair_ends, suspects, take_apart
from tests.support.machines.fleet import Fleet, found_in, sweep

Floats = NDArray[np.float64]


@given(st.integers(3, 40), st.data())
def test_columns_are_pairs(n: int, data: st.DataObject) -> None:
    first, second = pair_ends(n)
    column = data.draw(st.integers(0, len(first) - 1))
    assert column_of(n, int(first[column]), int(second[column])) == column
    assert column_of(n, int(second[column]), int(first[column])) == column


@pytest.mark.slow
@given(st.integers(4, 30), st.integers(0, 99), st.floats(-5, 5))
def test_node_effects_that_add_up_are_recovered(n: int, seed: int, level: float) -> None:
    node = np.random.default_rng(seed).normal(0, 1, n)
    node[: (n - 1) // 2 + 1] = 0.0  # most are alike
    first, second = pair_ends(n)
    found = take_apart(level + node[first] + node[second], n)
    assert found.level + found.node[first] + found.node[second] + found.link == pytest.approx(
        level + node[first] + node[second]
    )


@pytest.mark.parametrize("n", [4, 5, 8, 33])
def test_one_slow_node_is_no_slow_link_and_one_slow_link_no_slow_node(n: int) -> None:
    first, second = pair_ends(n)
    slow = take_apart(np.where((first == 1) | (second == 1), 2.0, 0.0), n)
    assert slow.node == pytest.approx(np.eye(n)[1] * 2) and slow.link == pytest.approx(0)
    link = np.zeros(len(first))
    link[column_of(n, 1, 2)] = 2.0
    apart = take_apart(link, n)
    assert apart.node == pytest.approx(0) and apart.link == pytest.approx(link) and apart.level == 0


@pytest.mark.slow
@given(st.integers(4, 12), st.integers(0, 99), st.floats(-3, 3))
@settings(max_examples=40)
def test_the_unit_and_the_names_of_the_nodes_do_not_matter(n: int, seed: int, shift: float) -> None:
    random = np.random.default_rng(seed)
    passes = random.normal(0, 0.05, (3, n * (n - 1) // 2))
    passes[:, 0] += 1.0
    judged = judge(passes, n, 0.03, 0.01)
    moved = judge(passes + shift, n, 0.03, 0.01)
    assert moved.node_limit == pytest.approx(judged.node_limit)
    assert moved.effects.link == pytest.approx(judged.effects.link)
    order = random.permutation(n)
    first, second = pair_ends(n)
    renamed = np.array([column_of(n, int(order[a]), int(order[b])) for a, b in zip(first, second, strict=True)])
    again = judge(passes[:, renamed], n, 0.03, 0.01)
    assert again.link_limit == pytest.approx(judged.link_limit)
    assert sorted(renamed[again.links]) == sorted(judged.links)


def test_what_is_alike_to_the_last_digit_is_not_suspect() -> None:
    assert suspects({"latency": np.zeros((5, 6)), "bandwidth": np.zeros((1, 6))}, 4) == []


def test_less_than_delta_does_not_count_however_sure_it_is() -> None:
    passes = np.zeros((5, 28))
    passes[:, 3] = math.log(1.029)
    assert suspects({"latency": passes}, 8) == []
    passes[:, 3] = math.log(1.031)
    (found,) = suspects({"latency": passes}, 8)
    assert (found.kind, found.ends, found.slower) == ("link", (0, 4), pytest.approx(1.031))


@pytest.mark.parametrize(("n", "pairs"), [(3, 3), (4, 5)])
def test_tables_that_cannot_be_judged(n: int, pairs: int) -> None:
    with pytest.raises(ValueError, match=f"{pairs} pairs of {n} nodes"):
        judge(np.zeros((1, pairs)), n, 0.03, 0.01)


def test_the_tail_is_the_mean_of_the_slowest_tenth() -> None:
    assert links.tail(np.arange(20.0)) == 18.5
    assert links.tail(np.array([[3.0, 1.0], [5.0, 9.0]])).tolist() == [3.0, 9.0]


def test_the_spread_of_the_fastest_is_that_of_the_smallest_order_statistic() -> None:
    # variances of the smallest of two and of three standard normal values, in closed form
    three = 1 + (math.sqrt(3) / 2 - 9 / 4) / math.pi
    assert links.of_fastest(2) == pytest.approx(math.sqrt(1 - 1 / math.pi), rel=1e-6)
    assert links.of_fastest(3) == pytest.approx(math.sqrt(three), rel=1e-6)


def test_who_is_measured_again_meets_others_that_look_usual() -> None:
    fleet = Fleet(64, links={(3, 9): 3.0}, slow={20: 2.0})
    found = suspects(sweep(fleet, 1), 64)
    members = links.choose_again(found, [take_apart(np.median(p, axis=0), 64) for p in sweep(fleet, 1).values()])
    assert {3, 9, 20} <= set(members) and len(members) == 3 + 8
    assert members == tuple(sorted(members))


def test_a_repeat_clears_what_was_only_there_once() -> None:
    once, real = Suspect("link", (0, 1), "latency", 2.0, 1.1), Suspect("node", (5,), "latency", 2.0, 1.1)
    elsewhere = Suspect("node", (63,), "latency", 2.0, 1.1)
    repeat = sweep(Fleet(8, slow={5: 1.5}), 7)
    said = confirm([once, real, elsewhere], repeat, tuple(range(8)))
    assert said[once] is None and elsewhere not in said
    assert said[real] is not None and said[real].slower == pytest.approx(1.5, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fleet", "wanted"),
    [
        (Fleet(4, noise=0.10, passes=5, links={(0, 2): 4.0}), {("link", (0, 2))}),
        (Fleet(4, noise=0.10, passes=5, slow={1: 4.0}), {("node", (1,))}),
        (Fleet(8, noise=0.10, passes=5, links={(0, 2): 2.0}), {("link", (0, 2))}),
        (Fleet(8, noise=0.10, passes=5, links={(1, 3): 2.0}, slow={0: 3.0}), {("link", (1, 3)), ("node", (0,))}),
    ],
)
def test_few_nodes_with_much_noise(fleet: Fleet, wanted: set[object]) -> None:
    """As on a small machine: 10 % noise, and something that is much slower."""
    for seed in range(20):
        assert {(one.kind, one.ends) for one in found_in(fleet, seed)} == wanted, seed


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sweeps"), [(4, 200), (8, 100), (64, 20)])
def test_healthy_fleets_are_left_alone(n: int, sweeps: int) -> None:
    """At most 5 % of the sweeps name anyone; tests/lab/error_rates/links.py counts many more."""
    flagged = sum(bool(found_in(Fleet(n), seed)) for seed in range(sweeps))
    assert flagged <= max(1, 0.05 * sweeps)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sweeps"), [(4, 100), (8, 40), (16, 20)])
def test_what_a_launch_draws_by_chance_is_not_slow_for_good(n: int, sweeps: int) -> None:
    """A tenth of the pairs 30 % slower in each launch. As passes of one launch, 43 to 100 % of sweeps named one."""
    fleet = Fleet(n, passes=5, drawn=0.1)
    assert sum(bool(found_in(fleet, seed, fresh=True)) for seed in range(sweeps)) <= max(1, 0.01 * sweeps)
    slow = Fleet(n, passes=5, drawn=0.1, links={(0, 2): 1.6})
    found = [{(one.kind, one.ends) for one in found_in(slow, seed, fresh=True)} for seed in range(5)]
    assert n == 4 or found.count({("link", (0, 2))}) >= 4


@pytest.mark.slow
def test_links_that_differ_for_good_are_rarely_suspects() -> None:
    """Their spread was told from a median polish as if it were least squares: 14 and 16 of 100 sweeps had a suspect."""
    sweeps = (sweep(Fleet(8, passes=5, launches="night"), seed) for seed in range(100))
    links_of = [[one for one in suspects(each, 8, fresh=True) if one.kind == "link"] for each in sweeps]
    assert sum(map(bool, links_of)) <= 6  # 3 are meant


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sweeps"), [(64, 8), (256, 1)])
def test_a_node_6_percent_slow_is_found(n: int, sweeps: int) -> None:
    for seed in range(sweeps):
        found = found_in(Fleet(n, slow={n // 3: 1.06}), seed)
        assert ("node", (n // 3,)) in {(one.kind, one.ends) for one in found}, seed


@pytest.mark.slow
def test_memory_and_time_go_with_the_number_of_pairs() -> None:
    import time
    import tracemalloc

    def cost(n: int) -> tuple[float, float]:
        passes = np.random.default_rng(0).normal(0, 0.01, (1, n * (n - 1) // 2))
        tracemalloc.start()
        began = time.process_time()
        judge(passes, n, 0.03, 0.01)
        took = time.process_time() - began
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak / passes.size, took / passes.size

    cost(64)
    (small, fast), (large, slow) = cost(256), cost(1024)
    assert large < 1.5 * small and large < 400  # bytes a pair
    assert slow < 10 * fast
