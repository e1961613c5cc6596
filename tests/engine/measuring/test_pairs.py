"""Every pair of a world, measured with the benchmark's own program."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np

from omb_py.engine.measuring.cell_result import PairRound
from omb_py.engine.measuring.pairs import measure_pairs
from omb_py.engine.program.pair_schedule import Schedule
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell, session


def rounds(name: str, ranks: int, mock: str, schedule: Schedule, **more: object) -> list[PairRound]:
    return list(measure_pairs(session(ranks, mock), find(name), cell(name, pairs=schedule.text(), **more)))


def test_the_samples_of_every_pair_are_its_own() -> None:
    found = rounds("latency", 5, "alpha=1us,beta=0ns,slow=2:3,link=0-4:10", Schedule(5))
    assert [one.last for one in found] == [False] * 4 + [True]
    assert len({one.number for one in found}) == 5
    times = {pair: samples for one in found for pair, samples in zip(one.pairs, one.samples, strict=True)}
    assert sorted(times) == list(combinations(range(5), 2))
    for pair, samples in times.items():
        assert samples.dtype == np.float32
        assert samples.tolist() == [10.0 if pair == (0, 4) else 3.0 if 2 in pair else 1.0] * 10


def test_back_is_timed_by_the_other_end_and_serial_is_one_at_a_time() -> None:
    found = rounds("bw", 4, "noise=0.1", Schedule(1, "serial", "back", (0, 1, 3)), warmup=2)
    assert [one.samples.shape for one in found] == [(1, 10)] * 3
    assert sorted(pair for one in found for pair in one.pairs) == [(1, 0), (3, 0), (3, 1)]


def test_a_round_comes_back_from_its_message_as_it_was() -> None:
    (done,) = rounds("latency", 2, "", Schedule())
    back = PairRound.from_message(json.loads(json.dumps(done.to_message())))
    assert back.samples.tolist() == done.samples.tolist()
    assert replace(back, samples=done.samples) == done and back.last and back.pairs == [(0, 1)]


def test_the_version_is_that_of_the_benchmark_of_two() -> None:
    hashes = {one.program_hash for one in rounds("latency", 4, "", Schedule())}
    assert len(hashes) == 1
