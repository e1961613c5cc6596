"""latency_mt: iteration i is played by sender thread i % S and receiver thread i % R."""

from __future__ import annotations

from itertools import product

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Stage, Step
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell, measured

B = BENCHMARKS["latency_mt"]


def stages(counts: str) -> list[Stage]:
    return [B.program(World(rank, 2), cell(B.name, 16, thread_counts=counts)).stages[0] for rank in (0, 1)]


def tags(stage: Stage) -> list[list[int]]:
    return [[node["tag"] for node in body if isinstance(node, Step)] for body in stage.variants]


def test_one_sender_uses_one_tag_so_that_any_receiver_takes_the_next_message() -> None:
    sender, receiver = stages("1:3")
    assert (sender.threads, receiver.threads) == (1, 3)
    assert tags(sender) == tags(receiver) == [[1, 2]] * 3


@pytest.mark.parametrize("counts", ["2:3", "4:2", "3:3"])
def test_with_several_senders_the_tag_names_the_two_threads_that_belong_together(counts: str) -> None:
    sender, receiver = stages(counts)
    assert tags(sender) == tags(receiver)
    assert len({tuple(pair) for pair in tags(sender)}) == len(sender.variants)
    assert len(sender.variants) % sender.threads == len(receiver.variants) % receiver.threads == 0


def test_threads_of_a_rank_have_buffers_of_their_own() -> None:
    for rank, counts in product((0, 1), ("1:3", "2:3")):
        stage = stages(counts)[rank]
        used: dict[int, set[int]] = {}
        for number, body in enumerate(stage.variants):
            regions = [node.operands.get("send") or node["recv"] for node in body if isinstance(node, Step)]
            used.setdefault(number % stage.threads, set()).update(r.offset for r in regions)  # type: ignore[union-attr]
        assert sum(map(len, used.values())) == len(set().union(*used.values()))


def test_needs_thread_level_multiple_and_prints_the_mean_of_all_iterations() -> None:
    assert B.needs.thread_level == "multiple"
    assert measured(B.name, 2, "series=2us/4us/6us", iterations=3).laps["time"] == [4]
