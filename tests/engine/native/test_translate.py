"""Native programs, calling C functions that stand in for MPI's."""

from __future__ import annotations

import ctypes
import sys
import time
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.engine.native import opcodes as R
from omb_py.engine.native.codegen import llvm_text, shape_of
from omb_py.engine.native.translate import Arg, Machine, NativeCall, StageTable, assemble
from omb_py.engine.program import steps
from omb_py.engine.program.language import Host, Lap, Node, Region, Repeat, Result, Stage, Stamp, body
from tests.support.machine import Recorder, call, libc, resolve, run, table
from tests.support.machines.mpi import run_command

INT64 = st.integers(-(2**63), 2**63 - 1)
MS = 1_000_000


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine()


def ticking() -> tuple[Machine, Node]:
    """A machine whose clock moves on by 1 µs with each reading, and a call in which a second passes."""
    now = [100.0]

    def read() -> float:
        now[0] += 1e-6
        return now[0]

    def nap(value: int) -> int:
        now[0] += 1
        return 0

    clock, slow = ctypes.CFUNCTYPE(ctypes.c_double)(read), Recorder(1, nap)
    _KEPT.extend([clock, slow])
    return Machine(ctypes.cast(clock, ctypes.c_void_p).value or 0), call(slow.address, 0)


_KEPT: list[object] = []
"""What C calls by its address."""


@pytest.fixture
def note() -> Recorder:
    return Recorder(1)


class TestCalls:
    @pytest.mark.parametrize("arity", range(R.MAX_ARITY + 1))
    def test_pass_every_operand_whole(self, machine: Machine, arity: int) -> None:
        note = Recorder(arity)
        operands = [(-1) ** j * (2**62 + 97 * j) for j in range(arity)]
        run(machine, [call(note.address, *operands)])
        assert note.calls == [tuple(operands)]

    def test_with_more_operands_than_a_row_holds_are_refused(self) -> None:
        with pytest.raises(ValueError, match="13"):
            table(Stage(body(call(0, *range(R.MAX_ARITY + 1)))))

    def test_happen_in_order_each_iteration(self, machine: Machine, note: Recorder) -> None:
        run(machine, [call(note.address, 1), call(note.address, 2)], iterations=3)
        assert note.calls == [(1,), (2,)] * 3


class TestRepeat:
    def test_moves_strided_operands_on(self, machine: Machine) -> None:
        note = Recorder(3)
        run(machine, [Repeat(4, (call(note.address, Arg(100, 8), Arg(7), Arg(0, -2)),))], iterations=2)
        assert note.calls == [(100 + 8 * k, 7, -2 * k) for k in range(4)] * 2

    def test_of_no_times_still_counts_its_steps(self) -> None:
        assembled = table(Stage(body(Repeat(0, (steps.compute(1), steps.compute(2))), steps.compute(3))))
        assert len(assembled.labels) == 3
        assert assembled.rows[R.STEP :: R.WIDTH].tolist() == [2]

    @pytest.mark.slow
    @settings(max_examples=40)
    @given(
        shape=st.recursive(st.just(()), lambda s: st.lists(st.tuples(st.integers(0, 3), s), max_size=3), max_leaves=6)
    )
    def test_agrees_with_walking_the_program(self, machine: Machine, shape: list[tuple[int, object]]) -> None:
        from omb_py.engine.program.language import walk

        note = Recorder(2)
        counter = iter(range(1000))

        def build(part: object) -> Iterator[Node]:
            yield call(note.address, next(counter), Arg(0, 1))
            for times, inside in part:  # type: ignore[attr-defined]
                yield Repeat(times, tuple(build(inside)))
                yield call(note.address, next(counter), Arg(0, 1))

        nodes = tuple(build(shape))
        run(machine, nodes)
        expected = [(step["args"][0].base, k) for step, k in walk(nodes)]  # type: ignore[index]
        assert note.calls == expected


