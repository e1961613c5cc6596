"""Random pairs and rings: the same on every rank, each seen at both ends."""

from __future__ import annotations

from itertools import cycle

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Region
from omb_py.engine.program.steps import flip
from omb_py.suites.imb.random_pairs import BENCHMARKS, ROUNDS, pairs, rings
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, checked, measured, with_step

NAMES = [each.name for each in BENCHMARKS]


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_round_has_as_many_pairs_as_ranks_and_both_ends_know_them(ranks: int) -> None:
    for number in range(ROUNDS):
        sent = [(rank, peer) for rank in range(ranks) for peer, first in pairs(ranks)[rank][number] if first]
        received = [(peer, rank) for rank in range(ranks) for peer, first in pairs(ranks)[rank][number] if not first]
        assert sorted(sent) == sorted(received)
        assert len(sent) == ranks and all(one != other for one, other in sent)


def test_rounds_differ() -> None:
    assert len(set(pairs(8)[0])) > ROUNDS / 2
    assert len(set(rings(8)[0])) > ROUNDS / 2


@pytest.mark.parametrize("ranks", [2, 5])
def test_a_ring_visits_every_rank_once(ranks: int) -> None:
    for number in range(ROUNDS):
        after = {rank: rings(ranks)[rank][number][1] for rank in range(ranks)}
        assert {after[rank]: rank for rank in after} == {rank: rings(ranks)[rank][number][0] for rank in range(ranks)}
        visited = [0]
        while (following := after[visited[-1]]) != 0:
            visited.append(following)
        assert sorted(visited) == list(range(ranks))


@pytest.mark.parametrize("name", NAMES)
def test_each_iteration_is_another_round(name: str) -> None:
    (stage,) = find(name).program(World(0, 4), cell(name)).stages
    assert len(stage.variants) == ROUNDS


@pytest.mark.parametrize(("name", "ranks"), list(zip(NAMES, cycle((2, 3, 5)), strict=False)))
def test_every_byte_arrives_and_a_wrong_one_is_seen(name: str, ranks: int) -> None:
    spoiled = with_step(find(name), 0, flip(Region("recv", 0, 1)))
    assert checked(find(name), ranks, cell(name)) == 0
    assert checked(spoiled, ranks, cell(name)) > 0


def test_one_message_for_each_rank_or_two() -> None:
    """Two ranks: a message each way takes alpha; corandom's two messages at once, birandom's four."""
    assert measured("corandom", 2, "alpha=6us,beta=0ns", iterations=ROUNDS).laps["time"] == [6, 6]
    assert measured("birandom", 2, "alpha=6us,beta=0ns", iterations=ROUNDS).laps["time"] == [6, 6]
