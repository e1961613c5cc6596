from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omb_py.backends.mock.session import MockSession
from omb_py.engine.measuring.measure import buffers_needed, measure, worlds_of
from omb_py.engine.measuring.payload import expectations
from omb_py.engine.measuring.validate import ITERATIONS, Checker, Log
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import Benchmark, Cell, World
from omb_py.engine.program.dtypes import DTYPES, OPS_OF, reduction_dtype
from omb_py.engine.program.language import Body, Node, Program, Region, Repeat, Step, templates
from omb_py.options.table import change_cell
from omb_py.suites.imb import random_pairs
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.kinds import checkable, one_of_each
from tests.support.machines.simulated import cell, checked, measured, session, with_step, wrong_bytes
from tests.support.programs import IALLREDUCE, ROTATING_BCAST

Change = Callable[[Step], Step]

CHECKABLE = [
    name for name, b in BENCHMARKS.items() if checkable(b) and not b.ranks.over_nodes and b.family != "workload"
]
"""Several nodes: tests/suites/pt2pt/test_congestion.py; workloads: tests/suites/workloads."""

VARIED_PEERS = tuple(each.name for each in random_pairs.BENCHMARKS)
"""Each variant receives in other places, or several times in one: tests/suites/imb/test_random_pairs.py."""


def kind_of(name: str) -> str:
    """The blocking form of a collective."""
    return steps.base(name.removesuffix("_persistent").removesuffix("_mt"))


def size_of(name: str) -> int:
    return 24 if kind_of(name).startswith("reduce_scatter") else 8  # three ranks get a block each


def ranks_of(name: str) -> int:
    """Three, or as many as it takes."""
    return next(n for n in (3, 2, 4, 8) if BENCHMARKS[name].ranks.admits(n))


def received(benchmark: Benchmark, what: Cell, ranks: int) -> Iterator[tuple[int, Region]]:
    """(rank, region) of everything that must be right after an iteration with distinct buffers."""
    for rank in range(ranks):
        world = World(rank, ranks)
        program = benchmark.program(world, replace(what, distinct=True))
        stage = program.stages[0]
        for region, _ in expectations(stage.variants[0], world, 0, templates(stage))[1]:
            yield rank, region


def changed(program: Program, change: Change) -> Program:
    """The program with every step replaced by ``change(step)``."""

    def nodes(body: Body) -> tuple[Node, ...]:
        made: list[Node] = []
        for node in body:
            if isinstance(node, Repeat):
                made.append(Repeat(node.times, nodes(node.body)))
            else:
                made.append(change(node) if isinstance(node, Step) else node)
        return tuple(made)

    return replace(program, stages=tuple(replace(s, variants=tuple(map(nodes, s.variants))) for s in program.stages))


class Careless(MockSession):
    """A library that does something else than it is told."""

    def __init__(self, ranks: int, change: Change) -> None:
        super().__init__({"ranks": ranks})
        self.change = change

    def load(self, cell: Cell, programs: Mapping[int, Program]) -> Any:
        return super().load(cell, {rank: changed(program, self.change) for rank, program in programs.items()})


def found_in(name: str, change: Change) -> int:
    """Wrong bytes that are found when the library does what `change` makes of the steps."""
    world = Careless(ranks_of(name), change)
    return wrong_bytes(world, BENCHMARKS[name], cell(name))


class TestRightData:
    @pytest.mark.parametrize("name", one_of_each(CHECKABLE))
    def test_has_no_wrong_byte(self, name: str) -> None:
        for size in (1, 7, 8, 1000):
            assert checked(BENCHMARKS[name], ranks_of(name), cell(name, size, dtype="char")) == 0, size


