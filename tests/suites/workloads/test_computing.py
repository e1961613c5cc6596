"""What a step multiplies with ``compute=matmul``: how much, where, and what it takes on the simulated backend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.workloads.benchmark import columns
from omb_py.suites.workloads.calls import MOST_ELEMENTS, Call, Product, join_items
from omb_py.suites.workloads.data_parallel import wrapped
from omb_py.suites.workloads.families import FAMILIES, parse_workload
from omb_py.suites.workloads.models import NAMES, model
from tests.suites.workloads.test_families import step
from tests.support.small_workloads import SMALL, text_of
from tests.support.tiers import few_quick

GPT = model("gpt2-124m")
LAYERS = 12 * 12 * 768**2
"""Elements of all layers' matrices of GPT-2 small: 12·h² a layer."""


def flop(text: str, ranks: int, rank: int = 0) -> int:
    return sum(call.flop for call in parse_workload(text).calls(rank, ranks))


class TestProducts:
    @given(st.floats(100, 1e12), st.integers(1, 1 << 24), st.integers(1, 4))
    def test_no_matrix_is_too_large_and_nothing_is_lost(self, parameters: float, rows: int, times: int) -> None:
        product = Product(parameters, rows, times)
        high, side, _ = product.shape
        assert side**2 <= MOST_ELEMENTS and high * side <= MOST_ELEMENTS + side
        # a side of 10 or more is rounded by up to a half
        assert product.flop == pytest.approx(2 * parameters * rows * times, rel=0.11)

    def test_stand_before_the_call_that_follows_or_behind_the_last(self) -> None:
        a, b, c, one, two = Product(4, 1), Product(9, 1), Product(16, 1), Call("bcast", 8), Call("barrier")
        first, last = join_items([a, b, one, two, c])
        assert (first.before, first.after, last.before, last.after) == ((a, b), (), (), (c,))
        assert join_items([a]) == [] and join_items([]) == [] and join_items([Product(4, 0), one]) == [one]


class TestHowMuch:
    @pytest.mark.parametrize(
        ("name", "which"),
        [("ddp", "mlp"), ("horovod", "resnet50"), ("ring", "gpt2-124m"), ("zero", "mlp"), ("fsdp", "gpt2-124m")],
    )
    def test_a_step_of_data_parallel_training_is_six_operations_a_parameter_and_token(
        self, name: str, which: str
    ) -> None:
        assert flop(f"{name}:model={which},tokens=10", 4) == pytest.approx(60 * model(which).parameters, rel=0.01)

    @pytest.mark.parametrize("stage", [1, 2])
    def test_of_zero_in_either_stage(self, stage: int) -> None:
        assert flop(f"zero:stage={stage},tokens=8,bucket=100000", 2) == pytest.approx(
            48 * model("mlp").parameters, rel=0.01
        )

    @pytest.mark.slow
    def test_tokens_follow_from_the_model(self) -> None:
        made = {name: flop(f"ddp:model={name}", 2) / 6 / model(name).parameters for name in NAMES}
        assert {name: round(tokens) for name, tokens in made.items()} == {
            "mlp": 32,
            "resnet50": 32,
            "gpt2-124m": 32,
            "gpt2-1.5b": 32,
            "bert-large": 16,
            "bert-2.5b": 16,
            "bert-2.5b-deep": 16,
            "gpt-j-6b": 64,
            "llama-13b": 64,
            "llama-33b": 64,
            "llama-65b": 64,
            "resnet110": 32,
            "amoebanet-18x208": 32,
            "amoebanet-18x416": 32,
            "amoebanet-36x544": 32,
            "deepseek-v3": 32,
            "llama2-7b": 128,
            "llama2-70b": 128,
        }

    @pytest.mark.parametrize("name", ["tensor", "tensor:sequence=on", "ulysses", "context"])
    def test_a_divided_model(self, name: str) -> None:
        text = f"{name}{',' if ':' in name else ':'}seq=64,batch=2"
        assert flop(text, 4) == pytest.approx(6 * LAYERS * 128 / 4, rel=0.01)

    @pytest.mark.parametrize(
        "text", ["pipeline:", "pipeline:schedule=gpipe,", "three_d:tp=2,pp=2,dp=1,", "three_d:pp=4,", "three_d:tp=4,"]
    )
    def test_the_stages_of_a_pipeline_together(self, text: str) -> None:
        found = sum(flop(f"{text}seq=64,micro=3", 4, rank) for rank in range(4))
        assert found == pytest.approx(3 * 6 * LAYERS * 64, rel=0.01)

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("decode:tokens=3,requests=2,batch=5", 3 * 2 * 5 * 2 * LAYERS / 4),
            ("moe:tokens=16,hidden=128,inner=64,experts=8,top=2,layers=3", 3 * 2 * (3 * 128 * 64) * 32),
            ("halo:side=64,channels=8,layers=3", 3 * 2 * 24**2 * 64 * 16),
            ("kmeans:clusters=16,features=64,points=100,iterations=2", 2 * 2 * 1024 * 100),
            ("knn:queries=16,features=64,points=100", 2 * 1024 * 100),
            ("pca:features=64,points=100", 2 * 4096 * 100),
            ("pca:method=tsvd,features=64,components=16,points=100,iterations=3", 3 * 4 * 1024 * 100),
            ("matmul:side=64", 2 * 64 * 64 * 16),
        ],
    )
    def test_the_others(self, text: str, wanted: float) -> None:
        assert flop(text, 4) == pytest.approx(wanted, rel=0.02)

    def test_every_family_says_it_or_refuses(self) -> None:
        for name, family in FAMILIES.items():
            if family.flop:
                assert any(flop(text_of(name, SMALL[name]), 4, rank) for rank in range(4)), name
            else:
                with pytest.raises(UsageError, match=f"workload {name}: nothing says .*: use compute=5ms"):
                    parse_workload(text_of(name, f"{SMALL[name]},compute=matmul"))


