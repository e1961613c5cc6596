"""The point-to-point programs, written out as C OMB's loops (reference section 1.2)."""

from __future__ import annotations

import pytest

from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Lap, Program, Region, Repeat, Requests, RequestSlot
from omb_py.engine.program.steps import irecv, isend, waitall
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.simulated import cell


def program(name: str, rank: int, **more: object) -> Program:
    return BENCHMARKS[name].program(World(rank, 2), cell(name, 16, window=64, **more))


OUT, IN = Region("send", 0, 16), Region("recv", 0, 16)


class TestBibw:
    @pytest.mark.parametrize("rank", [0, 1])
    def test_both_post_receives_then_sends_and_there_is_no_reply(self, rank: int) -> None:
        (stage,) = program("bibw", rank).stages
        peer, tags = 1 - rank, (100, 10)
        work = (
            Repeat(64, (irecv(IN, peer, "char", RequestSlot(0, 1), tags[peer]),)),
            Repeat(64, (isend(OUT, peer, "char", RequestSlot(64, 1), tags[rank]),)),
            waitall(Requests(64, 64)),
            waitall(Requests(0, 64)),
        )
        assert stage.variants == ((Lap(), *work, Lap("time")) if rank == 0 else work,)


class TestWindow:
    @pytest.mark.parametrize("name", ["bw", "bibw"])
    @pytest.mark.parametrize("rank", [0, 1])
    def test_all_messages_use_the_same_buffer_when_timed_and_one_each_when_validated(
        self, name: str, rank: int
    ) -> None:
        for distinct, stride in ((False, 0), (True, 16)):
            made = program(name, rank, distinct=distinct)
            posts = [node for node in made.stages[0].variants[0] if isinstance(node, Repeat)]
            regions = [step.operands.get("send") or step.operands["recv"] for post in posts for step in post.body]  # type: ignore[union-attr]
            assert regions and all(isinstance(r, Region) and r.stride == stride for r in regions)
            sizes = {buffer.name: buffer.nbytes for buffer in made.buffers}
            for region in regions:
                assert isinstance(region, Region)
                assert sizes[region.buffer] == (64 * 16 if distinct else 16)

    @pytest.mark.parametrize("name", ["bw", "bibw"])
    def test_of_any_size_changes_the_posts_and_the_waits(self, name: str) -> None:
        made = BENCHMARKS[name].program(World(0, 2), cell(name, 16, window=3)).stages[0].variants[0]
        assert [node.times for node in made if isinstance(node, Repeat)] == [3] * (2 if name == "bibw" else 1)


@pytest.mark.parametrize("name", ["latency", "bw", "bibw"])
def test_only_rank_0_is_timed(name: str) -> None:
    assert BENCHMARKS[name].timed == "rank 0"
    assert BENCHMARKS[name].metric.parts == (2 if name == "latency" else 1)
