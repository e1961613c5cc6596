"""The calls of the collectives: who passes what, where the blocks lie, in place too (reference section 1.3)."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Blocks, Region, Step
from omb_py.suites.collective.calls import COLLECTIVES
from omb_py.suites.collective.forms import calls_of
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell

SEND, RECV, BUF = Region("send", 0, 16), Region("recv", 0, 16), Region("buf", 0, 16)
OUT, ALL = Region("send", 0, 48), Region("recv", 0, 48)
BLOCKS_OUT, BLOCKS_IN = Blocks.packed("send", (16,) * 3), Blocks.packed("recv", (16,) * 3)
NONE_OUT, NONE_IN = Blocks.packed("send", (0,) * 3), Blocks.packed("recv", (0,) * 3)
NOTHING_OUT, NOTHING_IN = Region("send", 0, 0), Region("recv", 0, 0)
MINE_IN, MINE_OUT = Region("recv", 32, 16), Region("send", 32, 16)

Made = tuple[Step, int, int]
"""A call, bytes of the send buffer, bytes of the receive buffer."""

PLAIN: dict[str, tuple[Made, Made]] = {
    "reduce": ((steps.reduce(SEND, RECV, 2, "int32", "sum"), 16, 16),) * 2,
    "allreduce": ((steps.allreduce(SEND, RECV, "int32", "sum"), 16, 16),) * 2,
    # four elements on three ranks: the first gets one more
    "reduce_scatter": (
        (steps.reduce_scatter(SEND, Region("recv", 0, 4), (2, 1, 1), "int32", "sum"), 16, 4),
        (steps.reduce_scatter(SEND, Region("recv", 0, 8), (2, 1, 1), "int32", "sum"), 16, 8),
    ),
    # four elements on three ranks: one each, one left over
    "reduce_scatter_block": (
        (steps.reduce_scatter_block(Region("send", 0, 12), Region("recv", 0, 4), "int32", "sum"), 12, 4),
    )
    * 2,
    # nothing is kept where nothing is read or written
    "gather": ((steps.gather(SEND, ALL, 2, "char"), 16, 48), (steps.gather(SEND, NOTHING_IN, 2, "char"), 16, 0)),
    "gatherv": ((steps.gatherv(SEND, BLOCKS_IN, 2, "char"), 16, 48), (steps.gatherv(SEND, NONE_IN, 2, "char"), 16, 0)),
    "scatter": ((steps.scatter(OUT, RECV, 2, "char"), 48, 16), (steps.scatter(NOTHING_OUT, RECV, 2, "char"), 0, 16)),
    "scatterv": (
        (steps.scatterv(BLOCKS_OUT, RECV, 2, "char"), 48, 16),
        (steps.scatterv(NONE_OUT, RECV, 2, "char"), 0, 16),
    ),
    "allgather": ((steps.allgather(SEND, ALL, "char"), 16, 48),) * 2,
    "allgatherv": ((steps.allgatherv(SEND, BLOCKS_IN, "char"), 16, 48),) * 2,
    "alltoall": ((steps.alltoall(OUT, ALL, "char"), 48, 48),) * 2,
    "alltoallv": ((steps.alltoallv(BLOCKS_OUT, BLOCKS_IN, "char"), 48, 48),) * 2,
    "alltoallw": ((steps.alltoallw(BLOCKS_OUT, BLOCKS_IN, "char"), 48, 48),) * 2,
}
"""On three ranks, 16 bytes, root 2: the call of the root (or of the last rank) and that of rank 0."""

IN_PLACE: dict[str, dict[str, Any]] = {
    "reduce": {"send": RECV},
    "allreduce": {"send": RECV},
    "reduce_scatter": {"send": RECV},
    "reduce_scatter_block": {"send": Region("recv", 0, 12)},
    "gather": {"send": MINE_IN},
    "gatherv": {"send": MINE_IN},
    "scatter": {"recv": MINE_OUT},
    "scatterv": {"recv": MINE_OUT},
    "allgather": {"send": MINE_IN},
    "allgatherv": {"send": MINE_IN},
    "alltoall": {"send": ALL},
    "alltoallv": {"send": BLOCKS_IN},
    "alltoallw": {"send": BLOCKS_IN},
}
"""What stands in for a region of the last rank's call."""
AT_ROOT_ONLY = {"reduce", "gather", "gatherv", "scatter", "scatterv"}


def made(name: str, rank: int, **more: Any) -> Made:
    (what,) = (c for c in COLLECTIVES if c.name == name)
    (call,), buffers = calls_of(what.call, World(rank, 3), cell(name, 16, root=2, **more))
    sizes = {b.name: b.nbytes for b in buffers}
    return call, sizes["send"], sizes["recv"]


@pytest.mark.parametrize("name", PLAIN)
def test_root_and_others_pass_what_they_must(name: str) -> None:
    assert (made(name, 2), made(name, 0)) == PLAIN[name]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_says_where_the_missing_part_lies(name: str) -> None:
    call, _, _ = made(name, 2)
    assert made(name, 2, in_place=True)[0] == steps.in_place(Step(call.op, {**call.operands, **IN_PLACE[name]}))
    assert ("in_place" in made(name, 0, in_place=True)[0].operands) == (name not in AT_ROOT_ONLY)


class TestUneven:
    def test_blocks_go_from_less_to_more_around_the_size(self) -> None:
        call, _, recv = made("allgatherv", 1, imbalance=0.5)
        assert call["recv"].sizes == (8, 16, 24)
        assert call["recv"].offsets == (0, 8, 24)
        assert (call["send"].nbytes, recv) == (16, 48)

    def test_what_two_ranks_exchange_is_equally_long(self) -> None:
        calls = [made("alltoallv", rank, imbalance=1.0)[0] for rank in range(3)]
        for a in range(3):
            assert calls[a]["send"].sizes == calls[a]["recv"].sizes
            for b in range(3):
                assert calls[a]["send"].sizes[b] == calls[b]["recv"].sizes[a]
        assert sorted(calls[0]["send"].sizes) == [0, 16, 32]

    def test_a_reduction_gives_uneven_blocks(self) -> None:
        call, send, _ = made("reduce_scatter", 1, imbalance=1.0)
        assert call["counts"] == (0, 1, 2) and send == 12


@pytest.mark.parametrize("name", [c.name for c in COLLECTIVES if "root" in c.options])
def test_the_root_can_be_chosen(name: str) -> None:
    program = BENCHMARKS[name].program(World(0, 4), cell(name, 16, root=3))
    call = program.stages[0].variants[0][1]
    assert isinstance(call, Step) and call["root"] == 3