@pytest.mark.parametrize("text", ["matmull", "aut"])
def test_a_word_that_is_no_way_to_compute_is_answered_with_those_that_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no time, as 5ms: .*(auto|matmul)"):
        parse_workload(f"ddp:compute={text}")


class TestWhere:
    def test_the_forward_pass_is_before_the_first_bucket(self) -> None:
        calls = parse_workload("ddp:model=resnet50,tokens=1,buffers=off").calls(0, 2)
        forward = [part for part in calls[0].before if part.times == 1]
        assert sum(part.parameters for part in forward) == model("resnet50").parameters
        assert [[part.times for part in call.before] for call in calls[1:]] == [[2]] * (len(calls) - 1)
        assert [call.before[-1].parameters * 4 for call in calls] == [call.nbytes for call in calls]

    def test_a_unit_is_computed_behind_its_gather_and_before_its_gradients_leave(self) -> None:
        units = [sum(tensor.elements for tensor in part) for part in wrapped(GPT)[0]]
        calls = parse_workload("fsdp:model=gpt2-124m").calls(0, 2)
        kinds = {label: [c for c in calls if c.label == label] for label in dict.fromkeys(c.label for c in calls)}
        forward, backward, reduce = kinds["gather forward"], kinds["gather backward"], kinds["reduce"]
        assert [[p.parameters for p in c.before] for c in forward] == [[], *([n] for n in units[:-1])]
        assert [[p.parameters for p in c.before] for c in backward] == [[units[-1]], *[[]] * (len(units) - 2)]
        assert [[(p.parameters, p.times) for p in c.before] for c in reduce] == [[(n, 2)] for n in units[::-1]]


class TestOnTheSimulatedBackend:
    @pytest.mark.parametrize("name", few_quick(["ddp", "pipeline", "tensor", "moe"], 2))
    def test_right_bytes_beside_it(self, name: str) -> None:
        assert step(text_of(name, f"{SMALL[name]},compute=matmul"), 4, validate=True).wrong_bytes == 0

    def test_a_product_takes_its_operations_at_the_stated_rate(self) -> None:
        done = step("ddp:compute=matmul,tokens=10", 4)
        assert done.extra["flop"] == flop("ddp:tokens=10", 4)
        assert columns(done.laps)["compute_us"] == pytest.approx(done.extra["flop"] / 50e3, rel=1e-3)

    def test_ranks_that_compute_nothing_have_the_same_laps(self) -> None:
        done = step("parameter_server:compute=matmul", 3)
        assert done.laps["step.compute"][0] == 0 and min(done.laps["step.compute"][1:]) > 0
        assert done.extra["flop"] == pytest.approx(flop("parameter_server", 3, 1) * 2 / 3)