class TestLoadedOperands:
    def test_are_read_when_the_call_is_made(self, machine: Machine) -> None:
        slot = np.zeros(1, np.int64)
        note = Recorder(1, lambda value: slot.__setitem__(0, value + 10) or 0)
        run(machine, [call(note.address, Arg(slot.ctypes.data, load=8))] * 3)
        assert note.calls == [(0,), (10,), (20,)]

    def test_of_four_bytes_keep_their_sign(self, machine: Machine) -> None:
        slots = np.array([-5, 7, -(2**31)], np.int32)
        note = Recorder(1)
        run(machine, [Repeat(3, (call(note.address, Arg(slots.ctypes.data, 4, load=4)),))])
        assert note.calls == [(-5,), (7,), (-(2**31),)]

    def test_of_eight_bytes_move_on_with_a_stride(self, machine: Machine) -> None:
        slots = np.array([2**62, -1, 3], np.int64)
        note = Recorder(2)
        run(machine, [Repeat(3, (call(note.address, Arg(slots.ctypes.data, 8, load=8), Arg(1)),))])
        assert note.calls == [(2**62, 1), (-1, 1), (3, 1)]


class TestVariants:
    @pytest.mark.parametrize("first", [0, 1, 5])
    def test_take_turns_by_iteration_number(self, machine: Machine, note: Recorder, first: int) -> None:
        stage = Stage(tuple((call(note.address, v),) for v in range(3)))
        machine.run(table(stage), first, 7)
        assert [args[0] for args in note.calls] == [(first + i) % 3 for i in range(7)]

    def test_write_the_same_slots(self, machine: Machine) -> None:
        stage = Stage(((Lap(), steps.compute(2 * MS), Lap("a")), (Lap(), Lap("b"))))
        samples = machine.run(table(stage), 0, 4)[0].table()
        assert samples.shape == (4, 2)
        assert (samples[::2, 0] >= 2 * MS).all() and (samples[1::2, 0] == 0).all()
        assert (samples[::2, 1] == 0).all()

    def test_a_stage_may_have_no_body(self, machine: Machine) -> None:
        samples, failed = machine.run(table(Stage(())), 0, 3)
        assert (samples.table().shape, failed) == ((3, 0), 0)


class TestLaps:
    def test_are_as_long_as_what_lies_between(self, machine: Machine) -> None:
        nap = call(libc("usleep"), 3000)
        samples = run(machine, [Lap(), nap, Lap("a"), nap, nap, Lap("b")], iterations=2)
        assert (samples[:, 0] >= 3 * MS).all()
        assert (samples[:, 1] >= 6 * MS).all()

    def test_the_first_one_may_begin_with_the_end_of_the_iteration_before(self, machine: Machine) -> None:
        samples = run(machine, [Lap("between"), call(libc("usleep"), 2000), Lap("a")], iterations=3)
        assert (samples[:, 1] >= 2 * MS).all()
        assert (samples[:, 0] >= 0).all() and samples[0, 0] < 10_000 * MS  # of the first it is no time since 1970

    def test_of_one_name_add_up(self, machine: Machine) -> None:
        nap = call(libc("usleep"), 2000)
        samples = run(machine, [Lap(), Repeat(3, (nap, Lap("a"), nap, Lap("b")))])
        assert (samples >= 6 * MS).all()

    def test_without_a_name_start_anew(self) -> None:
        machine, nap = ticking()
        assert run(machine, [Lap(), nap, Lap(), Lap("a")]).tolist() == [[1000]]

    @pytest.mark.parametrize("seconds", [False, True])
    def test_nothing_is_written_down_between_the_first_reading_and_the_operation(self, seconds: bool) -> None:
        """What passed between two samples is added after the sample: at 8 bytes a store is a tenth of a put."""
        assembled = table(Stage(body(Lap("between"), call(libc("abs"), 0), Lap("a"))))
        text = llvm_text(assembled.shape, seconds)
        iteration = text[text.index("variant0:") :]
        sample = iteration[: iteration.index("call i32 %")]
        assert sample.count("call double %wtime()" if seconds else "@now(") == 1
        assert "%line" not in sample and iteration.count("ptr %line") == 2

    def test_a_body_without_laps_has_none(self, machine: Machine, note: Recorder) -> None:
        assert run(machine, [call(note.address, 1)], iterations=5).shape == (5, 0)

    def test_stamps_are_the_monotonic_clock(self, machine: Machine) -> None:
        before = time.monotonic_ns()
        stamps = run(machine, [Stamp("a"), Stamp("b")], iterations=4)
        assert before <= stamps[0, 0] and stamps[-1, -1] <= time.monotonic_ns()
        assert (np.diff(stamps.ravel()) >= 0).all()


