from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from omb_py.engine.measuring import payload
from omb_py.engine.program import steps
from omb_py.engine.program.benchmark import World
from omb_py.engine.program.dtypes import DTYPES, FACTORED, OPS_OF, factor
from omb_py.engine.program.language import Lap, Region, Repeat, Requests, RequestSlot, Step
from omb_py.options.table import make_cell
from omb_py.suites.registry import find

ARITHMETIC = [name for name in DTYPES if name != "char"]
OPERATIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "land": np.logical_and,
    "lor": np.logical_or,
    "lxor": np.logical_xor,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
ONE_OF_EACH_KIND = ("int8", "uint64", "float8e4m3", "bfloat16", "float64", "complex64")
DEFINED = [(dtype, op) for dtype in ARITHMETIC for op in OPS_OF[DTYPES[dtype].kind]]


def combined(parts: Sequence[NDArray[Any]], dtype: str, op: str) -> NDArray[Any]:
    """The parts reduced one after the other, as a library does it: every partial result in the type itself."""
    total = parts[0]
    for part in parts[1:]:
        numbers = OPERATIONS[op](payload.to_numbers(total, dtype), payload.to_numbers(part, dtype))
        total = payload.from_numbers(numbers, dtype)
    return total


FACTORED_TYPES = [name for name in ARITHMETIC if DTYPES[name].kind != "complex"]


def factored(parts: Sequence[NDArray[Any]], dtype: str, op: str) -> NDArray[Any]:
    """The parts reduced with factors as NCCL does it: each product in the type itself, integers divided at the end."""
    numbers = [payload.to_numbers(part, dtype) for part in parts]
    if op == "mulsum":
        products = [payload.from_numbers(n * factor(rank), dtype) for rank, n in enumerate(numbers)]
        return combined(products, dtype, "sum")
    if DTYPES[dtype].kind == "integer":
        total = combined(parts, dtype, "sum").astype(np.float64)
        return payload.from_numbers(np.trunc(total / len(parts)), dtype)
    by = payload.reciprocal(len(parts), dtype)
    return combined([payload.from_numbers(n * by, dtype) for n in numbers], dtype, "sum")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_messages_of_several_may_come_in_any_order(order: tuple[int, ...]) -> None:
    messages, arrivals = [np.full(8, n, np.uint8) for n in range(3)], payload.Arrivals()
    make = payload.AnyOf((1,), tuple(lambda within, n=n: messages[n][within] for n in range(3)))
    got = [arrivals.expected(make, messages[n])(within=payload.WHOLE) for n in order]
    assert [content.tolist() for content in got] == [messages[n].tolist() for n in order]


def test_a_message_that_comes_twice_is_wrong_once() -> None:
    messages, arrivals = [np.full(8, n, np.uint8) for n in range(3)], payload.Arrivals()
    make = payload.AnyOf((1,), tuple(lambda within, n=n: messages[n][within] for n in range(3)))
    wrong = [payload.count_wrong(arrivals.expected(make, messages[n]), messages[n]) for n in (1, 1, 2)]
    assert sorted(wrong) == [0, 0, 8]


def test_a_wrong_byte_is_counted_against_the_message_that_it_is_in() -> None:
    come, arrivals = np.full(8, 2, np.uint8), payload.Arrivals()
    come[3] = 1
    make = payload.AnyOf((1,), tuple(lambda within, n=n: np.full(8, n, np.uint8)[within] for n in range(3)))
    assert np.flatnonzero(arrivals.expected(make, come)(within=payload.WHOLE) != come).tolist() == [3]


ITERATIONS = range(10)


