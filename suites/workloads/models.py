"""Models as the tensors that are communicated: shape, number of elements, and the unit that FSDP wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import parse_whole, parse_word


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
    """``gpt2``, ``bert``, ``gptj`` or ``llama``."""
    kv_heads: int = 0
    """Heads of keys and values; 0: as many as heads."""
    inner: int = 0
    """Width of the feed-forward part; 0: 4 × hidden."""

    @property
    def kv_hidden(self) -> int:
        """Elements of the keys (or values) of a token."""
        return self.hidden // self.heads * (self.kv_heads or self.heads)

    @property
    def width(self) -> int:
        """Width of the feed-forward part."""
        return self.inner or 4 * self.hidden

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
        return (3 if self.kind == "llama" else 2) * self.hidden * self.width

    @property
    def layer(self) -> int:
        """Elements of all matrices of a layer."""
        return self.projections + self.output + self.feed_forward


class Tensor(NamedTuple):
    """A parameter of ``rows`` × ``columns`` elements; of a convolution a row is one output channel."""

    unit: str
    """What FSDP wraps: a layer or block."""
    rows: int
    columns: int = 1

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.rows * self.columns


def in_unit(unit: str, *shapes: int | tuple[int, int]) -> list[Tensor]:
    """Parameters of a unit: a number is a vector, (rows, columns) a matrix."""
    return [Tensor(unit, shape) if isinstance(shape, int) else Tensor(unit, *shape) for shape in shapes]


@dataclass(frozen=True, slots=True)
class Model:
    """The properties of a model that its communication depends on."""

    name: str
    tensors: tuple[Tensor, ...]
    """The parameters in the order of definition."""
    source: str
    shape: Shape | None = None
    normalised: bool = False
    """Whether two vectors of one length that follow each other are scale and shift of a batch norm."""

    @property
    def batch_norms(self) -> list[int]:
        """Channels of each batch norm; of each a mean and a variance are kept, and a count of batches."""
        pairs = pairwise(self.tensors) if self.normalised else ()
        return [scale.rows for scale, shift in pairs if scale.columns == shift.columns == 1]

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def units(self) -> tuple[tuple[str, int], ...]:
        """(unit, elements), in the order of definition."""
        return tuple((name, sum(tensor.elements for tensor in tensors)) for name, tensors in self.by_unit)

    @property
    def by_unit(self) -> list[tuple[str, list[Tensor]]]:
        """(unit, its parameters), in the order of definition."""
        return [(name, list(part)) for name, part in groupby(self.tensors, attrgetter("unit"))]


MLP: Final = (784, 512, 512, 10)
"""Layer widths of the small model of many tutorials: an image of 28 × 28, two hidden layers, ten classes."""


def mlp() -> list[Tensor]:
    """The perceptron of :data:`MLP`."""
    return [t for j, (a, b) in enumerate(pairwise(MLP)) for t in in_unit(f"layer {j}", (b, a), b)]


def _conv(unit: str, into: int, out: int, window: int) -> list[Tensor]:
    """A convolution with `window` pixels, then scale and shift of its batch norm."""
    return in_unit(unit, (out, into * window), out, out)


def resnet50() -> list[Tensor]:
    """torchvision's resnet50."""
    tensors, into = _conv("stem", 3, 64, 49), 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            unit, out = f"block {stage + 1}.{block}", 4 * width
            tensors += _conv(unit, into, width, 1) + _conv(unit, width, width, 9) + _conv(unit, width, out, 1)
            if block == 0:
                tensors += _conv(unit, into, out, 1)
            into = out
    return [*tensors, *in_unit("head", (1000, 2048), 1000)]


def resnet110() -> list[Tensor]:
    """ResNet-110 for CIFAR-10: three stages of 18 blocks of two convolutions, shortcuts without parameters."""
    tensors, into = _conv("stem", 3, 16, 9), 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(18):
            unit = f"block {stage + 1}.{block}"
            tensors += _conv(unit, into, width, 9) + _conv(unit, width, width, 9)
            into = width
    return [*tensors, *in_unit("head", (10, 64), 10)]


