"""What lies before and after the layers of a transformer: embedding, head and loss, divided by vocabulary.

As Megatron-LM's VocabParallelEmbedding, ColumnParallelLinear and vocab_parallel_cross_entropy, and vLLM's logits.
"""

from __future__ import annotations

from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.calls import Call, Item, Product, padded
from omb_py.suites.workloads.models import Model
from omb_py.suites.workloads.settings import Values

_MULTIPLE: Final = 128
"""Megatron-LM fills the vocabulary up to a multiple of so many words a rank (--make-vocab-size-divisible-by)."""
_OF_LAYER: Final = {"gpt2": 6, "bert": 6, "gptj": 3, "llama": 2}
_AT_END: Final = {"gpt2": 2, "bert": 2, "gptj": 2, "llama": 1}
"""Vectors of h elements that every rank of a tensor holds: norms, and biases that are added after the sum."""


def local_words(v: Values, n: int) -> int:
    """Words of the vocabulary on each of `n` ranks."""
    return int(padded(v["model"].shape.vocabulary, _MULTIPLE * n, "uint8") // n)


def is_tied(model: Model) -> bool:
    """Whether the embedding is the head's matrix as well."""
    return model.shape is not None and not any(tensor.unit == "head" for tensor in model.tensors)


def embedding(v: Values, group: tuple[int, ...], positions: int, label: str) -> list[Item]:
    """Each rank looks up its words, and the results are added up; with sequence parallel scattered, too."""
    whole = positions * v["model"].shape.hidden * DTYPES[v["dtype"]].itemsize
    if v.get("sequence") == "on":
        return [
            Call("reduce_scatter_block", padded(whole, len(group), v["dtype"]), v["dtype"], f"{label} scatter", group)
        ]
    return [Call("allreduce", whole, v["dtype"], label, group)]


def loss(v: Values, group: tuple[int, ...], positions: int, prefix: str) -> tuple[list[Item], list[Item]]:
    """The head and the loss of so many positions, forward, and the gradient of the head's input, backward.

    The loss asks for the largest logit, the wanted one and the sum of exponentials of each position, in float32.
    """
    n, hidden, dtype = len(group), v["model"].shape.hidden, v["dtype"]
    whole = positions * hidden * DTYPES[dtype].itemsize
    product = Product(local_words(v, n) * hidden, positions)
    numbers = Call("allreduce", positions * DTYPES["float32"].itemsize, "float32", f"{prefix}loss", group)
    back: list[Item] = [Product(local_words(v, n) * hidden, positions, 2)]
    if v["sequence"] == "off":
        return [product, *[numbers] * 3], [*back, Call("allreduce", whole, dtype, f"{prefix}head", group)]
    whole = padded(whole, n, dtype)
    gather = Call("allgather", whole // n, dtype, f"{prefix}head gather", group)
    scatter = Call("reduce_scatter_block", whole, dtype, f"{prefix}head scatter", group)
    return [gather, product, *[numbers] * 3], [gather, *back, scatter]


def norm_gradients(v: Values, group: tuple[int, ...], layers: int, last: bool, prefix: str) -> list[Item]:
    """With sequence parallel each rank has those of its tokens alone; they are added up in one call, float32."""
    if v["sequence"] == "off":
        return []
    kind = v["model"].shape.kind
    vectors = layers * _OF_LAYER[kind] + last * _AT_END[kind]
    nbytes = vectors * v["model"].shape.hidden * DTYPES["float32"].itemsize
    return [Call("allreduce", nbytes, "float32", f"{prefix}norms", group, work=0.0)]


def logits(v: Values, group: tuple[int, ...], positions: int, label: str = "logits") -> list[Item]:
    """Each rank's part of the logits of so many positions goes to all, which choose the next token."""
    n = len(group)
    nbytes = positions * local_words(v, n) * DTYPES[v["dtype"]].itemsize
    return [
        Product(local_words(v, n) * v["model"].shape.hidden, positions),
        Call("allgather", nbytes, v["dtype"], label, group),
    ]


def tied_gradients(v: Values, ends: tuple[int, int], rank: int, tp: int) -> list[Item]:
    """First and last stage of a pipeline add up the gradients of the embedding that both hold."""
    if rank not in ends or ends[0] == ends[1] or not is_tied(v["model"]):
        return []
    nbytes = local_words(v, tp) * v["model"].shape.hidden * DTYPES[v["dtype"]].itemsize
    return [Call("allreduce", nbytes, v["dtype"], "tied embedding", tuple(sorted(ends)), work=0.0)]
