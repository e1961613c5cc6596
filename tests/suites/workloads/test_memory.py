"""Memory beside a layout, against the figures that papers print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.workloads.families import FAMILIES, parse_workload
from omb_py.suites.workloads.memory import Memory, needed
from omb_py.suites.workloads.models import model
from tests.support.small_workloads import SMALL, text_of

# 7.5 B parameters, as in figure 1 of the paper on ZeRO
ABOUT_7_5_B = "custom:layers=36,hidden=4096,heads=32,vocabulary=50257,kind=gpt2"


def of(text: str, ranks: int) -> Memory:
    memory = needed(parse_workload(text), ranks)
    assert memory is not None
    return memory


@pytest.mark.parametrize(
    ("text", "published_gb"),
    [("ddp", 120), ("zero:stage=1", 31.4), ("zero:stage=2", 16.6), ("fsdp:prefetch=off", 1.88)],
)
def test_the_figure_of_zero(text: str, published_gb: float) -> None:
    """Figure 1 of arXiv 1910.02054: 7.5 B parameters, 64 ranks, mixed precision with Adam."""
    name, colon, rest = text.partition(":")
    memory = of(f"{name}:{rest}{colon and ','}model={ABOUT_7_5_B},dtype=bfloat16", 64)
    parameters = model(ABOUT_7_5_B).parameters
    gathered = max(n for _, n in model(ABOUT_7_5_B).units) * 2 if name == "fsdp" else 0
    assert (memory.states - gathered) / parameters * 7.5 == pytest.approx(published_gb, rel=0.01)


@pytest.mark.parametrize(("sequence", "share"), [("off", 10 + 24 / 8), ("on", 34 / 8)])
def test_activations_of_a_layer(sequence: str, share: float) -> None:
    """Table 2 of arXiv 2205.05198, with selective recomputation, for its 22 B model: s 2048, h 6144, b 4, t 8."""
    text = f"tensor:batch=4,model=custom:layers=48,hidden=6144,heads=64,vocabulary=51200,seq=2048,sequence={sequence}"
    assert of(text, 8).activations == pytest.approx(48 * 2048 * 4 * 6144 * share)


def test_requests_at_once_keep_keys_and_values_of_their_longest() -> None:
    memory = of("serving:model=llama2-70b,prompt=100,slots=3,arrivals=0 5;1 20;2 1;3 1", 8)
    assert memory.activations == 3 * 80 * 2 * 1024 * 2 * 120 / 8
    assert of("serving:model=llama2-70b,requests=2,prompt=100,tokens=20", 8).activations == memory.activations * 2 / 3


@pytest.mark.slow
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 3]))
def test_three_d_with_one_of_a_kind_is_that_kind(tp: int, pp: int, dp: int) -> None:
    text = f"three_d:model=llama2-7b,tp={tp},pp={pp},dp={dp}"
    memory = of(text, tp * pp * dp)
    assert memory.states == 16 * 6_738_415_616 / (tp * pp)
    if pp == 1:
        assert memory.activations == of(f"tensor:model=llama2-7b,tp={tp}", tp * dp).activations
    if tp == 1:
        assert memory.activations == of(f"pipeline:model=llama2-7b,pp={pp}", pp * dp).activations


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_with_a_model_has_a_formula(name: str) -> None:
    memory = needed(parse_workload(text_of(name, SMALL[name])), 4)
    assert (memory is not None) == ("model" in FAMILIES[name].keys)
    assert memory is None or (memory.states > 0 and memory.formula and bool(memory.kept) == (memory.activations > 0))


def test_ranks_that_do_not_fit() -> None:
    with pytest.raises(UsageError, match="use -n 8"):
        needed(parse_workload("three_d:tp=2,pp=2,dp=2"), 4)