class TestFailures:
    @pytest.mark.parametrize("code", [5, -7, 2**31 - 1, -(2**31)])
    def test_the_code_is_kept_with_its_sign(self, machine: Machine, code: int) -> None:
        note = Recorder(1, lambda value: code)
        _, failed = machine.run(table(Stage(body(call(note.address, 0)))), 0, 1)
        assert (failed, machine.word[3]) == (1, code)

    def test_step_and_iteration_are_named(self, machine: Machine) -> None:
        bad = Recorder(1, lambda value: 9 if len(bad.calls) == 4 else 0)
        good = Recorder(1)
        nodes = (Lap(), call(good.address, 0), Repeat(2, (call(good.address, 1),)), Lap("a"), call(bad.address, 2))
        _, failed = machine.run(table(Stage(body(*nodes))), 10, 8)
        assert failed == 1 + 2
        assert (machine.word[1], machine.word[2], machine.word[3]) == (13, 2, 9)


class TestCompute:
    def test_takes_at_least_as_long_as_asked(self, machine: Machine) -> None:
        samples = run(machine, [Lap(), steps.compute(3 * MS), Lap("a")], iterations=3)
        assert (samples >= 3 * MS).all()

    def test_takes_its_time_from_an_earlier_stage(self, machine: Machine) -> None:
        stage = Stage(body(Lap(), steps.compute(Result("pure", "time")), Lap("a")))
        samples, _ = machine.run(table(stage, {("pure", "time"): 4.0 * MS}), 0, 2)
        assert (samples.table() >= 4 * MS).all()

    def test_of_a_stage_that_was_not_measured_is_an_error(self) -> None:
        with pytest.raises(KeyError):
            table(Stage(body(steps.compute(Result("pure", "time")))))


class TestClock:
    def test_laps_read_the_librarys_clock_where_there_is_one(self) -> None:
        now = [100.0]

        def read() -> float:
            now[0] += 1.5e-6
            return now[0]

        clock = ctypes.CFUNCTYPE(ctypes.c_double)(read)
        machine = Machine(ctypes.cast(clock, ctypes.c_void_p).value or 0)
        inner = Repeat(2, (Lap("b"),))
        assert run(machine, [Lap(), Lap("a"), inner], iterations=2).tolist() == [[1500, 3000]] * 2

    def test_stamps_are_monotonic_time_whatever_the_laps_read(self) -> None:
        clock = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: 1.0)
        machine = Machine(ctypes.cast(clock, ctypes.c_void_p).value or 0)
        before = time.monotonic_ns()
        stamped = run(machine, [Stamp("at")])
        assert before <= stamped[0, 0] <= time.monotonic_ns()


class TestFlip:
    @pytest.mark.parametrize(("iteration", "expected"), [(-1, 0x0F), (4, 0xF0), (6, 0x0F), (2, 0x0F)])
    def test_inverts_one_byte(self, machine: Machine, iteration: int, expected: int) -> None:
        memory = np.full(3, 0x0F, np.uint8)
        step = steps.flip(Region("recv", 0, 1), iteration)
        machine.run(table(Stage(body(step)), address=memory.ctypes.data + 1), 4, 2)  # iterations 4 and 5
        assert memory.tolist() == [0x0F, expected, 0x0F]


def gate(address: int, value: int) -> StageTable:
    """A table of one gate: nothing emits one yet, so it is written by hand."""
    row = [0] * R.WIDTH
    row[R.OP], row[R.FN], row[R.ARITY], row[R.STEP] = R.GATE, address, value, 0
    return StageTable(array("q", row), shape_of([row], [0, 1]), (), ("gate",))


