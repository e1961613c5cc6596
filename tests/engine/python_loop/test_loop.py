"""The flat Python loop, with steps that append to lists instead of sending messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omb_py.engine.program import steps
from omb_py.engine.program.language import Host, Lap, Node, Repeat, Result, Stage, Stamp, Step, body, walk
from omb_py.engine.python_loop.loop import CompiledLoop, Names, compile_stage
from tests.support.patience import PATIENCE_S

MS = 1_000_000


class Fake:
    """Renders ``note`` steps as calls that note their number and pass, ``nap`` and ``fail`` as what they say."""

    def __init__(self) -> None:
        self.notes: list[tuple[int, int]] = []
        self.released = threading.Event()
        self.sleep: Callable[[float], None] = time.sleep
        self.now_ns = 7

    def move_on(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def note(self, number: int, k: int) -> None:
        self.notes.append((number, k))

    def fail(self, when: int, i: int) -> None:
        if i == when:
            raise RuntimeError("no such rank")

    def __call__(self, step: Step, names: Names, k: str) -> str:
        if step.op == "nap":
            return f"{names.bind(self.sleep, 'nap')}({step['s']})"
        if step.op == "hold":
            return f"{names.bind(self.released.wait, 'hold')}(10)"
        if step.op == "fail":
            return f"{names.bind(self.fail, 'fail')}({step['when']}, i)"
        return f"{names.bind(self.note, 'note')}({step['number']}, {k or 0})"


def note(number: int) -> Step:
    return Step("note", {"number": number})


def nap(milliseconds: float) -> Step:
    return Step("nap", {"s": milliseconds / 1000})  # type: ignore[dict-item]


@pytest.fixture
def fake() -> Fake:
    return Fake()


def loop(fake: Fake, *nodes: Node) -> CompiledLoop:
    return compile_stage(Stage(body(*nodes)), fake, {})


class TestSource:
    def test_has_nothing_between_the_laps_but_the_call(self, fake: Fake) -> None:
        assert loop(fake, Lap(), note(1), Lap("time"), note(2)).source.splitlines() == [
            "def loop(first, count, s0):",
            "    for i in range(first, first + count):",
            "        t = clock()",
            "        note_0(1, 0)",
            "        u = clock()",
            "        s0[i - first] += u - t",
            "        t = u",
            "        note_1(2, 0)",
        ]

    def test_chooses_among_variants_before_the_clock_starts(self, fake: Fake) -> None:
        stage = Stage(((Lap(), note(0), Lap("a")), (note(1),), ()))
        source = compile_stage(stage, fake, {}).source
        assert [line.strip() for line in source.splitlines() if "if i" in line] == [
            "if i % 3 == 0:",
            "elif i % 3 == 1:",
            "elif i % 3 == 2:",
        ]

    def test_a_host_call_in_a_body_is_refused(self, fake: Fake) -> None:
        with pytest.raises(ValueError, match="fork"):
            loop(fake, Host("fork", lambda session: None))


class TestRun:
    def test_runs_steps_in_order_each_iteration(self, fake: Fake) -> None:
        loop(fake, note(1), note(2)).run(0, 3)
        assert fake.notes == [(1, 0), (2, 0)] * 3

    @settings(max_examples=40)
    @given(
        shape=st.recursive(st.just(()), lambda s: st.lists(st.tuples(st.integers(0, 3), s), max_size=3), max_leaves=6)
    )
    def test_agrees_with_walking_the_program(self, shape: list[tuple[int, object]]) -> None:
        fake = Fake()
        counter = iter(range(1000))

        def build(part: object) -> Iterator[Node]:
            for times, inside in part:  # type: ignore[attr-defined]
                yield Repeat(times, tuple(build(inside)))
                yield note(next(counter))

        nodes = tuple(build(shape))
        loop(fake, *nodes).run(0, 1)
        assert fake.notes == [(step["number"], k) for step, k in walk(nodes)]  # type: ignore[index]

    @pytest.mark.parametrize("first", [0, 1, 5])
    def test_variants_take_turns_by_iteration_number(self, fake: Fake, first: int) -> None:
        stage = Stage(tuple((note(v),) for v in range(3)))
        compile_stage(stage, fake, {}).run(first, 7)
        assert [number for number, _ in fake.notes] == [(first + i) % 3 for i in range(7)]

    def test_a_stage_may_have_no_body(self, fake: Fake) -> None:
        assert compile_stage(Stage(()), fake, {}).run(0, 3).shape == (3, 0)


@pytest.fixture
def still(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Steps whose clock only naps move on."""
    monkeypatch.setattr("omb_py.engine.python_loop.loop.time", SimpleNamespace(perf_counter_ns=lambda: fake.now_ns))
    fake.sleep = fake.move_on
    return fake


