from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import (
    Body,
    Buffer,
    Host,
    Lap,
    Program,
    Region,
    Repeat,
    Requests,
    RequestSlot,
    Result,
    Stage,
    Stamp,
    Step,
    body,
    canonical,
    count_steps,
    program_hash,
    request_count,
    steps_of,
    walk,
)
from omb_py.options.table import change_cell, make_cell
from omb_py.suites.registry import BENCHMARKS
from tests.support import versions
from tests.support.every_step import A, R

BARRIER = steps.barrier()

GOLDEN: dict[str, str] = json.loads(versions.FILE.read_text())
"""The version of each benchmark. A new one means that numbers are no longer comparable with stored ones: say so in
the changelog, and write the file anew with ``python -m tests.support.versions``."""


def one(*nodes: Any, **more: Any) -> Program:
    return Program((), (Stage(body(*nodes), **more),))


class TestWalk:
    def test_the_innermost_repeat_gives_the_pass(self) -> None:
        mark, inner = Lap("outer"), Lap("inner")
        nodes: Body = (Repeat(2, (Repeat(3, (inner,)), mark)), Lap("after"))
        assert [(n.name, k) for n, k in walk(nodes) if isinstance(n, Lap)] == [
            ("inner", 0),
            ("inner", 1),
            ("inner", 2),
            ("outer", 0),
            ("inner", 0),
            ("inner", 1),
            ("inner", 2),
            ("outer", 1),
            ("after", 0),
        ]


class TestRegion:
    def test_moves_on_by_its_stride(self) -> None:
        assert Region("send", 16, 8, 8).at(3) == Region("send", 40, 8)


class TestLaps:
    def test_are_named_in_order_of_first_use_over_all_variants(self) -> None:
        stage = Stage(((Lap(), Lap("b"), Lap("a"), Lap("b")), (Repeat(2, (Stamp("c"),)), Lap("a"))))
        assert stage.laps == ("b", "a", "c")

    def test_slots_that_every_rank_has_come_first_and_leave_the_hash_of_other_programs_as_it_was(self) -> None:
        body = (Lap(), Lap("b"), Lap("a"))
        assert Stage((body,), slots=("a", "none")).laps == ("a", "none", "b")
        assert "slots" not in canonical(Stage((body,)))["Stage"]


class TestRequestCount:
    @pytest.mark.parametrize(
        ("nodes", "count"),
        [
            ((BARRIER,), 0),
            ((steps.wait(RequestSlot(4)),), 5),
            ((Repeat(64, (steps.nonblocking(steps.barrier(), RequestSlot(0, 1)),)),), 64),
            ((Repeat(64, (steps.nonblocking(steps.barrier(), RequestSlot(64, 1)),)),), 128),
            ((Repeat(3, (steps.nonblocking(steps.barrier(), RequestSlot(1, 2)),)),), 6),
            ((steps.waitall(Requests(10, 5)),), 15),
            ((Repeat(0, (steps.wait(RequestSlot(9)),)),), 0),
        ],
    )
    def test_counts_the_slots_that_are_used(self, nodes: Body, count: int) -> None:
        assert request_count(one(*nodes)) == count

    def test_looks_at_setup_teardown_and_every_variant(self) -> None:
        stage = Stage(
            ((steps.wait(RequestSlot(0)),), (steps.wait(RequestSlot(1)),)),
            setup=(steps.wait(RequestSlot(2)),),
            teardown=(steps.wait(RequestSlot(3)),),
        )
        assert request_count(Program((), (stage, Stage(body())))) == 4


class TestHash:
    def test_does_not_depend_on_the_order_of_operands(self) -> None:
        forwards = Step("send", {"peer": 1, "tag": 2, "dtype": "char"})
        backwards = Step("send", {"dtype": "char", "tag": 2, "peer": 1})
        assert list(forwards.operands) != list(backwards.operands)
        assert program_hash(one(forwards)) == program_hash(one(backwards))

    def test_a_host_call_counts_by_its_name(self) -> None:
        def a(session: Any) -> None: ...
        def b(session: Any) -> None: ...

        same = [program_hash(one(setup=(Host("fork", call),))) for call in (a, b)]
        assert same[0] == same[1] != program_hash(one(setup=(Host("spawn", a),)))

    @pytest.mark.parametrize(
        "other",
        [
            one(BARRIER, BARRIER),
            one(Lap(), BARRIER),
            one(Repeat(1, (BARRIER,))),
            one(BARRIER, name="second"),
            one(setup=(BARRIER,)),
            one(teardown=(BARRIER,)),
            Program((Buffer("send", 1),), (Stage(body(BARRIER)),)),
            Program((), (Stage(body(BARRIER)), Stage(body()))),
            Program((), (Stage(((BARRIER,), (BARRIER,))),)),
            one(steps.nonblocking(steps.barrier(), RequestSlot(0))),
            one(steps.compute(5)),
            one(steps.compute(Result("main", "time"))),
        ],
    )
    def test_changes_with_everything_that_a_program_does(self, other: Program) -> None:
        assert program_hash(other) != program_hash(one(BARRIER))

    @given(st.permutations(["a", "b", "c"]))
    def test_of_several_programs_keeps_their_order(self, names: list[str]) -> None:
        programs = {name: one(Lap(name)) for name in "abc"}
        same = program_hash(*(programs[n] for n in names)) == program_hash(*programs.values())
        assert same == (names == ["a", "b", "c"])

    def test_of_our_benchmarks_is_as_published(self) -> None:
        assert {name: versions.version(name) for name in BENCHMARKS} == GOLDEN

    @pytest.mark.parametrize("name", ["bw", "bcast", "allreduce"])
    def test_counts_and_binding_do_not_change_it(self, name: str) -> None:
        benchmark = BENCHMARKS[name]
        cell = make_cell(name, "mpi", "native", 8)
        other = change_cell(
            cell, binding="mpi4py", buffer="bytearray", iterations=7, warmup=1, auto=False, backend="mock"
        )
        world = World(0, 2)
        assert program_hash(benchmark.program(world, cell)) == program_hash(benchmark.program(world, other))


class TestCanonical:
    def test_names_what_it_holds(self) -> None:
        assert canonical(Lap("time")) == {"Lap": {"name": "time"}}
        assert canonical(Step("send", {"tag": 1, "peer": 0})) == {
            "Step": {"op": "send", "operands": {"peer": 0, "tag": 1}}
        }
        assert canonical((1, "a", [None])) == [1, "a", [None]]


def test_numbers_run_through_variants_then_setup_then_teardown_and_repeats_count_once() -> None:
    send, recv, barrier = steps.send(A, 1, "char"), steps.recv(A, 1, "char"), steps.barrier()
    stage = Stage(
        variants=((Lap(), Repeat(5, (send,)), recv, Lap("time")), (recv,)), setup=(barrier,), teardown=(steps.wait(R),)
    )
    assert steps_of(stage) == (send, recv, recv, barrier, steps.wait(R))
    assert stage.laps == ("time",) and count_steps(stage.variants[0]) == 2