class TestGate:
    def test_opens_when_another_thread_says_so(self) -> None:
        """Python runs on while the loop runs."""
        # in a process of its own, because a gate that never looks again could not be stopped
        code = (
            "import threading, time, numpy as np\n"
            "from omb_py.engine.native.translate import Machine\n"
            "from tests.engine.native.test_translate import gate\n"
            "word, machine = np.zeros(1, np.int64), Machine()\n"
            "start = time.monotonic()\n"
            "threading.Timer(0.2, lambda: word.__setitem__(0, 3)).start()\n"
            "machine.run(gate(word.ctypes.data, 3), 0, 1)\n"
            "assert time.monotonic() - start >= 0.15\n"
        )
        done = run_command([sys.executable, "-c", code])
        assert done.returncode == 0, done.stderr


class TestPoll:
    """A function is called until a word says that what goes on is over."""

    GOING = 1

    def polled(self, machine: Machine, states: list[int], answer: int = 0) -> tuple[int, int, int]:
        """(1 + step that failed or 0, number of calls, code) where each call gives the word the next state."""
        word = array("i", [states[0]])
        left = iter(states[1:])

        def progress(operand: int) -> int:
            word[0] = next(left)
            return answer

        note = Recorder(1, progress)
        pointer = array("q", [word.buffer_info()[0]])
        operands = (Arg(77), Arg(pointer.buffer_info()[0], load=8), Arg(self.GOING))
        poll = NativeCall(note.address, operands, R.POLL)
        stage = Stage(body(steps.barrier(), steps.barrier()))
        one = NativeCall(libc("abs"), (Arg(0),))
        calls: Iterator[NativeCall | Sequence[NativeCall]] = iter([(one, one), poll])
        _, failed = machine.run(assemble(stage, lambda step: next(calls), lambda step: 0, {}), 0, 1)
        assert note.calls == [(77,)] * len(note.calls)
        return failed, len(note.calls), machine.word[3]

    @pytest.mark.parametrize(("states", "calls"), [([0], 0), ([1, 0], 1), ([1, 1, 1, 0], 3)])
    def test_ends_when_the_word_is_zero(self, machine: Machine, states: list[int], calls: int) -> None:
        assert self.polled(machine, states)[:2] == (0, calls)

    @pytest.mark.parametrize(("states", "answer", "calls", "code"), [([1, -3], 0, 1, -3), ([1, 1, 0], -6, 1, -6)])
    def test_fails_by_the_word_or_by_the_function(
        self, machine: Machine, states: list[int], answer: int, calls: int, code: int
    ) -> None:
        """The failed step is the second, although the first became two calls."""
        assert self.polled(machine, states, answer) == (2, calls, code)


class TestAssembling:
    def test_labels_say_what_each_step_does(self) -> None:
        assembled = table(Stage(body(Lap(), steps.compute(2000), Repeat(2, (steps.compute(5),)), Lap("a"))))
        assert assembled.labels == ("compute 2 us", "compute 5 ns")

    def test_a_host_call_in_a_body_is_refused(self) -> None:
        with pytest.raises(ValueError, match="fork"):
            table(Stage(body(Host("fork", lambda session: None))))

    def test_the_shape_holds_what_the_code_depends_on_and_no_more(self) -> None:
        def shape(*nodes: Node) -> object:
            return table(Stage(body(*nodes))).shape

        assert shape(call(1, 5), Repeat(2, (steps.compute(7),))) == shape(call(1, 6), Repeat(64, (steps.compute(1),)))
        different = [(1, 5), (1, 5, 5), (1, Arg(5, 1)), (1, Arg(5, load=8)), (1, Arg(5, load=4)), (1, Arg(5, 1, 4))]
        assert len({shape(call(*one)) for one in different}) == len(different)
        assert shape(call(1, 5)) == shape(call(2, 5)), "a function's address differs from process to process"
        assert shape(Lap(), Lap("a")) != shape(Lap("a"), Lap())

    def test_the_resolver_is_asked_once_a_step(self) -> None:
        from omb_py.engine.native.translate import assemble

        asked = []
        stage = Stage(body(Repeat(64, (call(1, 2),))))
        assemble(stage, lambda step: asked.append(step) or resolve(step), lambda step: 0, {})  # type: ignore[func-returns-value]
        assert len(asked) == 1
