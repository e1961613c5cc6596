"""Every family on the simulated backend: right bytes, right answer, many ranks; and what bad input gets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.registry import capabilities_of
from omb_py.errors import UsageError
from omb_py.options.table import make_cell
from omb_py.suites.registry import find
from omb_py.suites.workloads.benchmark import columns, fits
from omb_py.suites.workloads.calls import NOTIFY, OF_MESSAGES, SERVE, WRITE, Call
from omb_py.suites.workloads.experts import apportioned, loads
from omb_py.suites.workloads.families import FAMILIES, parse_workload
from omb_py.suites.workloads.grid import grid
from tests.support.machines.simulated import cell, measured
from tests.support.small_workloads import SMALL, WRITES, text_of
from tests.support.tiers import few_quick


def many(ranks: int) -> dict[str, str]:
    """Settings at hundreds of ranks: groups, where all in one would take long, or the model has few heads or layers."""
    return {
        "ring": "ring=4",
        "parameter_server": f"servers={ranks - 4}",
        "fsdp": f"shard=8,replica={ranks // 8}",
        "tensor": "tp=4,layers=1",
        "context": "cp=4,layers=1",
        "ulysses": "sp=4,layers=1",
        "pipeline": "pp=4,micro=1",
        "gems": "pp=4,micro=1",
        "three_d": "tp=2,pp=2,layers=2,micro=1",
        "moe": "ep=4,tokens=8",
        "prefill": "tp=4,layers=1",
        "decode": "tp=4,layers=1",
        "kv_transfer": f"prefill={ranks // 2},decode_tp=2,requests={ranks // 2},layers=1",
        "serving": "tp=4,layers=1,requests=2,tokens=2",
        "halo": f"columns={ranks // 32 or 1},layers=1",
    }


def step(text: str, ranks: int, **more: Any) -> Any:
    return measured("step", ranks, workload=text, iterations=1, **more)


def calls(text: str, ranks: int) -> list[tuple[Call, ...]]:
    return [parse_workload(text).calls(rank, ranks) for rank in range(ranks)]


@pytest.mark.parametrize("name", few_quick([*FAMILIES, WRITES], 5))
def test_right_bytes_and_right_answer_on_four_ranks(name: str) -> None:
    done = step(text_of(name, SMALL.get(name, "")), 4, validate=True)
    assert done.wrong_bytes == 0
    found = columns(done.laps)
    assert found["serial_us"] > 0 and found["flight_us"] > 0 and 0 <= found["overlap_pct"] <= 100


@pytest.mark.parametrize("name", few_quick([*FAMILIES, WRITES], 5))
def test_a_wrong_byte_is_found(name: str) -> None:
    """On some rank that receives: of a gather or the servers that is rank 0, of keys and values the last, else any."""
    receiver = 3 if name.startswith("kv_transfer") else 0
    done = step(text_of(name, SMALL.get(name, "")), 4, validate=True, mock=f"flip={receiver}")
    assert done.wrong_bytes > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_many_ranks(name: str) -> None:
    done = step(text_of(name, many(64).get(name, "")), 64, mock="data=off")
    assert columns(done.laps)["serial_us"] > 0
    assert len(done.laps["step"]) == 64


@pytest.mark.parametrize("name", [*FAMILIES, WRITES])
def test_ends_of_every_call_agree(name: str) -> None:
    """What is sent to a rank is received there, with the same size and tag, and members of a group call the same."""
    made = calls(text_of(name, SMALL.get(name, "")), 4)
    sent, received = Counter[Any](), Counter[Any]()
    in_groups: dict[tuple[int, ...], list[list[Any]]] = {}
    for rank, own in enumerate(made):
        for call in own:
            sent.update((rank, m.peer, m.tag, m.nbytes) for m in call.sends)
            received.update((m.peer, rank, m.tag, m.nbytes) for m in (*call.receives, *call.written))
        together = [call for call in own if call.op not in OF_MESSAGES or call.op == SERVE]
        for group in {call.group for call in together}:
            assert not group or rank in group
            shape = [(c.op, c.nbytes, c.dtype, c.root) for c in together if c.group == group]
            in_groups.setdefault(group, []).append(shape)
    assert sent == received
    for group, shapes in in_groups.items():
        assert len(shapes) == (len(group) or 4) and all(shape == shapes[0] for shape in shapes)


class TestBytes:
    """Against the formulas of the anchor, at full size."""

    def test_data_parallel_reduces_every_parameter_once(self) -> None:
        for text in ("ddp:model=resnet50", "ddp:model=resnet50,layout=first", "horovod:model=resnet50"):
            assert sum(c.nbytes for c in calls(text, 2)[0] if c.op == "allreduce") == 4 * 25_557_032
        servers, workers = calls("parameter_server:model=resnet50,servers=1", 3)[0], calls("parameter_server", 3)[1:]
        assert sum(len(c.receives) for c in servers) == 2 and len(workers) == 2

    @pytest.mark.slow
    def test_what_ddp_sends_besides_gradients(self) -> None:
        """Recorded of torch 2.13: statistics and counters of batch norms first; who was used last."""
        own = calls("ddp:model=resnet50,layout=unused", 2)[0]
        assert [(c.op, c.nbytes, c.dtype) for c in own[:2]] == [("bcast", 212_480, "float32"), ("bcast", 424, "int64")]
        assert (own[-1].op, own[-1].nbytes, own[-1].dtype) == ("allreduce", 161 * 4, "int32")
        for model in ("mlp", "gpt2-124m", "deepseek-v3"):
            assert all(c.op == "allreduce" for c in calls(f"ddp:model={model}", 2)[0]), model

    def test_a_cap_of_ones_own_is_the_first_buckets_too(self) -> None:
        """Recorded of torch 2.13: ten buckets of a GPT-2 of 439 008 parameters with a cap of 52 428 B."""
        gpt = "custom:layers=2,hidden=128,vocabulary=200,seq=64,heads=4"
        assert len(calls(f"ddp:model={gpt},cap=52428", 2)[0]) > len(calls(f"ddp:model={gpt},first=1M,cap=52428", 2)[0])
        both = (
            calls("ddp:model=resnet50,cap=4M,buffers=off", 2),
            calls("ddp:model=resnet50,first=4M,cap=4M,buffers=off", 2),
        )
        assert [c.nbytes for c in both[0][0]] == [c.nbytes for c in both[1][0]]

    def test_twins_of_gems_reduce_both_of_their_stages(self) -> None:
        own = calls("gems:model=gpt2-124m,micro=4", 4)[0]
        assert sum(c.sent for c in own) == 137_022_720

    @pytest.mark.parametrize("ranks", [2, 6, 7])
    def test_as_many_copies_come_as_go(self, ranks: int) -> None:
        own = calls(f"moe:copies=ranks,tokens=100,hidden=128,experts={8 * ranks}", ranks)
        assert {(sum(c.out), sum(c.back)) for rank in own for c in rank if c.label == "dispatch"} == {
            (sum(own[0][0].out), sum(own[0][0].out))
        }

    @pytest.mark.parametrize(
        ("mode", "copies", "out", "back", "counts"),
        [("normal", "ranks", 7392 + 4 + 96, 14336 + 4 + 32, 4 * 65), ("low_latency", "experts", 7392 + 16, 14336, 256)],
    )
    def test_experts_as_deepep(self, mode: str, copies: str, out: int, back: int, counts: int) -> None:
        """Intranode and low-latency kernels of DeepEP: what travels with a token, and the counts before it."""
        plain = calls(f"moe:copies={copies}", 4)[0]
        own = calls(f"moe:mode={mode}", 4)[0]
        tokens = sum(plain[0].out) // (7168 + 224)
        assert [(c.label, c.sent) for c in own] == [
            ("counts", 4 * counts),
            ("dispatch", tokens * out),
            ("combine", sum(plain[1].out) // 14336 * back),
        ]

    def test_micro_batches_overlap_and_move_the_same(self) -> None:
        one, two = (calls(f"moe:mode=normal,micro={n}", 4)[0] for n in (1, 2))
        assert [c.label for c in two] == ["counts", "dispatch"] * 2 + ["combine"] * 2
        assert [c.until for c in two] == [0, 1, 0, 1, 1, 1]
        for label in ("dispatch", "combine"):
            sums = [sum(c.sent for c in own if c.label == label) for own in (one, two)]
            assert sums[0] == pytest.approx(sums[1], rel=0.01)

    def test_a_tied_embedding_is_reduced_between_the_first_stage_and_the_last(self) -> None:
        vocabulary = 50_304  # 50 257, up to a multiple of 128
        for rank, own in enumerate(calls("pipeline:model=gpt2-124m,head=on", 4)):
            tied = [(c.nbytes, c.group) for c in own if c.label == "tied embedding"]
            assert tied == ([(vocabulary * 768 * 2, (0, 3))] if rank in (0, 3) else [])
        assert not any(c.label == "tied embedding" for c in calls("pipeline:model=llama2-7b,head=on", 4)[0])

    def test_the_ends_of_a_model_are_on_the_first_and_the_last_stage(self) -> None:
        made = calls("three_d:model=gpt2-124m,tp=2,pp=2,dp=1,micro=1,head=on", 4)
        labels = [Counter(c.label for c in own) for own in made]
        assert [own["tensor embedding"] for own in labels] == [1, 1, 0, 0]
        assert [(own["tensor loss"], own["tensor head"]) for own in labels] == [(0, 0), (0, 0), (3, 1), (3, 1)]

    @pytest.mark.parametrize(
        ("tp", "pieces"),
        [
            *(((1, 1), "layer"), ((2, 1), "page"), ((1, 2), "whole")),
            *(((2, 4), "layer"), ((16, 8), "page"), ((8, 16), "whole")),
        ],
    )
    def test_every_rank_that_generates_gets_its_heads_once(self, tp: tuple[int, int], pieces: str) -> None:
        """Of 8 heads of keys and values; more ranks than those hold one head each, several the same."""
        settings = f"requests=1,layers=2,prompt=40,prefill_tp={tp[0]},decode_tp={tp[1]},pieces={pieces}"
        text = f"kv_transfer:model=llama2-70b,{settings}"
        made = calls(text, sum(tp))
        each = 2 * 2 * 40 * 128 * 2 * max(1, 8 // tp[1])
        assert {sum(m.nbytes for c in own for m in c.receives) for own in made[tp[0] :]} == {each}
        assert sum(c.sent for own in made[: tp[0]] for c in own) == each * tp[1]
        sending = [sum(c.sent for c in own) for own in made[: tp[0]]]
        assert max(sending) - min(sending) <= each, "no rank sends for the others that hold the same"
        for sent, written in zip(made, calls(f"{text},op=write", sum(tp)), strict=True):
            told = {m.peer for call in sent for m in (*call.sends, *call.receives)}
            assert [m for c in written if c.op == WRITE for m in c.sends] == [m for c in sent for m in c.sends]
            assert [m for c in written for m in c.written] == [m for c in sent for m in c.receives]
            assert {m.peer for c in written if c.op == NOTIFY for m in (*c.sends, *c.receives)} == told

    def test_a_token_needs_the_embedding_and_the_logits(self) -> None:
        own = calls("decode:model=llama2-70b,head=on,tokens=2,requests=3,layers=1", 8)[0]
        assert Counter((c.op, c.nbytes) for c in own) == {("allreduce", 16384): 2 * 3 * 3, ("allgather", 8192): 2 * 3}

    def test_tensor_parallel(self) -> None:
        own = calls("tensor:model=llama2-70b", 8)[0]
        assert Counter(c.nbytes for c in own) == {64 << 20: 4 * 80}
        both = calls("tensor:model=llama2-70b,sequence=on", 8)[0]
        assert Counter(c.nbytes for c in both) == {8 << 20: 6 * 80, 64 << 20: 4 * 80}
        assert Counter(c.label for c in both if c.op == "allgather") == {
            "forward gather": 2 * 80,
            "backward gather": 2 * 80,
            "backward gather of the input": 2 * 80,
        }
        assert {c.nbytes for c in calls("decode:model=llama2-70b", 8)[0]} == {16 << 10}

    def test_stages_exchange_what_a_rank_of_the_tensor_holds(self) -> None:
        for sequence, nbytes in (("off", 64 << 20), ("on", 32 << 20)):
            own = calls(f"three_d:model=llama2-70b,tp=2,pp=2,dp=1,layers=2,micro=1,sequence={sequence}", 4)[0]
            assert {c.sent for c in own if c.sends} == {nbytes}

    def test_a_ring_with_gradients_as_ring_flash_attention(self) -> None:
        """Keys and values n − 1 times in both passes; gradients in float32 n times, until they are home again."""
        for ranks in (2, 4, 8):
            own = calls("context:model=llama2-70b,seq=8192,layers=2", ranks)[0]
            block = 2 * (8192 // ranks) * 1024
            assert {tuple(m.nbytes for m in c.sends) for c in own if c.dtype == "bfloat16"} == {(block, block)}
            assert Counter((c.label, c.sent, c.dtype) for c in own) == {
                ("forward", 2 * block, "bfloat16"): 2 * (ranks - 1),
                ("backward", 2 * block, "bfloat16"): 2 * (ranks - 1),
                ("gradients", 4 * block, "float32"): 2 * ranks,
            }

    @pytest.mark.parametrize(("ranks", "heads"), [(2, 8), (8, 8), (16, 16), (32, 32)])
    def test_ulysses_exchanges_the_heads_that_there_are(self, ranks: int, heads: int) -> None:
        """Of 64 heads and 8 of keys and values; more ranks than those repeat them, one for each rank."""
        own = calls("ulysses:model=llama2-70b,seq=4096,layers=1", ranks)[0]
        a_head = 4096 // ranks * 128 * 2
        queries = {c.nbytes for c in own if "queries" in c.label or "result" in c.label}
        grouped = [c.nbytes for c in own if "keys" in c.label]
        assert queries == {64 * a_head} and grouped == [heads * a_head] * 4


@pytest.mark.slow
@given(st.sampled_from(["balanced", "zipf", "hot"]), st.integers(1, 8), st.integers(0, 10_000))
def test_no_token_is_lost(pattern: str, ranks: int, tokens: int) -> None:
    shares = loads(pattern, 8 * ranks, ranks, 0.5)
    assert sum(shares) == pytest.approx(1)
    parts = apportioned(tokens, shares)
    assert sum(parts) == tokens and min(parts) >= 0
    assert parts[0] == max(parts) or pattern == "balanced"


@given(st.lists(st.integers(1, 4), min_size=3, max_size=3), st.permutations(["a", "b", "c"]))
def test_a_grid_has_each_rank_in_one_group_of_each_dimension(sizes: list[int], order: list[str]) -> None:
    ranks = sizes[0] * sizes[1] * sizes[2]
    where = grid(ranks, dict(zip("abc", sizes, strict=True)), "c", order)
    for name in order:
        groups = {where.group(rank, name) for rank in range(ranks)}
        assert sorted(rank for group in groups for rank in group) == list(range(ranks))
        assert all(where.group(rank, name)[where.coordinate(rank, name)] == rank for rank in range(ranks))


class TestBadInput:
    def test_too_large_to_be_checked(self) -> None:
        fits(cell("step", workload="ddp:model=gpt2-1.5b"), 2)
        with pytest.raises(UsageError, match=r"leave out -c, or write scale=1/16"):
            fits(cell("step", workload="ddp:model=gpt2-1.5b", validate=True), 2)
        fits(cell("step", workload="ddp:model=gpt2-1.5b,scale=1/16", validate=True), 2)


def test_a_matrix_from_a_file_travels_in_the_text(tmp_path: Path) -> None:
    file = tmp_path / "matrix"
    file.write_text("# who sends to whom\n0, 5\n3, 1\n")
    made = parse_workload(f"moe:traffic=@{file},hidden=128")
    assert made.text == "moe:hidden=128,traffic=0 5;3 1" and parse_workload(made.text) == made
    assert [c.out for c in made.calls(0, 2)] == [(0, 5 * 132), (0, 3 * 256)]
    assert [c.back for c in made.calls(0, 2)] == [(0, 3 * 132), (0, 5 * 256)]


def test_beyond_the_arena_a_call_waits_for_the_memory_it_takes() -> None:
    from omb_py.engine.program.benchmark import World
    from omb_py.engine.program.language import Step, walk
    from omb_py.suites.workloads.program import place_calls, program_of

    workload, world = parse_workload("ddp:model=resnet50,buffers=off"), World(0, 2)
    made, buffers = place_calls(workload, world, 64 << 20)
    assert [laid.wraps for laid in made] == [False, False, False, True, False]
    assert max(buffer.nbytes for buffer in buffers) <= 64 << 20
    flight = program_of(workload, world, most=64 << 20).stages[1]
    waits = [n["requests"].count for n, _ in walk(flight.variants[0]) if isinstance(n, Step) and n.op == "waitall"]
    assert waits == [3, 2]


def test_what_is_written_is_complete_before_its_place_is_written_again() -> None:
    """Two layers of 1 MiB through memory for one: the sender flushes between them, and each lands where it should."""
    from omb_py.engine.program.benchmark import World
    from omb_py.engine.program.language import Step, walk
    from omb_py.suites.workloads.program import program_of

    workload = parse_workload("kv_transfer:model=llama2-7b,layers=2,prompt=64,requests=1,op=write")
    most = (1 << 20) + 64
    sender, receiver = (program_of(workload, World(rank, 2), most=most) for rank in range(2))
    made = [[n for n, _ in walk(p.stages[1].variants[0]) if isinstance(n, Step)] for p in (sender, receiver)]
    writes = ["put", "put", "win_flush"]
    assert [n.op for n in made[0]] == [*writes, *writes, "isend", "waitall", "barrier"]
    places = [[n["window"] for n in of if n.op in ("put", "exposed")] for of in made]
    assert places[0] == places[1] and max(place.offset + place.nbytes for place in places[0]) <= most
    assert [p.window and p.window.buffer for p in (sender, receiver)] == ["recv", "recv"]


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("gloo", "one-sided"),
        ("nccl", "done when the target has waited for them"),
        ("oneccl", "one-sided"),
        ("ucc", "one-sided"),
    ],
)
def test_backends_without_writes_name_what_moves_the_same(backend: str, reason: str) -> None:
    why = capabilities_of()[backend].why_refused(find("step"), cell("step", workload="kv_transfer:op=write"))
    assert reason in why and why.endswith("(op=send moves the same bytes): use --backend mpi")
    assert not capabilities_of()[backend].why_refused(find("step"), cell("step", workload="kv_transfer"))


def test_the_step_is_computing_and_what_it_does_not_hide() -> None:
    fixed = columns(step("ddp:compute=5ms", 4).laps)
    assert fixed["compute_us"] == pytest.approx(5000, rel=1e-3)
    auto = columns(step("ddp", 4).laps)
    assert auto["compute_us"] == pytest.approx(auto["serial_us"], rel=1e-3)
    assert auto["exposed_us"] < auto["serial_us"], "all but the last bucket runs beside computing"


def test_no_gradient_is_cut_within_an_element() -> None:
    text = "three_d:model=custom:layers=1,hidden=64,heads=1,seq=16,vocabulary=10,micro=1,cap=30001,dtype=float32"
    sizes = [call.size for call in parse_workload(text).calls(0, 2) if call.op == "allreduce"]
    assert sizes[:2] == [30_000, 30_000] and not any(size % 4 for size in sizes)


def test_data_is_checked_where_the_fullest_rank_has_memory_for_it() -> None:
    """The middle stages of a pipeline have twice the messages of the first."""
    text = "pipeline:model=llama2-7b,micro=20,layers=4"
    step = find("step")
    fits(make_cell(step, "mock", "native", 0, workload=text), 4)
    with pytest.raises(UsageError, match=r"all its calls need memory of their own.*write scale=1/"):
        fits(make_cell(step, "mock", "native", 0, workload=text, validate=True), 4)