def amoebanet_d(layers: int, filters: int, classes: int = 1000) -> list[Tensor]:
    """AmoebaNet-D with `layers` normal cells in three stages, as torchgpipe builds it after TensorFlow's.

    Args:
        layers: normal cells, a multiple of 3.
        filters: channels of the first normal cells.
        classes: outputs.
    """
    c = filters // 4
    tensors = _conv("stem", 3, c, 9)
    before, last, reduced = c, c, False
    plan = [True, True, *([False] * (layers // 3) + [True]) * 2, *[False] * (layers // 3)]
    for number, reduction in enumerate(plan):
        unit = f"cell {number}"
        c *= 2 if reduction else 1
        tensors += _conv(unit, last, c, 1)
        if reduced:  # two halves with strides, and one norm
            tensors += in_unit(unit, (c // 2, before), (c // 2, before), c, c)
        elif before != c:
            tensors += _conv(unit, before, c, 1)
        tensors += _cell(unit, c, reduction)
        before, last, reduced = last, c * (3 if reduction else 4), reduction
    return [*tensors, *in_unit("head", (classes, last), classes)]


def _cell(unit: str, c: int, reduction: bool) -> list[Tensor]:
    """The operations of a cell that have parameters: a cell for reduction has one factorised convolution, not two."""
    point, wide = _conv(unit, c, c, 1), _narrow(unit, c, (7, 7))
    if reduction:
        return _narrow(unit, c, (9,)) + wide + point
    return point + wide + point + wide + point


def _narrow(unit: str, c: int, windows: Sequence[int]) -> list[Tensor]:
    """Convolutions on a quarter of the channels, between two of one pixel."""
    inner = [tensor for window in windows for tensor in _conv(unit, c // 4, c // 4, window)]
    return [*_conv(unit, c, c // 4, 1), *inner, *_conv(unit, c // 4, c, 1)]


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


CUSTOM: Final = "custom"

SHAPES: Final = {
    "gpt2-124m": Shape(12, 768, 12, 1024, 50257, "gpt2"),
    "gpt2-1.5b": Shape(48, 1600, 25, 1024, 50257, "gpt2"),
    "gpt-j-6b": Shape(28, 4096, 16, 2048, 50400, "gptj"),
    "bert-large": Shape(24, 1024, 16, 512, 30522, "bert"),
    "bert-2.5b": Shape(54, 1920, 20, 512, 30522, "bert"),
    "bert-2.5b-deep": Shape(192, 1024, 16, 512, 30522, "bert"),
    "llama-13b": Shape(40, 5120, 40, 2048, 32000, "llama", inner=13824),
    "llama-33b": Shape(60, 6656, 52, 2048, 32000, "llama", inner=17920),
    "llama-65b": Shape(80, 8192, 64, 2048, 32000, "llama", inner=22016),
    "llama2-7b": Shape(32, 4096, 32, 4096, 32000, "llama", inner=11008),
    "llama2-70b": Shape(80, 8192, 64, 4096, 32000, "llama", kv_heads=8, inner=28672),
}
_LLAMA: Final = "LLaMA (arXiv 2302.13971, table 2)"
_SOURCES: Final = {
    "gpt2-124m": "GPT-2 small (Radford et al. 2019), output weights tied to the embedding",
    "gpt2-1.5b": "GPT-2 XL (Radford et al. 2019), output weights tied to the embedding",
    "gpt-j-6b": "GPT-J-6B (Wang and Komatsuzaki 2021), as its model card and Hugging Face define it",
    "bert-large": "BERT-large, uncased, with pooler (arXiv 1810.04805)",
    "bert-2.5b": "BERT with the 54 layers of 1920 of Megatron-LM's 2.5 B model (arXiv 1909.08053, table 1)",
    "bert-2.5b-deep": "BERT-large's layers 192 times (192 × 1024), the deep 2.5 B model of the literature on pipelines",
    "llama-13b": _LLAMA,
    "llama-33b": _LLAMA,
    "llama-65b": _LLAMA,
    "llama2-7b": "Llama 2 7B (arXiv 2307.09288)",
    "llama2-70b": "Llama 2 70B (arXiv 2307.09288)",
}


@dataclass(frozen=True, slots=True)
class _Listed:
    tensors: Callable[[], list[Tensor]]
    source: str
    normalised: bool = True
    """:attr:`Model.normalised`."""


_AMOEBANET: Final = "AmoebaNet-D of GPipe's table 1 (arXiv 1811.06965), as torchgpipe defines it"
_OTHERS: Final[Mapping[str, _Listed]] = {
    "mlp": _Listed(mlp, f"a perceptron of widths {', '.join(map(str, MLP))}", False),
    "resnet50": _Listed(resnet50, "ResNet-50 (arXiv 1512.03385) as torchvision defines it"),
    "resnet110": _Listed(resnet110, "ResNet-110 for CIFAR-10 (arXiv 1512.03385, table 6)"),
    "amoebanet-18x208": _Listed(partial(amoebanet_d, 18, 208), _AMOEBANET),
    "amoebanet-18x416": _Listed(partial(amoebanet_d, 18, 416), _AMOEBANET),
    "amoebanet-36x544": _Listed(partial(amoebanet_d, 36, 544), _AMOEBANET),
    "deepseek-v3": _Listed(deepseek_v3, "DeepSeek-V3 (arXiv 2412.19437), without multi-token prediction", False),
}
NAMES: Final = (*_OTHERS, *SHAPES)


MOST_LAYERS: Final = 10_000


def _count(default: str | None = None, least: int = 1, most: int = 10**15) -> Key:
    error = "{text!r} is not a whole number from {least} " + (f"to {most}" if most < 10**15 else "on")
    return Key(partial(parse_whole, least=least, most=most, error=error), default, form="24")


_GRAMMAR: Final = KeyValues(
    {
        "layers": _count(most=MOST_LAYERS),
        "hidden": _count(),
        "heads": _count("0", 0),
        "kv_heads": _count("0", 0),
        "inner": _count("0", 0),
        "vocabulary": _count("32000"),
        "seq": _count("1024"),
        "kind": Key(partial(parse_word, words=tuple(KINDS)), "gpt2"),
    },
    prefix="model custom: ",
)
CUSTOM_KEYS: Final = frozenset(_GRAMMAR.keys)
"""Keys of ``custom:layers=24,hidden=1024,…``."""


def _custom(name: str) -> Model:
    values = _GRAMMAR.read(name.removeprefix(CUSTOM).removeprefix(":"))
    for key in ("layers", "hidden"):
        if key not in values:
            raise UsageError(f"model custom: {key} is missing: write model=custom:layers=24,hidden=1024")
    hidden, heads = values["hidden"], values["heads"] or max(1, values["hidden"] // 64)
    kv_heads = values["kv_heads"] or heads
    for what, number, part in (("hidden", hidden, heads), ("heads", heads, kv_heads)):
        if number % part:
            by = "heads" if what == "hidden" else "kv_heads"
            raise UsageError(f"model custom: {what} {number} cannot be divided by {by} {part}")
    shape = Shape(
        values["layers"], hidden, heads, values["seq"], values["vocabulary"], values["kind"], kv_heads, values["inner"]
    )
    return Model(name, tuple(KINDS[shape.kind](shape)), f"a {shape.kind} of your own shape", shape)


@lru_cache(maxsize=32)
def model(name: str) -> Model:
    """A model by name, or ``custom:layers=24,hidden=1024,…``.

    Raises:
        UsageError: an unknown name, with the nearest one, or a shape that is none.
    """
    if name.partition(":")[0] == CUSTOM:
        return _custom(name)
    if name in _OTHERS:
        listed = _OTHERS[name]
        return Model(name, tuple(listed.tensors()), listed.source, normalised=listed.normalised)
    if name not in SHAPES:
        raise UsageError(f"unknown model {name!r}: {nearest(name, (*NAMES, CUSTOM))}")
    shape = SHAPES[name]
    return Model(name, tuple(KINDS[shape.kind](shape)), _SOURCES[name], shape)


def transformer(name: str) -> Shape:
    """The shape of a model with layers of attention. Raises UsageError for any other model."""
    shape = model(name).shape
    if shape is None:
        raise UsageError(f"model {name} has no layers of attention: use one of {', '.join(SHAPES)}")
    return shape
