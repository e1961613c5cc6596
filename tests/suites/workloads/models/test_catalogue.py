"""Models against the counts that their papers and libraries publish, buckets against worked lists and torch's own
assignment; what a hook in its DDP sees is in tests/suites/training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.workloads import buckets
from omb_py.suites.workloads.data_parallel import ddp_buckets
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.models import NAMES, model, transformer

PUBLISHED = {
    "mlp": (669_706, 6),
    "resnet50": (25_557_032, 161),
    "bert-large": (335_141_888, 391),
    "gpt2-124m": (124_439_808, 148),
    "gpt2-1.5b": (1_557_611_200, 580),
    "gpt-j-6b": (6_050_882_784, 285),  # transformers' GPTJForCausalLM
    "llama-13b": (13_015_864_320, 363),
    "llama-33b": (32_528_943_616, 543),
    "llama-65b": (65_285_660_672, 723),
    "resnet110": (1_727_962, 329),
    "llama2-7b": (6_738_415_616, 291),
    "llama2-70b": (68_976_648_192, 723),
}
ROUNDED = {
    "bert-2.5b": 2.5e9,
    "bert-2.5b-deep": 2.5e9,
    "deepseek-v3": 671e9,
    "amoebanet-18x208": 82e6,
    "amoebanet-18x416": 318e6,
    "amoebanet-36x544": 1.05e9,
}
"""As their papers print them."""
FIRST, CAP = buckets.DDP_FIRST_BYTES, buckets.DDP_CAP_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name: str) -> None:
    made = model(name)
    if name in PUBLISHED:
        assert (made.parameters, len(made.tensors)) == PUBLISHED[name]
    else:
        assert made.parameters == pytest.approx(ROUNDED[name], rel=0.02)
    assert sum(count for _, count in made.units) == made.parameters


def test_a_model_of_your_own_shape() -> None:
    made = model("custom:layers=12,hidden=768,vocabulary=50257")
    assert made.tensors == model("gpt2-124m").tensors and made.parameters == 124_439_808
    llama = model("custom:kind=llama,layers=80,hidden=8192,heads=64,kv_heads=8,inner=28672,seq=4096")
    assert llama.tensors == model("llama2-70b").tensors and llama.shape == transformer("llama2-70b")


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 4), st.integers(1, 100))
def test_parameters_of_any_shape(layers: int, heads: int, times: int, vocabulary: int) -> None:
    """12·L·h² and 13·L·h of the layers, two embeddings and the last norm (GPT-2)."""
    h = 8 * heads * times
    made = model(f"custom:layers={layers},hidden={h},heads={heads},vocabulary={vocabulary},seq=16")
    assert made.parameters == layers * (12 * h * h + 13 * h) + (vocabulary + 16) * h + 2 * h
    assert made.shape is not None and made.shape.layer == 12 * h * h


def test_the_keys_of_a_shape_end_where_those_of_the_workload_begin() -> None:
    text = "tensor:dtype=float32,model=custom:layers=24,hidden=1024,heads=16,tp=4,layers=2"
    workload = parse_workload(text)
    assert workload.values["model"].shape.layers == 24 and workload.values["layers"] == 2
    assert workload.values["tp"] == 4 and parse_workload(workload.text).text == workload.text
    assert len(workload.calls(0, 4)) == 2 * 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("custom", "layers is missing: write model=custom:layers=24,hidden=1024"),
        ("custom:layers=2", "hidden is missing"),
        ("custom:layers=2,hidden=100,heads=3", "hidden 100 cannot be divided by heads 3"),
        ("custom:layers=2,hidden=64,heads=4,kv_heads=3", "heads 4 cannot be divided by kv_heads 3"),
        ("custom:layers=0,hidden=64", "layers: '0' is not a whole number from 1 to 10000"),
        ("custom:layer=2,hidden=64", "did you mean layers"),
        ("custom:layers=2,hidden=64,kind=t5", "kind: 't5'"),
    ],
)
def test_shapes_that_are_none(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model(name)


def test_unknown_models() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'resnet5': did you mean resnet50\?"):
        model("resnet5")
    with pytest.raises(UsageError, match="resnet50 has no layers of attention: use one of gpt2-124m"):
        transformer("resnet50")


@pytest.mark.parametrize(
    ("name", "dtype", "rebuilt", "unused"),
    [
        (
            "resnet50",
            "float32",
            [8196000, 31502336, 26255360, 26550272, 9724160],
            [12410784, 31502336, 29669376, 27022336, 1623296],
        ),
        ("resnet50", "bfloat16", [4098000, 28878848, 18137216], [21956560, 27950080, 1207424]),
        ("gpt2-124m", "bfloat16", [4723200, *[28351488] * 5, 102398976], [4608, *[28351488] * 5, 29922816, 77194752]),
    ],
)
def test_buckets_by_the_published_rule(name: str, dtype: str, rebuilt: list[int], unused: list[int]) -> None:
    assert list(ddp_buckets(name, dtype, "rebuilt", FIRST, CAP)) == rebuilt
    assert list(ddp_buckets(name, dtype, "unused", FIRST, CAP)) == unused


@given(st.lists(st.integers(1, 1 << 20)), st.integers(1, 1 << 19), st.integers(1, 1 << 20))
def test_no_byte_is_lost_and_limits_hold(sizes: list[int], first: int, cap: int) -> None:
    for layout in ("first", "rebuilt", "unused"):
        made = buckets.ddp(sizes, layout, first, cap)
        assert sum(made) == sum(sizes)
        assert layout == "first" or all(n < max(first, cap) + (1 << 20) for n in made)
    fused = buckets.fused(sizes, cap)
    assert sum(fused) == sum(sizes)
    assert all(n <= cap or n in sizes for n in fused)
    assert buckets.fused(sizes, 0) == sizes


def test_torch_itself_assigns_the_same_buckets() -> None:
    """Of every model, by the function with which torch's DDP does it, on tensors that hold no memory."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")
    import torch.distributed as dist

    for name in ("mlp", "resnet50", "bert-large", "gpt2-124m", "gpt2-1.5b"):
        counts = [tensor.elements for tensor in model(name).tensors]
        tensors = [torch.empty(count, device="meta") for count in counts]
        found, _ = dist._compute_bucket_assignment_by_size(tensors, [FIRST, CAP], [False] * len(tensors))
        theirs = [sum(counts[j] * 4 for j in bucket) for bucket in found][::-1]
        assert list(ddp_buckets(name, "float32", "unused", FIRST, CAP)) == theirs, name
