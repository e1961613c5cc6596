from __future__ import annotations

from dataclasses import replace
from operator import sub

import pytest

from omb_py.engine.measuring.cell_result import CellResult
from omb_py.engine.measuring.measure import measure
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Region, Stage, Step, body, walk
from omb_py.errors import LaunchFailed, UsageError
from omb_py.suites.registry import BENCHMARKS
from omb_py.testing.faults import InjectedFault, inject, parse_fault, spoil, with_fault
from tests.support.machines.simulated import cell, session
from tests.support.programs import ROTATING_BCAST


class TestParse:
    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("", None),
            ("flip:1", InjectedFault("flip", 1)),
            ("flip:1:8", InjectedFault("flip", 1, 8)),
            ("lost:0:1024", InjectedFault("lost", 0, 1024)),
        ],
    )
    def test_reads_kind_rank_and_size(self, text: str, fault: InjectedFault | None) -> None:
        assert parse_fault(text) == fault

    @pytest.mark.parametrize("text", ["flip", "flip:", "flip:one", "flip:1:big", "lost:1:"])
    def test_says_what_is_wanted(self, text: str) -> None:
        with pytest.raises(UsageError, match=r"KIND:RANK\[:SIZE\], for example flip:1:8"):
            parse_fault(text)

    def test_knows_the_nearest_kind(self) -> None:
        with pytest.raises(UsageError, match=r"unknown fault 'flp'.*flip"):
            parse_fault("flp:1:8")

    @pytest.mark.parametrize("text", ["flip:-1", "flip:1:8:3"])
    def test_refuses_what_it_would_not_do(self, text: str) -> None:
        with pytest.raises(UsageError):
            parse_fault(text)


class TestSpoil:
    @pytest.mark.parametrize(
        ("name", "rank", "region"),
        [
            ("latency", 0, Region("recv", 0, 8)),
            ("bw", 0, Region("ack", 0, 1)),
            ("bw", 1, Region("recv", 0, 8)),
            ("bibw", 0, Region("recv", 0, 8)),
            ("bcast", 1, Region("buf", 0, 8)),
            ("allreduce", 1, Region("recv", 0, 8)),
            ("alltoall", 1, Region("recv", 0, 16)),
        ],
    )
    def test_flips_what_is_received_last(self, name: str, rank: int, region: Region) -> None:
        world = World(rank, 2)
        program = spoil(BENCHMARKS[name].program(world, cell(name)), InjectedFault("flip", rank), world)
        (stage,) = program.stages
        assert stage.variants[0][-1] == Step("flip", {"recv": region, "iteration": -1})

    def test_leaves_a_program_that_receives_nothing(self) -> None:
        world = World(0, 2)
        program = BENCHMARKS["barrier"].program(world, cell("barrier"))
        assert spoil(program, InjectedFault("flip", 0), world) == program

    def test_strikes_in_every_variant(self) -> None:
        world = World(1, 3)
        program = spoil(ROTATING_BCAST.program(world, cell("bcast")), InjectedFault("flip", 1), world)
        assert [variant[-1].op for variant in program.stages[0].variants] == ["flip"] * 3  # type: ignore[union-attr]

    def test_leaves_later_stages(self) -> None:
        world = World(0, 2)
        made = BENCHMARKS["latency"].program(world, cell("latency"))
        two = replace(made, stages=(*made.stages, Stage(body(), "second")))
        assert spoil(two, InjectedFault("flip", 0), world).stages[1:] == two.stages[1:]

    def test_a_lost_message_is_a_receive_from_the_next_rank_that_nobody_answers(self) -> None:
        world = World(2, 3)
        made = spoil(BENCHMARKS["bcast"].program(world, cell("bcast")), InjectedFault("lost", 2), world)
        *_, (last, _) = walk(made.stages[0].variants[0])
        assert isinstance(last, Step) and (last.op, last["peer"]) == ("recv", 0)
        assert last["recv"].buffer in {buffer.name for buffer in made.buffers}


class TestWithFault:
    def test_without_a_fault_it_is_the_same_benchmark(self) -> None:
        assert with_fault(BENCHMARKS["bw"], None) is BENCHMARKS["bw"]

    @pytest.mark.parametrize(("rank", "size", "hit"), [(1, 8, True), (0, 8, False), (1, 16, False)])
    def test_strikes_on_one_rank_at_one_size(self, rank: int, size: int, hit: bool) -> None:
        spoiled = with_fault(BENCHMARKS["bcast"], InjectedFault("flip", 1, 8))
        what, world = cell("bcast", size), World(rank, 2)
        assert (spoiled.program(world, what) != BENCHMARKS["bcast"].program(world, what)) == hit

    @pytest.mark.parametrize(("name", "rank"), [("latency", 0), ("bibw", 1), ("bcast", 1), ("allreduce", 0)])
    def test_a_flip_makes_the_cell_fail(self, name: str, rank: int) -> None:
        spoiled = with_fault(BENCHMARKS[name], InjectedFault("flip", rank))
        done = measure(session(2), spoiled, cell(name, validate=True, iterations=11))
        assert done.validated is False and (done.wrong_bytes or 0) >= 10

    def test_a_lost_message_hangs_the_rank(self) -> None:
        spoiled = with_fault(BENCHMARKS["allreduce"], InjectedFault("lost", 1))
        with pytest.raises(LaunchFailed, match=r"rank 1 .*\(recv 1 B from 0\)"):
            measure(session(2), spoiled, cell("allreduce"))


class TestBusy:
    @staticmethod
    def measured(name: str, fault: str) -> CellResult:
        world = session(2)
        return measure(world, inject(world, fault)(BENCHMARKS[name]), cell(name, iterations=20))

    def test_reads_rank_time_and_share(self) -> None:
        assert parse_fault("busy:0:5000") == InjectedFault("busy", 0, nanoseconds=5000)
        assert parse_fault("busy:1:5000:33") == InjectedFault("busy", 1, nanoseconds=5000, every=33)

    @pytest.mark.parametrize("text", ["busy:0", "busy:0:1:2:3", "busy:0:x", "busy:0:5:0"])
    def test_says_what_is_wanted(self, text: str) -> None:
        with pytest.raises(UsageError, match=r"busy:RANK:NANOSECONDS\[:EVERY\], for example"):
            parse_fault(text)

    def test_waits_inside_the_timed_part_and_keeps_the_version(self) -> None:
        one, other = (self.measured("allreduce", fault) for fault in ("", "busy:0:5000"))
        assert other.program_hash == one.program_hash
        assert list(other.series["time"]["max"]) == pytest.approx([us + 5.0 for us in one.series["time"]["max"]])

    def test_waits_in_one_iteration_of_many(self) -> None:
        one, other = (self.measured("latency", fault) for fault in ("", "busy:0:8000:4"))
        late = map(sub, other.series["time"]["max"], one.series["time"]["max"])
        # half of the round trip
        assert sorted(late) == pytest.approx([0.0] * 15 + [4.0] * 5)