class TestFlippedByte:
    @pytest.mark.parametrize("name", one_of_each(set(CHECKABLE) - set(VARIED_PEERS)))
    def test_is_found_at_every_place_of_every_block_on_every_rank(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A byte of each block alone, then all at once: as many are wrong as were spoiled, so none is missed."""
        benchmark, ranks, what = BENCHMARKS[name], ranks_of(name), cell(name, size_of(name))
        places = [(r, region, at) for r, region in received(benchmark, what, ranks) for at in range(region.nbytes)]
        turns = len(benchmark.program(World(0, ranks), what).stages[0].variants)  # it is looked at in one of so many
        iterations = 2 * turns  # every one is spoiled: two say as much as ten
        monkeypatch.setattr("omb_py.engine.measuring.validate.ITERATIONS", iterations)
        one_sided = benchmark.family == "one-sided"  # of a passive target, or one element
        least = 8 * (1 if name == "bw" or kind_of(name) == "reduce" else ranks)
        assert len(places) >= (2 if one_sided else least)
        all_spoiled, wrong = benchmark, 0
        for number, (rank, region) in enumerate(received(benchmark, what, ranks)):
            flips = [steps.flip(Region(region.buffer, region.offset + at, 1)) for at in range(region.nbytes)]
            if not flips:
                continue
            alone = checked(with_step(benchmark, rank, flips[number % len(flips)]), ranks, what)
            assert alone in (iterations, iterations // turns), (rank, region)
            wrong += alone * len(flips)
            all_spoiled = with_step(all_spoiled, rank, *flips)
        assert checked(all_spoiled, ranks, what) == wrong

    @pytest.mark.slow
    @given(st.data())
    @settings(max_examples=60)
    def test_of_any_type_and_operation_is_found(self, data: st.DataObject) -> None:
        """Somewhere in some block on some rank in one iteration, with some type, reduction and option."""
        name = data.draw(st.sampled_from([n for n in CHECKABLE if "type" in BENCHMARKS[n].options]))
        benchmark, ranks = BENCHMARKS[name], ranks_of(name)
        more: dict[str, Any] = {"dtype": data.draw(st.sampled_from(sorted(DTYPES)))}
        if "op" in benchmark.options:
            more["op"] = data.draw(st.sampled_from(OPS_OF[DTYPES[reduction_dtype(more["dtype"])].kind]))
        if "in_place" in benchmark.options:
            more["in_place"] = data.draw(st.booleans())
        if "root" in benchmark.options:
            more["root"] = data.draw(st.integers(0, ranks - 1))
        if "imbalance" in benchmark.options:
            more["imbalance"] = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
        what = cell(name, 96, **more)
        assume(not (benchmark.refuses and benchmark.refuses(what)))
        rank, region = data.draw(st.sampled_from([p for p in received(benchmark, what, ranks) if p[1].nbytes]))
        byte = Region(region.buffer, region.offset + data.draw(st.integers(0, region.nbytes - 1)), 1)
        turns = len(benchmark.program(World(rank, ranks), what).stages[0].variants)  # the place is of the first
        iteration = turns * data.draw(st.integers(0, (ITERATIONS - 1) // turns))
        spoiled = with_step(benchmark, rank, steps.flip(byte, iteration))
        assert checked(spoiled, ranks, what) >= 1

    @pytest.mark.parametrize(("name", "iteration"), [("bw", 0), ("latency", ITERATIONS - 1), ("allgather", 1)])
    def test_in_one_iteration_is_found_once(self, name: str, iteration: int) -> None:
        rank, region = next(iter(received(BENCHMARKS[name], cell(name), ranks_of(name))))
        spoiled = with_step(BENCHMARKS[name], rank, steps.flip(region, iteration))
        assert checked(spoiled, ranks_of(name), cell(name)) == 1

    def test_in_the_second_stage_is_found(self) -> None:
        def program(world: World, what: Cell) -> Program:
            made = IALLREDUCE.program(world, what)
            spoil = steps.flip(Region("recv", 0, 1))
            last = replace(made.stages[1], variants=tuple((*v, spoil) for v in made.stages[1].variants))
            return Program(made.buffers, (made.stages[0], last))

        assert checked(replace(IALLREDUCE, program=program), 2, cell("allreduce")) == 2 * ITERATIONS

    def test_in_a_variant_beyond_the_tenth_is_found(self) -> None:
        def program(world: World, what: Cell) -> Program:
            made = ROTATING_BCAST.program(world, what)
            *others, last = made.stages[0].variants
            spoil = steps.flip(Region("buf", 0, 1))
            return Program(made.buffers, (replace(made.stages[0], variants=(*others, (*last, spoil))),))

        assert checked(replace(ROTATING_BCAST, program=program), 12, cell("bcast")) == 12


class TestOtherMistakes:
    @pytest.mark.slow
    def test_a_library_that_does_what_it_is_told_passes(self) -> None:
        assert [name for name in one_of_each(CHECKABLE) if found_in(name, lambda step: step)] == []

    @pytest.mark.parametrize("name", ["bcast", "allreduce", "allgather", "alltoall"])
    def test_a_stale_buffer_is_found(self, name: str) -> None:
        """Nothing is received at all: every byte that should have come is wrong in every iteration."""
        places = sum(region.nbytes for _, region in received(BENCHMARKS[name], cell(name), 3))
        root = 8 if name == "bcast" else 0  # the root holds what it sends
        assert found_in(name, lambda step: steps.barrier()) == (places - root) * ITERATIONS

    def test_of_a_large_message_is_found_in_its_one_iteration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("omb_py.engine.measuring.validate.CHECKED", 1)
        places = sum(region.nbytes for _, region in received(BENCHMARKS["allgather"], cell("allgather"), 3))
        assert found_in("allgather", lambda step: steps.barrier()) == places

    @pytest.mark.parametrize("name", ["bw", "bibw"])
    def test_swapped_slots_of_a_window_are_found(self, name: str) -> None:
        def backwards(step: Step) -> Step:
            if step.op != "isend":
                return step
            region: Region = step["send"]
            last = region.offset + 3 * region.stride
            return Step("isend", {**step.operands, "send": replace(region, offset=last, stride=-region.stride)})

        senders = 1 if name == "bw" else 2
        assert found_in(name, backwards) >= senders * ITERATIONS * 4 * 8 // 2

    def test_a_wrong_root_is_found(self) -> None:
        def other_root(step: Step) -> Step:
            return Step("bcast", {**step.operands, "root": 1}) if step.op == "bcast" else step

        assert found_in("bcast", other_root) == ITERATIONS * 3 * 8

    def test_a_wrong_reduction_is_found(self) -> None:
        def maximum(step: Step) -> Step:
            return Step("allreduce", {**step.operands, "op": "max"}) if step.op == "allreduce" else step

        assert found_in("allreduce", maximum) >= ITERATIONS


class TestLog:
    def test_is_omb_s_with_position_expected_and_actual(self, tmp_path: Path) -> None:
        spoiled = with_step(BENCHMARKS["allreduce"], 1, steps.flip(Region("recv", 4, 1), 2))
        assert checked(spoiled, 2, cell("allreduce", 16), log=Log(tmp_path / "out")) == 1
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["log-1.log"]
        head, names, line = (tmp_path / "out" / "log-1.log").read_text().splitlines()
        assert head == "Size: 16, Iteration:2, Datatype: MPI_INT"
        assert names == "Position            Expected            Actual"
        position, expected, actual = line.split()
        assert position == "1" and int(expected) ^ int(actual) == 0xFF
        assert line == f"{1:<10}{expected:>18}{actual:>18}"

    def test_lists_elements_with_wrong_bytes_only_even_where_the_bytes_are_no_number(self, tmp_path: Path) -> None:
        """Copies carry any bytes; as floats some are NaN, which is unlike itself."""
        size = 64 * 1024
        spoiled = with_step(BENCHMARKS["allgather"], 0, steps.flip(Region("recv", 40, 1), 0))
        assert checked(spoiled, 2, cell("allgather", size, dtype="float32"), log=Log(tmp_path)) == 1
        lines = (tmp_path / "log-0.log").read_text().splitlines()
        assert len(lines) == 3 and lines[2].split()[0] == "10"

    def test_of_a_reply_that_is_no_whole_element_is_in_bytes(self, tmp_path: Path) -> None:
        spoiled = with_step(BENCHMARKS["bw"], 0, steps.flip(Region("ack", 0, 1), 1))
        assert checked(spoiled, 2, cell("bw", dtype="int32"), log=Log(tmp_path)) == 1
        assert (tmp_path / "log-0.log").read_text().splitlines()[2].split()[0] == "0"

    def test_grows_with_each_wrong_iteration(self, tmp_path: Path) -> None:
        spoiled = with_step(BENCHMARKS["latency"], 0, steps.flip(Region("recv", 0, 1)))
        checked(spoiled, 2, cell("latency"), log=Log(tmp_path))
        heads = [line for line in (tmp_path / "log-0.log").read_text().splitlines() if line.startswith("Size")]
        assert heads == [f"Size: 8, Iteration:{i}, Datatype: MPI_CHAR" for i in range(ITERATIONS)]


ADDING = ("acc_latency", "get_acc_latency", "fop_latency", "rput_latency", "one_put_all", "put_all_local")
ADDING += ("sendrecv_replace", "reduce_local")
"""An iteration finds what the one before left, so what the timed loop leaves is not known; or only a passive target
receives, which has no active form to spoil."""


class TestInMeasure:
    def test_without_being_asked_nothing_is_said(self) -> None:
        done = measured("allreduce", 2)
        assert (done.validated, done.wrong_bytes) == (None, None)

    def test_a_benchmark_without_data_says_nothing(self) -> None:
        done = measured("barrier", 2, validate=True)
        assert (done.validated, done.wrong_bytes) == (None, None)

    def test_a_wrong_byte_is_false(self) -> None:
        done = measured("allreduce", 2, mock="flip=1::4", validate=True)
        # iteration 4 of the validation; in the timed loop the last of ten iterations overwrites it
        assert (done.validated, done.wrong_bytes) == (False, 1)

    @pytest.mark.parametrize("name", one_of_each(set(CHECKABLE) - {*ADDING, *VARIED_PEERS}))
    def test_the_last_iteration_of_the_timed_loop_is_looked_at(self, name: str) -> None:
        """A fault that strikes only from iteration 10 on is not seen by the validation of iterations 0 to 9."""
        # a passive target would spoil its window before the data comes
        active = {"sync": "pscw"} if name.startswith(("put", "cas")) else {}
        benchmark, what = find(name), cell(name, size_of(name), iterations=13, validate=True, **active)
        rank, region = next(iter(received(benchmark, change_cell(what, window=1), ranks_of(name))))
        spoiled = with_step(benchmark, rank, steps.flip(replace(region, stride=0), 12))
        done = measure(session(ranks_of(name)), spoiled, what)
        assert (done.validated, done.wrong_bytes) == (False, 1)

    @pytest.mark.parametrize(
        ("name", "warmup", "iterations", "kind"),
        [("bcast", 0, 1, {}), ("ibcast", 1, 13, {}), ("bcast_persistent", 2, 6, {"ddt": "vect:4:1"})],
    )
    def test_a_broadcast_with_rotating_roots_keeps_what_its_first_root_sent(
        self, name: str, warmup: int, iterations: int, kind: Mapping[str, Any]
    ) -> None:
        """Every root but the first sends what it has received."""
        done = measured(name, 3, size=32, root=-1, warmup=warmup, iterations=iterations, validate=True, **kind)
        assert (done.validated, done.wrong_bytes) == (True, 0)

    @pytest.mark.parametrize(("at", "wrong"), [(0, 1), (1, 4), (12, 1)])
    def test_a_byte_spoiled_between_rotating_roots_goes_to_all(self, at: int, wrong: int) -> None:
        """Rank 2 sends at 2. The validation finds the byte at 0 and 1, where each iteration is filled anew."""
        what = cell("bcast", 8, root=-1, iterations=13, validate=True)
        spoiled = with_step(find("bcast"), 2, steps.flip(Region("buf", 5, 1), at))
        done = measure(session(3), spoiled, what)
        assert done.wrong_bytes == wrong


class TestBuffersNeeded:
    def test_hold_the_largest_size_and_a_slot_for_each_message_of_a_validated_window(self) -> None:
        cells = [cell("bw", size, validate=valid) for size, valid in ((8, False), (64, True), (1024, False))]
        assert buffers_needed(find("bw"), cells[:1], World(0, 2))[0] == {"send": 8, "recv": 8, "ack": 1}
        assert buffers_needed(find("bw"), cells[:2], World(0, 2))[0] == {"send": 4 * 64, "recv": 64, "ack": 1}
        assert buffers_needed(find("bw"), cells[:2], World(1, 2))[0] == {"send": 64, "recv": 4 * 64, "ack": 1}
        assert buffers_needed(find("bw"), cells, World(0, 2))[0] == {"send": 1024, "recv": 1024, "ack": 1}


def test_payloads_are_made_one_at_a_time() -> None:
    """A validated window of large messages must not take the memory of the window once more."""
    size, window = 1 << 20, 16
    world = session(2, "data=on")
    apart = cell("bw", size, window=window, distinct=True)
    programs = {rank: find("bw").program(place, apart) for rank, place in worlds_of(world).items()}
    runner = world.load(apart, programs)
    checker = Checker(apart, worlds_of(world), programs, None)
    tracemalloc.start()
    try:
        checker.fill(runner, 0, 0)
        checker.wrong(runner, 0, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * size < window * size