class TestFactors:
    @pytest.mark.slow
    @given(
        ranks=st.integers(1, 300),
        dtype=st.sampled_from(FACTORED_TYPES),
        op=st.sampled_from(FACTORED),
        key=st.lists(st.integers(-1, 10_000), min_size=1, max_size=3),
    )
    def test_the_closed_form_is_the_reduction_of_all_contributions(
        self, ranks: int, dtype: str, op: str, key: list[int]
    ) -> None:
        kind = DTYPES[dtype].numpy
        parts = [payload.contribution(100, dtype, op, ranks, r, *key).view(kind) for r in range(ranks)]
        assert payload.reduced(100, dtype, op, ranks, *key).tobytes() == factored(parts, dtype, op).tobytes()

    @pytest.mark.parametrize(
        ("dtype", "op", "ranks"),
        [(dtype, FACTORED[n % len(FACTORED)], (3, 8)[n // 2 % 2]) for n, dtype in enumerate(FACTORED_TYPES)],
    )
    def test_a_sum_without_its_factor_or_without_a_rank_is_noticed(self, ranks: int, op: str, dtype: str) -> None:
        kind = np.dtype(DTYPES[dtype].numpy)
        plain, lost = False, [False] * ranks
        for iteration in ITERATIONS:
            parts = [payload.contribution(64, dtype, op, ranks, r, iteration, 0).view(kind) for r in range(ranks)]
            expected = payload.reduced(64, dtype, op, ranks, iteration, 0).view(kind)
            plain |= bool((combined(parts, dtype, "sum") != expected).any())
            for rank in range(ranks):
                fewer = [part * (number != rank) for number, part in enumerate(parts)]  # the bits of 0 are 0
                lost[rank] |= bool((factored(fewer, dtype, op) != expected).any())
        assert plain and all(lost)

    @pytest.mark.parametrize("dtype", [name for name in FACTORED_TYPES if DTYPES[name].kind != "integer"])
    def test_a_division_at_the_end_gives_the_same_average(self, dtype: str) -> None:
        for ranks in range(1, 65):  # beyond, 1/ranks is below the least normal number of float8e4m3
            by = payload.reciprocal(ranks, dtype)
            assert abs(by * ranks - 1) <= {"fp8": 2**-3, "bfloat": 2**-8}.get(DTYPES[dtype].kind, 2**-11)
            if dtype in ("float16", "float32", "float64"):
                kind = np.dtype(DTYPES[dtype].numpy).type
                assert [float(kind(v) / kind(ranks)) for v in (1, 2)] == [by, 2 * by]


class TestReductions:
    @pytest.mark.slow
    @given(
        ranks=st.integers(1, 40),
        count=st.integers(0, 400),
        defined=st.sampled_from(DEFINED),
        key=st.lists(st.integers(-1, 10_000), min_size=1, max_size=3),
    )
    def test_the_closed_form_is_the_reduction_of_all_contributions(
        self, ranks: int, count: int, defined: tuple[str, str], key: list[int]
    ) -> None:
        dtype, op = defined
        kind = DTYPES[dtype].numpy
        parts = [payload.contribution(count, dtype, op, ranks, r, *key).view(kind) for r in range(ranks)]
        assert all(part.shape == (count,) for part in parts)
        result = payload.reduced(count, dtype, op, ranks, *key)
        assert result.tobytes() == combined(parts, dtype, op).tobytes()
        for first in {1, (ranks + 1) // 2}:  # what a scan leaves
            some = payload.reduced(count, dtype, op, ranks, *key, first=first)
            assert some.tobytes() == combined(parts[:first], dtype, op).tobytes()

    @given(ranks=st.integers(1, 62), defined=st.sampled_from(DEFINED), seed=st.integers(0, 2**32 - 1))
    def test_any_order_of_reduction_gives_the_same_bytes(self, ranks: int, defined: tuple[str, str], seed: int) -> None:
        dtype, op = defined
        kind = np.dtype(DTYPES[dtype].numpy)
        parts = np.array([payload.contribution(50, dtype, op, ranks, r, 3).view(kind) for r in range(ranks)])
        shuffled = np.random.default_rng(seed).permutation(parts)
        assert combined(list(shuffled), dtype, op).tobytes() == payload.reduced(50, dtype, op, ranks, 3).tobytes()

    @pytest.mark.parametrize("dtype", ARITHMETIC)
    def test_sums_stay_exact_as_long_as_the_type_can_hold_one_a_rank(self, dtype: str) -> None:
        exact, parts = DTYPES[dtype].exact, 2 if DTYPES[dtype].kind == "complex" else 1
        for ranks in (2, 3, 64, 1024, 100_000):
            m = payload.modulus(dtype, ranks)
            assert 2 <= m <= 97, ranks
            assert parts * (m - 1) * ranks <= exact or ranks > exact // parts // 2, ranks

    @pytest.mark.parametrize(("dtype", "op"), [each for each in DEFINED if each[0] in ONE_OF_EACH_KIND])
    def test_a_contribution_left_out_or_taken_twice_is_noticed(self, op: str, dtype: str) -> None:
        kind, ranks = np.dtype(DTYPES[dtype].numpy), 3
        for lost in range(ranks):
            noticed = False
            for iteration in ITERATIONS:
                parts = [payload.contribution(64, dtype, op, ranks, r, iteration, 0).view(kind) for r in range(ranks)]
                expected = payload.reduced(64, dtype, op, ranks, iteration, 0).view(kind)
                noticed |= bool((combined(parts[:lost] + parts[lost + 1 :], dtype, op) != expected).any())
                if op in ("sum", "prod"):
                    assert (combined([expected, parts[lost]], dtype, op) != expected).any()
            assert noticed


class TestPattern:
    def test_a_short_message_is_the_start_of_a_long_one(self) -> None:
        assert (payload.pattern(1000, 5, 1)[:10] == payload.pattern(10, 5, 1)).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("position", [0, 4])
    def test_no_two_ranks_slots_or_iterations_have_the_same(self, position: int) -> None:
        """Over ten iterations: with a key of (iteration, tag, sender, receiver, slot) any one of them changed."""
        for first, second in itertools.combinations(range(70), 2):
            alike = []
            for iteration in ITERATIONS:
                keys = [[iteration, 100, 1, 0, 3] for _ in range(2)]
                keys[0][position] += first
                keys[1][position] += second
                alike.append((payload.pattern(16, *keys[0]) == payload.pattern(16, *keys[1])).all())
            assert not all(alike), (first, second)

    @given(nbytes=st.integers(64, 5000), shift=st.integers(1, 4999), key=st.integers(0, 1000))
    def test_shifted_content_is_noticed(self, nbytes: int, shift: int, key: int) -> None:
        whole = payload.pattern(nbytes + shift, key)
        assert (whole[shift:] != payload.pattern(nbytes, key)).any()


SLICED: Final[dict[str, Any]] = {
    "pattern": partial(payload.pattern, 30_001, 5, 1),
    "blocks": partial(payload._blocks, 30_000, 3, (1, 0), (1, 1), (1, 2)),
    "contribution": partial(payload.contribution, 15_000, "int16", "sum", 4, 1, 9),
    "reduced": partial(payload.reduced, 15_000, "bfloat16", "prod", 4, 9),
    "part of reduced": partial(payload._part_of_reduced, 501, 14_000, 15_000, "int32", "sum", 4, 9),
}


class TestSlices:
    """Large payloads are made, written and compared a slice at a time."""

    @pytest.mark.parametrize("name", SLICED)
    @given(start=st.integers(0, 31_000), nbytes=st.integers(0, 31_000))
    def test_a_slice_is_that_of_the_whole(self, name: str, start: int, nbytes: int) -> None:
        within = slice(start, start + nbytes)
        assert (SLICED[name](within=within) == SLICED[name]()[within]).all()

    def test_a_slice_far_on_repeats_the_ramp(self) -> None:
        far = 3 << 24
        assert (payload.pattern(1 << 30, 7, within=slice(far, far + 64)) == payload.pattern(64, 7)).all()

    def test_no_more_than_a_slice_is_made_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(payload, "CHUNK", 64)
        made: list[int] = []

        def make(*, within: slice = payload.WHOLE) -> payload.Bytes:
            made.append(within.stop - within.start)
            return payload.pattern(200, 3, within=within)

        places = np.zeros((2, 200), np.uint8)
        payload.write(places, make)
        assert (places == payload.pattern(200, 3)).all() and made == [64, 64, 64, 8]
        places[1, [5, 199]] += 1
        assert [payload.count_wrong(make, row) for row in places] == [0, 2]


def filled(step: Step, k: int, world: World, iteration: int) -> dict[Region, bytes]:
    return {region: made().tobytes() for region, made in payload.inputs(step, k, world, iteration)}


def wanted(step: Step, k: int, world: World, iteration: int) -> dict[Region, bytes]:
    return {region: made().tobytes() for region, made in payload.outputs(step, k, world, iteration)}


WORLDS = [World(r, 3) for r in range(3)]
A, B = Region("send", 0, 24), Region("recv", 0, 24)


class TestMessages:
    @pytest.mark.parametrize("post", [steps.send, lambda *a: steps.isend(*a, request=RequestSlot(0))])
    @pytest.mark.parametrize("receive", [steps.recv, lambda *a: steps.irecv(*a, request=RequestSlot(0))])
    def test_what_one_sends_the_other_expects(self, post: object, receive: object) -> None:
        out = filled(post(A, 2, "int32"), 0, WORLDS[1], 4)  # type: ignore[operator]
        into = wanted(receive(B, 1, "int32"), 0, WORLDS[2], 4)  # type: ignore[operator]
        assert out == {A: into[B]}

    def test_another_sender_tag_or_iteration_is_another_content(self) -> None:
        made = {
            next(iter(filled(steps.send(A, peer, "char", tag), 0, WORLDS[rank], iteration).values()))
            for rank, peer, tag, iteration in itertools.product((0, 1), (0, 1, 2), (1, 2), (0, 1))
        }
        assert len(made) == 24

    def test_a_send_leaves_nothing_and_a_receive_needs_nothing(self) -> None:
        assert not wanted(steps.send(A, 1, "char"), 0, WORLDS[0], 0)
        assert not filled(steps.recv(A, 1, "char"), 0, WORLDS[0], 0)


class TestCollectives:
    def test_bcast_only_the_root_sends_and_all_must_hold_it(self) -> None:
        step = steps.bcast(A, 1, "char")
        assert [bool(filled(step, 0, world, 0)) for world in WORLDS] == [False, True, False]
        (sent,) = filled(step, 0, WORLDS[1], 0).values()
        assert all(wanted(step, 0, world, 0) == {A: sent} for world in WORLDS)

    def test_allgather_block_r_is_what_rank_r_sends(self) -> None:
        step = steps.allgather(Region("send", 0, 8), B, "char")
        sent = b"".join(next(iter(filled(step, 0, world, 2).values())) for world in WORLDS)
        assert all(wanted(step, 0, world, 2) == {B: sent} for world in WORLDS)

    def test_alltoall_block_s_is_what_rank_s_sends_to_us(self) -> None:
        step = steps.alltoall(A, B, "char")
        sent = [next(iter(filled(step, 0, world, 2).values())) for world in WORLDS]
        for me, world in enumerate(WORLDS):
            expected = b"".join(block[8 * me : 8 * me + 8] for block in sent)
            assert wanted(step, 0, world, 2) == {B: expected}
        assert len({block[8 * d : 8 * d + 8] for block in sent for d in range(3)}) == 9

    @pytest.mark.parametrize(
        "make", [steps.allreduce, lambda *a: steps.nonblocking(steps.allreduce(*a), RequestSlot(0))]
    )
    def test_allreduce_is_the_sum(self, make: object) -> None:
        step = make(A, B, "int32", "sum")  # type: ignore[operator]
        sent = [np.frombuffer(next(iter(filled(step, 0, world, 2).values())), np.int32) for world in WORLDS]
        assert all(wanted(step, 0, world, 2) == {B: np.sum(sent, axis=0, dtype=np.int32).tobytes()} for world in WORLDS)

    @pytest.mark.parametrize(
        "step",
        [
            steps.barrier(),
            steps.nonblocking(steps.barrier(), RequestSlot(0)),
            steps.wait(RequestSlot(0)),
            steps.waitall(Requests(0, 2)),
            steps.compute(5),
            steps.flip(B),
        ],
    )
    def test_other_steps_have_no_data(self, step: Step) -> None:
        assert not filled(step, 0, WORLDS[0], 0) and not wanted(step, 0, WORLDS[0], 0)


class TestExpectations:
    def test_cover_every_pass_of_a_repeat(self) -> None:
        nodes = (Lap(), Repeat(4, (steps.irecv(Region("recv", 0, 8, 8), 1, "char", RequestSlot(0, 1)),)), Lap("time"))
        before, after = payload.expectations(nodes, WORLDS[0], 0)
        assert not before and [region.offset for region, _ in after] == [0, 8, 16, 24]

    def test_a_region_written_twice_keeps_its_last_content(self) -> None:
        nodes = (steps.recv(B, 1, "char", 1), steps.recv(B, 1, "char", 2))
        _, after = payload.expectations(nodes, WORLDS[0], 0)
        assert [(r, bytes(made())) for r, made in after] == list(wanted(nodes[1], 0, WORLDS[0], 0).items())

    @pytest.mark.parametrize(
        ("name", "ranks"),
        [("exchange", 2), ("stencil2d", 4), ("stencil3d", 8), ("exchange_put", 2), ("exchange_get", 2)],
    )
    def test_two_messages_of_one_pair_differ(self, name: str, ranks: int) -> None:
        benchmark = find(name)
        for rank in range(ranks):
            world = World(rank, ranks)
            (stage,) = benchmark.program(world, make_cell(benchmark, "mock", "native", 64, validate=True)).stages
            _, after = payload.expectations(stage.variants[0], world, 0)
            contents = [bytes(make()) for _, make in after]
            assert len(contents) >= 2 and len(set(contents)) == len(contents)
