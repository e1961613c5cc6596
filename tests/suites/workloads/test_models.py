"""Models against the counts that their papers and libraries publish, buckets against worked lists and torch's own
assignment; what a hook in its DDP sees is in tests/suites/training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.suites.workloads import buckets
from omb_py.suites.workloads.data_parallel import ddp_buckets
from omb_py.suites.workloads.models import NAMES, model, transformer

PUBLISHED = {
    "mlp": (669_706, 6),
    "resnet50": (25_557_032, 161),
    "bert-large": (335_141_888, 391),
    "gpt2-124m": (124_439_808, 148),
    "gpt2-1.5b": (1_557_611_200, 580),
    "llama2-7b": (6_738_415_616, 291),
    "llama2-70b": (68_976_648_192, 723),
}
FIRST, CAP = buckets.DDP_FIRST_BYTES, buckets.DDP_CAP_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name: str) -> None:
    made = model(name)
    if name in PUBLISHED:
        assert (made.parameters, len(made.tensors)) == PUBLISHED[name]
    else:  # 12·L·h² of the layers, the embedding, and what is small: 2.5 B
        assert name == "bert-2.5b" and made.parameters == pytest.approx(12 * 54 * 1920**2 + 30522 * 1920, rel=0.01)
    assert sum(count for _, count in made.units) == made.parameters


def test_a_layer_of_llama() -> None:
    assert dict(model("llama2-7b").units)["layer 0"] == 202_383_360
    assert transformer("llama2-70b").kv_hidden == 1024


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


@pytest.mark.parametrize(
    ("name", "dtype", "rebuilt", "unused"),
    [
        ("bert-large", "float32", 38, 38),
        ("bert-large", "bfloat16", 22, 22),
        ("gpt2-1.5b", "float32", 145, 146),
        ("gpt2-1.5b", "bfloat16", 73, 74),
    ],
)
def test_numbers_of_buckets(name: str, dtype: str, rebuilt: int, unused: int) -> None:
    assert len(ddp_buckets(name, dtype, "rebuilt", FIRST, CAP)) == rebuilt
    assert len(ddp_buckets(name, dtype, "unused", FIRST, CAP)) == unused


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
        counts = [count for _, count in model(name).tensors]
        tensors = [torch.empty(count, device="meta") for count in counts]
        found, _ = dist._compute_bucket_assignment_by_size(tensors, [FIRST, CAP], [False] * len(tensors))
        theirs = [sum(counts[j] * 4 for j in bucket) for bucket in found][::-1]
        assert list(ddp_buckets(name, "float32", "unused", FIRST, CAP)) == theirs, name
