"""``--cache rotate``: other memory in every iteration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.engine.measuring import cache_rotation
from omb_py.engine.measuring.cache_rotation import (
    CACHE_BYTES,
    LINE,
    MOST_BYTES,
    UNKNOWN_CACHE_BYTES,
    last_level_cache,
    layout,
    rotated,
    rotation_marks,
    span_of,
    with_cache,
)
from omb_py.engine.native.threads import share, stages_of
from omb_py.engine.native.translate import Arg, Machine
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.language import Buffer, Program, Region, RequestSlot, Stage, Step, body, walk
from omb_py.engine.python_loop.loop import compile_stage
from omb_py.errors import UsageError
from omb_py.options.table import make_cell
from omb_py.suites.registry import BENCHMARKS, find
from tests.support.kinds import one_of_each
from tests.support.machine import Recorder, call, table

MB = 1 << 20


class TestLayout:
    @given(
        sizes=st.lists(st.integers(0, 1 << 24), min_size=1, max_size=3),
        cache=st.integers(1 << 16, 1 << 31),
        most=st.sampled_from([1 << 12, 1 << 20]),
    )
    def test_copies_span_twice_the_cache_and_do_not_overlap(self, sizes: list[int], cache: int, most: int) -> None:
        buffers = tuple(Buffer(f"b{k}", n) for k, n in enumerate(sizes))
        found = layout(buffers, cache, most)
        assert 2 <= found.copies <= most
        for buffer in buffers:
            pitch = found.pitch[buffer.name]
            assert pitch >= buffer.nbytes and pitch % LINE == 0 and pitch // LINE % 2 == 1
        span = found.copies * sum(found.pitch.values())
        assert span >= min(2 * cache, MOST_BYTES) * 0.99
        # no more than that, but for gaps of lines, or two copies of what is large
        most_needed = max(min(2 * cache, MOST_BYTES), 2 * sum(sizes))
        assert span <= 2 * most_needed + sum(found.pitch.values()) + 2 * LINE * found.copies * len(sizes)

    def test_less_memory_takes_a_half_a_quarter_and_so_on(self) -> None:
        assert [span_of(36 * MB, halved) for halved in range(3)] == [72 * MB, 36 * MB, 18 * MB]
        buffers = (Buffer("send", 1024), Buffer("recv", 1024))
        found = layout(buffers, 36 * MB, 1 << 20, 2)
        assert 18 * MB <= found.copies * sum(found.pitch.values()) < 19 * MB


class TestCacheSize:
    @pytest.fixture(autouse=True)
    def no_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(CACHE_BYTES, raising=False)

    def test_is_that_of_the_last_level(self, tmp_path: Path) -> None:
        for number, (level, size, kind) in enumerate(
            [(1, "32K", "Data"), (1, "32K", "Instruction"), (2, "512K", "Unified"), (3, "36M", "Unified")]
        ):
            index = tmp_path / f"index{number}"
            index.mkdir()
            for name, text in (("level", str(level)), ("size", size), ("type", kind)):
                (index / name).write_text(f"{text}\n")
        assert last_level_cache(tmp_path) == 36 * MB

    def test_the_variable_is_stronger_than_the_kernel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(CACHE_BYTES, "4096")
        assert last_level_cache(tmp_path) == 4096
        for text in ("4K", "0", "-1", "٣"):
            monkeypatch.setattr(
                os, "environ", {CACHE_BYTES: text}
            )  # where names are ASCII, none can be set to the last
            with pytest.raises(
                UsageError, match="OMB_PY_CACHE_BYTES is the size of the last-level cache in bytes, as "
            ):
                last_level_cache(tmp_path)

    def test_is_a_guess_where_the_kernel_does_not_say(self, tmp_path: Path) -> None:
        assert last_level_cache(tmp_path) == UNKNOWN_CACHE_BYTES
        (tmp_path / "index0").mkdir()
        assert last_level_cache(tmp_path) == UNKNOWN_CACHE_BYTES


@pytest.mark.parametrize(
    ("cache", "mib", "halved", "marks"),
    [
        ("rotate", 36, 0, {}),
        ("rotate", 36, 1, {"rotation": "36 of 72 MiB"}),
        ("rotate", 1024, 0, {"rotation": "1024 of 2048 MiB"}),
        ("rotate", 1024, 1, {"rotation": "512 of 2048 MiB"}),
        ("hot", 1024, 1, {}),
    ],
)
def test_a_row_says_that_the_copies_span_less_than_they_should(
    cache: str, mib: int, halved: int, marks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_BYTES, str(mib * MB))
    assert rotation_marks(make_cell("bcast", "mpi", "native", 64, cache=cache), halved) == marks


def rotatable(name: str) -> bool:
    program = find(name).program(World(0, 2), make_cell(name, "mpi", "mpi4py", 64, dtype=find(name).dtype))
    return program.window is None and not any(node.op.endswith("_init") for s in program.stages for node in bound(s))


def bound(stage: Stage) -> list[Step]:
    return [node for node, _ in walk(stage.setup) if isinstance(node, Step)]


ROTATABLE = one_of_each(b.name for b in BENCHMARKS.values() if b.sizes and b.ranks.admits(2) and rotatable(b.name))


class TestPrograms:
    @pytest.mark.parametrize("name", ROTATABLE)
    def test_every_region_of_a_rotated_program_lies_in_its_buffer_in_every_copy(self, name: str) -> None:
        benchmark = with_cache(find(name))
        cell = make_cell(name, "mpi", "mpi4py", 64, dtype=benchmark.dtype, cache="rotate", window=3)
        program = benchmark.program(World(0, 2), cell)
        whole = {buffer.name: buffer.nbytes for buffer in program.buffers}
        plain = {buffer.name: buffer.nbytes for buffer in find(name).program(World(0, 2), cell).buffers}
        for stage in program.stages:
            assert stage.copies > 1
            for buffer, nbytes in plain.items():
                assert whole[buffer] > (stage.copies - 1) * nbytes
        if any(plain.values()):
            assert sum(whole.values()) >= 2 * min(last_level_cache(), MOST_BYTES // 2) * 0.98

    def test_what_binds_buffers_before_the_loop_is_refused(self) -> None:
        setup = (steps.persistent(steps.bcast(Region("b", 0, 8), 0, "char"), RequestSlot(0)),)
        program = Program((Buffer("b", 8),), (Stage(body(steps.start(RequestSlot(0))), setup=setup),))
        with pytest.raises(UsageError, match="cannot move buffers that bcast_init binds before the loop"):
            rotated(program, MB, 100)

    def test_a_window_is_refused(self) -> None:
        made = find("put_latency").program(World(0, 2), make_cell(find("put_latency"), "mpi", "native", 8))
        with pytest.raises(UsageError, match="cannot move buffers that the window binds"):
            rotated(made, MB, 100)


class TestBindings:
    def test_native_operands_move_on_with_the_iteration(self) -> None:
        note, machine = Recorder(2), Machine()
        stage = Stage(body(call(note.address, Arg(100, turn=64), Arg(7))), copies=3)
        machine.run(table(stage), -2, 6)
        assert note.calls == [(100 + 64 * (i % 3), 7) for i in range(-2, 4)]

    def test_native_strides_and_turns_add_up(self) -> None:
        from omb_py.engine.program.language import Repeat

        note, machine = Recorder(1), Machine()
        stage = Stage(body(Repeat(2, (call(note.address, Arg(0, 8, turn=100)),))), copies=2)
        machine.run(table(stage), 0, 3)
        assert [args[0] for args in note.calls] == [0, 8, 100, 108, 0, 8]

    def test_the_loop_in_python_counts_copies(self) -> None:
        seen: list[int] = []
        stage = Stage(body(steps.barrier()), copies=3)
        loop = compile_stage(stage, lambda step, names, k: f"{names.bind(seen.append)}(c)", {})
        loop.run(-2, 5)
        assert seen == [i % 3 for i in range(-2, 3)]

    def test_each_thread_takes_all_copies_in_turn(self) -> None:
        stage = Stage((body(steps.barrier())[0],) * 3, threads=3, copies=4)
        for thread, part in enumerate(stages_of(stage)):
            seen: list[int] = []
            loop = compile_stage(part, lambda step, names, k, of=seen: f"{names.bind(of.append)}(c)", {})
            loop.run(*share(-4, 31, 3, thread))
            assert seen == [stage.copy_at(i) for i in range(-4, 27) if i % 3 == thread]


@pytest.mark.parametrize(
    ("of_device", "given", "leaves"), [(50 * MB, "", 50 * MB), (0, "", 36 * MB), (50 * MB, "4096", 4096)]
)
def test_on_a_device_its_own_cache_is_left(
    of_device: int, given: str, leaves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_rotation, "last_level_cache", lambda: int(given or 36 * MB))
    monkeypatch.setenv(cache_rotation.CACHE_BYTES, given)
    assert cache_rotation.cache_to_leave(of_device) == leaves
    cell = make_cell("bcast", "nccl", "native", 4096, cache="rotate")
    (buffer,) = with_cache(find("bcast"), 0, of_device).program(World(0, 2), cell).buffers
    assert 0.98 * 2 * leaves <= buffer.nbytes <= 1.05 * 2 * leaves
