"""Parameters of transformers in the order of definition. Matrices are those of torch.nn.Linear: outputs × inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from omb_py.suites.workloads.models.shape import Shape, Tensor, in_unit


def _layers(s: Shape, *shapes: int | tuple[int, int]) -> list[Tensor]:
    return [tensor for j in range(s.layers) for tensor in in_unit(f"layer {j}", *shapes)]


def _gpt2(s: Shape) -> list[Tensor]:
    h, w = s.hidden, s.width
    embedding = in_unit("embedding", (s.vocabulary, h), (s.sequence, h))
    layers = _layers(s, h, h, (3 * h, h), 3 * h, (h, h), h, h, h, (w, h), w, (h, w), h)
    return [*embedding, *layers, *in_unit("norm", h, h)]


def _bert(s: Shape) -> list[Tensor]:
    h, w = s.hidden, s.width
    embedding = in_unit("embedding", (s.vocabulary, h), (s.sequence, h), (2, h), h, h)
    attention = ((h, h), h) * 4
    return [*embedding, *_layers(s, *attention, h, h, (w, h), w, (h, w), h, h, h), *in_unit("pooler", (h, h), h)]


def _gptj(s: Shape) -> list[Tensor]:
    """Attention and feed-forward part share a norm; only the feed-forward part has biases."""
    h, w = s.hidden, s.width
    layers = _layers(s, h, h, *((h, h),) * 4, (w, h), w, (h, w), h)
    return [*in_unit("embedding", (s.vocabulary, h)), *layers, *in_unit("norm", h, h), *_head(s, s.vocabulary)]


def _llama(s: Shape) -> list[Tensor]:
    h, kv, w = s.hidden, s.kv_hidden, s.width
    layers = _layers(s, (h, h), (kv, h), (kv, h), (h, h), (w, h), (w, h), (h, w), h, h)
    return [*in_unit("embedding", (s.vocabulary, h)), *layers, *in_unit("norm", h), *_head(s)]


def _head(s: Shape, *biases: int) -> list[Tensor]:
    return in_unit("head", (s.vocabulary, s.hidden), *biases)


KINDS: Final[Mapping[str, Callable[[Shape], list[Tensor]]]] = {
    "gpt2": _gpt2,
    "bert": _bert,
    "gptj": _gptj,
    "llama": _llama,
}
"""`Shape.kind` -> its parameters."""


def deepseek_v3() -> list[Tensor]:
    """DeepSeek-V3 without its module of multi-token prediction: 3 dense layers, then 58 with experts.

    Sizes are those of the configuration that was published with the weights (arXiv 2412.19437, section 4.2).
    """
    h, heads, vocabulary, experts = 7168, 128, 129280, 256
    q_rank, kv_rank, head, rope = 1536, 512, 128, 64
    attention = (
        (q_rank, h),
        q_rank,
        (heads * (head + rope), q_rank),
        (kv_rank + rope, h),
        kv_rank,
        (heads * 2 * head, kv_rank),
        (h, heads * head),
    )

    def gated(width: int) -> tuple[tuple[int, int], ...]:
        return (width, h), (width, h), (h, width)

    dense: tuple[int | tuple[int, int], ...] = (*attention, *gated(18432), h, h)
    each = gated(2048) * (experts + 1)  # the last expert is the shared one
    mixed: tuple[int | tuple[int, int], ...] = (*attention, (experts, h), experts, *each, h, h)
    layers = [in_unit(f"layer {j}", *(dense if j < 3 else mixed)) for j in range(61)]
    flat = [tensor for layer in layers for tensor in layer]
    return [*in_unit("embedding", (vocabulary, h)), *flat, *in_unit("norm", h), *in_unit("head", (vocabulary, h))]
