"""Models by name, and models of any shape.

The counts are asserted against the published ones in tests/suites/workloads/models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import parse_whole, parse_word
from omb_py.suites.workloads.models import convolutions, transformers
from omb_py.suites.workloads.models.shape import Model, Shape, Tensor

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
    """A model without a shape of its own."""

    tensors: Callable[[], list[Tensor]]
    source: str


_AMOEBANET: Final = "AmoebaNet-D of GPipe's table 1 (arXiv 1811.06965), as torchgpipe defines it"
_OTHERS: Final[Mapping[str, _Listed]] = {
    "mlp": _Listed(convolutions.mlp, f"a perceptron of widths {', '.join(map(str, convolutions.MLP))}"),
    "resnet50": _Listed(convolutions.resnet50, "ResNet-50 (arXiv 1512.03385) as torchvision defines it"),
    "resnet110": _Listed(convolutions.resnet110, "ResNet-110 for CIFAR-10 (arXiv 1512.03385, table 6)"),
    "amoebanet-18x208": _Listed(partial(convolutions.amoebanet_d, 18, 208), _AMOEBANET),
    "amoebanet-18x416": _Listed(partial(convolutions.amoebanet_d, 18, 416), _AMOEBANET),
    "amoebanet-36x544": _Listed(partial(convolutions.amoebanet_d, 36, 544), _AMOEBANET),
    "deepseek-v3": _Listed(transformers.deepseek_v3, "DeepSeek-V3 (arXiv 2412.19437), without multi-token prediction"),
}
NAMES: Final = (*_OTHERS, *SHAPES)


def _count(default: str | None = None, least: int = 1) -> Key:
    return Key(partial(parse_whole, least=least), default, form="24")


_GRAMMAR: Final = KeyValues(
    {
        "layers": _count(),
        "hidden": _count(),
        "heads": _count("0", 0),
        "kv_heads": _count("0", 0),
        "inner": _count("0", 0),
        "vocabulary": _count("32000"),
        "seq": _count("1024"),
        "kind": Key(partial(parse_word, words=tuple(transformers.KINDS)), "gpt2"),
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
    return Model(name, tuple(transformers.KINDS[shape.kind](shape)), f"a {shape.kind} of your own shape", shape)


@lru_cache(maxsize=32)
def model(name: str) -> Model:
    """A model by name, or ``custom:layers=24,hidden=1024,…``.

    Raises:
        UsageError: an unknown name, with the nearest one, or a shape that is none.
    """
    if name.partition(":")[0] == CUSTOM:
        return _custom(name)
    if name in _OTHERS:
        return Model(name, tuple(_OTHERS[name].tensors()), _OTHERS[name].source)
    if name not in SHAPES:
        raise UsageError(f"unknown model {name!r}: {nearest(name, (*NAMES, CUSTOM))}")
    shape = SHAPES[name]
    return Model(name, tuple(transformers.KINDS[shape.kind](shape)), _SOURCES[name], shape)


def transformer(name: str) -> Shape:
    """The shape of a model with layers of attention. Raises UsageError for any other model."""
    shape = model(name).shape
    if shape is None:
        raise UsageError(f"model {name} has no layers of attention: use one of {', '.join(SHAPES)}")
    return shape
