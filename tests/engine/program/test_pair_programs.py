"""The programs of a round of pairs."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Step, walk
from omb_py.engine.program.pair_programs import IDLE, PairPrograms
from omb_py.suites.registry import find
from tests.support.machines.simulated import cell


@pytest.mark.parametrize("name", ["latency", "bw"])
def test_each_rank_of_a_pair_names_the_other_and_the_rest_do_nothing(name: str) -> None:
    benchmark, what = find(name), cell(name)
    ends = benchmark.program(World(0, 2), what), benchmark.program(World(1, 2), what)
    programs = PairPrograms(ends, [(7, 3), (2, 4)]).of_ranks((2, 3, 5, 7))
    assert sorted(programs) == [2, 3, 5, 7] and programs[5] is IDLE
    for rank, peer in ((7, 3), (3, 7), (2, 4)):
        body = programs[rank].stages[0].variants[0]
        assert {n["peer"] for n, _ in walk(body) if isinstance(n, Step) and "peer" in n.operands} == {peer}