class TestLaps:
    def test_are_as_long_as_what_lies_between(self, still: Fake) -> None:
        samples = loop(still, Lap(), nap(3), Lap("a"), nap(3), nap(3), Lap("b"), nap(50)).run(0, 2)
        assert samples.tolist() == [[3 * MS, 6 * MS]] * 2

    def test_of_one_name_add_up(self, fake: Fake) -> None:
        samples = loop(fake, Lap(), Repeat(3, (nap(2), Lap("a"), nap(2), Lap("b")))).run(0, 1)
        assert (samples >= 6 * MS).all()

    def test_the_first_one_may_begin_with_the_end_of_the_iteration_before(self, fake: Fake) -> None:
        made = loop(fake, Lap("between"), nap(2), Lap("a"))
        assert made.source.splitlines()[1:3] == ["    t = clock()", "    for i in range(first, first + count):"]
        samples = made.run(4, 3)
        assert (samples[:, 1] >= 2 * MS).all() and (samples[:, 0] >= 0).all()

    def test_of_a_later_piece_start_at_zero(self, still: Fake) -> None:
        made = loop(still, Lap(), nap(2), Lap("a"))
        made.run(0, 4)
        assert made.run(4, 3).tolist() == [[2 * MS]] * 3

    def test_stamps_are_the_monotonic_clock(self, fake: Fake) -> None:
        before = time.monotonic_ns()
        ((a, b),) = loop(fake, Stamp("a"), nap(1), Stamp("b")).run(0, 1).tolist()
        assert before <= a <= b - MS and b <= time.monotonic_ns()


class TestCompute:
    def test_takes_at_least_as_long_as_asked(self, fake: Fake) -> None:
        assert (loop(fake, Lap(), steps.compute(3 * MS), Lap("a")).run(0, 2) >= 3 * MS).all()

    def test_takes_its_time_from_an_earlier_stage(self, fake: Fake) -> None:
        stage = Stage(body(Lap(), steps.compute(Result("pure", "time")), Lap("a")))
        assert (compile_stage(stage, fake, {("pure", "time"): 4.0 * MS}).run(0, 2) >= 4 * MS).all()


class TestPosition:
    def test_of_a_running_loop_is_seen_from_another_thread(self, fake: Fake) -> None:
        nodes = (Lap(), note(0), Repeat(2, (note(1),)), Step("hold", {}), Lap("a"), note(2))
        made = loop(fake, *nodes)
        seen: list[tuple[int, int]] = []

        def look(thread: int) -> None:
            deadline = time.monotonic() + PATIENCE_S
            while not seen and time.monotonic() < deadline:
                place = made.position(thread)
                if place[1] == 2:
                    seen.append(place)
            fake.released.set()

        watcher = threading.Thread(target=look, args=(threading.get_ident(),))
        watcher.start()
        made.run(40, 1)
        watcher.join()
        assert seen == [(40, 2)]
        assert made.labels[2].startswith("hold")


class TestFailedStep:
    def test_is_the_one_that_raised(self, fake: Fake) -> None:
        made = loop(fake, Lap(), note(0), Repeat(2, (note(1),)), Step("fail", {"when": 3}), Lap("a"))
        with pytest.raises(RuntimeError, match="no such rank") as caught:
            made.run(0, 10)
        assert made.failed_step(caught.value) == 2
        assert len(fake.notes) == 4 * 3

    def test_is_the_first_when_the_error_came_from_elsewhere(self, fake: Fake) -> None:
        assert loop(fake, note(0)).failed_step(RuntimeError()) == 0


class TestNames:
    def test_the_same_object_has_one_name(self) -> None:
        names, thing = Names(), [1]
        assert names.bind(thing, "b") == names.bind(thing, "c")
        assert names.bind([1], "b") != names.bind(thing, "b")

    @pytest.mark.parametrize("prefix", ["s", "i", "k", "t", "u", "first", "count", "clock", "range", "b", "v1", "s0_"])
    def test_never_hide_what_the_loop_uses(self, prefix: str) -> None:
        log: list[str] = []

        def render(step: Step, names: Names, k: str) -> str:
            return f"{names.bind(log.append, prefix)}({step['text']!r})"

        stage = Stage(body(Lap(), Repeat(2, (Step("say", {"text": "x"}),)), Lap("a"), Lap("b")))
        samples = compile_stage(stage, render, {}).run(0, 2)
        assert log == ["x"] * 4 and (samples >= 0).all()
