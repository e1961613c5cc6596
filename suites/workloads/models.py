"""Shapes of models: the number of elements of each parameter, in the order of definition.

The counts are asserted against the published ones in tests/suites/workloads/test_models.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final

from omb_py.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class Shape:
    """A transformer's shape."""

    layers: int
    hidden: int
    heads: int
    sequence: int
    """Tokens of the sequences that it is trained on."""
    vocabulary: int
    kind: str
    """``gpt2``, ``bert`` or ``llama``."""
    kv_heads: int = 0
    """Heads of keys and values; 0: as many as heads."""
    inner: int = 0
    """Width of the feed-forward part; 0: 4 × hidden."""

    @property
    def kv_hidden(self) -> int:
        """Elements of the keys (or values) of a token."""
        return self.hidden // self.heads * (self.kv_heads or self.heads)

    @property
    def projections(self) -> int:
        """Elements of a layer's matrices for queries, keys and values."""
        return self.hidden * (self.hidden + 2 * self.kv_hidden)

    @property
    def output(self) -> int:
        """Elements of the matrix that projects the attention's output."""
        return self.hidden * self.hidden

    @property
    def feed_forward(self) -> int:
        """Elements of the matrices of a layer's feed-forward part: two, or with a gate (``llama``) three."""
        return (3 if self.kind == "llama" else 2) * self.hidden * (self.inner or 4 * self.hidden)

    @property
    def layer(self) -> int:
        """Elements of all matrices of a layer."""
        return self.projections + self.output + self.feed_forward


@dataclass(frozen=True, slots=True)
class Model:
    """The properties of a model that its communication depends on."""

    name: str
    tensors: tuple[tuple[str, int], ...]
    """(unit, elements) of each parameter, in the order of definition. A unit is what FSDP wraps: a layer or block."""
    source: str
    shape: Shape | None = None

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return sum(count for _, count in self.tensors)

    @property
    def units(self) -> tuple[tuple[str, int], ...]:
        """(unit, elements), in the order of definition."""
        return tuple((name, sum(n for _, n in part)) for name, part in groupby(self.tensors, itemgetter(0)))


SHAPES: Final = {
    "gpt2-124m": Shape(12, 768, 12, 1024, 50257, "gpt2"),
    "gpt2-1.5b": Shape(48, 1600, 25, 1024, 50257, "gpt2"),
    "bert-large": Shape(24, 1024, 16, 512, 30522, "bert"),
    "bert-2.5b": Shape(54, 1920, 20, 512, 30522, "bert"),
    "llama2-7b": Shape(32, 4096, 32, 4096, 32000, "llama", inner=11008),
    "llama2-70b": Shape(80, 8192, 64, 4096, 32000, "llama", kv_heads=8, inner=28672),
}
_SOURCES: Final = {
    "gpt2-124m": "GPT-2 small (Radford et al. 2019), output weights tied to the embedding",
    "gpt2-1.5b": "GPT-2 XL (Radford et al. 2019), output weights tied to the embedding",
    "bert-large": "BERT-large, uncased, with pooler (arXiv 1810.04805)",
    "bert-2.5b": "BERT with the 54 layers of 1920 of Megatron-LM's 2.5 B model (arXiv 1909.08053, table 1)",
    "llama2-7b": "Llama 2 7B (arXiv 2307.09288)",
    "llama2-70b": "Llama 2 70B (arXiv 2307.09288)",
}


def _gpt2(s: Shape) -> list[tuple[str, int]]:
    h = s.hidden
    layer = (h, h, h * 3 * h, 3 * h, h * h, h, h, h, h * 4 * h, 4 * h, 4 * h * h, h)
    embedding = [("embedding", s.vocabulary * h), ("embedding", s.sequence * h)]
    return [*embedding, *((f"layer {j}", n) for j in range(s.layers) for n in layer), ("norm", h), ("norm", h)]


def _bert(s: Shape) -> list[tuple[str, int]]:
    h = s.hidden
    layer = (h * h, h) * 4 + (h, h) + (h * 4 * h, 4 * h, 4 * h * h, h) + (h, h)
    embedding = [("embedding", n) for n in (s.vocabulary * h, s.sequence * h, 2 * h, h, h)]
    pooler = [("pooler", h * h), ("pooler", h)]
    return [*embedding, *((f"layer {j}", n) for j in range(s.layers) for n in layer), *pooler]


def _llama(s: Shape) -> list[tuple[str, int]]:
    h, kv, inner = s.hidden, s.kv_hidden, s.inner
    layer = (h * h, h * kv, h * kv, h * h, h * inner, h * inner, inner * h, h, h)
    layers = ((f"layer {j}", n) for j in range(s.layers) for n in layer)
    return [("embedding", s.vocabulary * h), *layers, ("norm", h), ("head", h * s.vocabulary)]


def _resnet50() -> list[tuple[str, int]]:
    """torchvision's resnet50: convolution, then scale and shift of its batch norm."""

    def conv(unit: str, into: int, out: int, kernel: int) -> list[tuple[str, int]]:
        return [(unit, into * out * kernel * kernel), (unit, out), (unit, out)]

    tensors, into = conv("stem", 3, 64, 7), 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            unit, out = f"block {stage + 1}.{block}", 4 * width
            tensors += conv(unit, into, width, 1) + conv(unit, width, width, 3) + conv(unit, width, out, 1)
            if block == 0:
                tensors += conv(unit, into, out, 1)
            into = out
    return [*tensors, ("head", 2048 * 1000), ("head", 1000)]


MLP: Final = (784, 512, 512, 10)
"""Layer widths of the small model of many tutorials: an image of 28 × 28, two hidden layers, ten classes."""


def _mlp() -> list[tuple[str, int]]:
    return [(f"layer {j}", n) for j, (a, b) in enumerate(pairwise(MLP)) for n in (a * b, b)]


_MAKE: Final = {"gpt2": _gpt2, "bert": _bert, "llama": _llama}
NAMES: Final = ("mlp", "resnet50", *SHAPES)


@lru_cache(maxsize=32)
def model(name: str) -> Model:
    """A model by name. Raises UsageError, with the nearest name, for an unknown one."""
    if name == "resnet50":
        return Model(name, tuple(_resnet50()), "ResNet-50 (arXiv 1512.03385) as torchvision defines it")
    if name == "mlp":
        return Model(name, tuple(_mlp()), f"a perceptron of widths {', '.join(map(str, MLP))}")
    if name not in SHAPES:
        raise UsageError(f"unknown model {name!r}: {nearest(name, NAMES)}")
    shape = SHAPES[name]
    return Model(name, tuple(_MAKE[shape.kind](shape)), _SOURCES[name], shape)


def transformer(name: str) -> Shape:
    """The shape of a model with layers of attention. Raises UsageError for any other model."""
    shape = model(name).shape
    if shape is None:
        raise UsageError(f"model {name} has no layers of attention: use one of {', '.join(SHAPES)}")
    return shape
