"""Two collectives at once: on two communicators of all ranks, or on one of each half."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.groups import groups_of
from omb_py.errors import UsageError
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.program import program_of
from tests.suites.workloads.test_families import calls, step


def test_every_rank_calls_both_on_two_communicators() -> None:
    for rank, own in enumerate(calls("together:first=allreduce/64,second=alltoall/20,repeat=2", 4)):
        assert [(c.op, c.nbytes, c.group) for c in own] == [
            *[("allreduce", 64, ())] * 2,
            *[("alltoall", 32, (0, 1, 2, 3))] * 2,
        ]
        program = program_of(parse_workload("together"), World(rank, 4))
        assert groups_of(program) == [(0, 1, 2, 3)], "one is the world's communicator, the other is made"


def test_each_half_calls_its_own() -> None:
    made = calls("together:first=bcast/64,second=barrier,ranks=halves", 4)
    assert [[(c.op, c.group) for c in own] for own in made] == [[("bcast", (0, 1))]] * 2 + [[("barrier", (2, 3))]] * 2


def times(text: str, mock: str = "") -> Mapping[str, list[float]]:
    laps: Mapping[str, list[float]] = step(text, 4, mock=mock).laps
    return laps


def test_in_flight_the_two_overlap() -> None:
    laps = times("together")
    alone = [laps[f"serial.{label}"][0] for label in ("first", "second")]
    assert max(alone) <= laps["flight.time"][0] < sum(alone)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("together:first=alreduce/1M", "'alreduce'"),
        ("together:first=allreduce", "write allreduce/1M, with the bytes"),
        ("together:first=barrier/8", "write barrier"),
    ],
)
def test_what_is_no_collective(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_workload(text)
