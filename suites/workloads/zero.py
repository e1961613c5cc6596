"""ZeRO: as DeepSpeed 0.19 does it, and as it was published (docs/workloads/data-parallel.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.suites.workloads.buckets import fused
from omb_py.suites.workloads.calls import Call, Item, Product, check_count, padded, there_and_back
from omb_py.suites.workloads.data_parallel import gradient_bytes, passes, rows
from omb_py.suites.workloads.models import Tensor
from omb_py.suites.workloads.settings import Values
from omb_py.suites.workloads.vocabulary import is_tied

BUCKET_ELEMENTS: Final = 500_000_000
"""DeepSpeed's default reduce_bucket_size."""
PERSISTENT_ELEMENTS: Final = 100_000
"""DeepSpeed's default stage3_param_persistence_threshold: so small parameters are gathered after the update."""
_PREFETCHED_ELEMENTS: Final = 50_000_000
"""DeepSpeed's default stage3_prefetch_bucket_size."""
LIVE_ELEMENTS: Final = 1_000_000_000
"""DeepSpeed's default stage3_max_live_parameters and stage3_max_reuse_distance: fewer stay whole for a whole step."""
PAPER: Final = "paper"
SCHEDULES: Final = ("deepspeed", PAPER)


def zero(v: Values, rank: int, ranks: int) -> list[Item]:
    """ZeRO by the settings ``schedule`` and ``stage``. Raises UsageError for a schedule that has no such stage."""
    if v["stage"] > 3:
        raise UsageError(f"ZeRO has stages 1, 2 and 3, not {v['stage']}: use stage=3")
    if v["schedule"] == PAPER:
        return _publish(v, ranks)
    return _stage_3(v, ranks) if v["stage"] == 3 else _call_replicated(v, ranks)


def _publish(v: Values, ranks: int) -> list[Item]:
    """Buckets of gradients are reduce-scattered beside the backward pass or (stage 1) after it, parameters gathered."""
    if v["stage"] == 3:
        raise UsageError("stage 3 as published gathers each layer twice: use the workload fsdp")
    dtype, item = v["dtype"], DTYPES[v["dtype"]].itemsize
    whole, most = sum(gradient_bytes(v["model"].name, dtype)), v["bucket"] * item
    check_count({"buckets": -(-whole // most)}, "take a larger bucket")
    parts = [min(most, whole - start) for start in range(0, whole, most)]
    sizes = [padded(part, ranks, dtype) for part in parts]
    beside = v["stage"] == 2
    reduced = [
        Call("reduce_scatter_block", n, dtype, "gradients", work=work, until=None if beside else 0)
        for n, work in zip(sizes, sizes if beside else [1.0, *[0.0] * len(sizes)], strict=False)
    ]
    parameters = [Call("allgather", n // ranks, dtype, "parameters", work=0.0) for n in sizes]
    return [*_reduce_beside(v, parts, reduced, beside), *parameters]


def _reduce_beside(v: Values, parts: Sequence[int], calls: Sequence[Call], beside: bool) -> list[Item]:
    """Both passes, with the calls that reduce so many bytes each beside the backward pass, or after it."""
    forward, backward = passes(v["model"], rows(v))
    if not beside:
        return [*forward, *backward, *calls]
    item = DTYPES[v["dtype"]].itemsize
    steps: list[Item] = [*forward]
    for n, call in zip(parts, calls, strict=True):
        steps += [Product(n / item, rows(v), 2), call]
    return steps


def _call_replicated(v: Values, ranks: int) -> list[Item]:
    """Stages 1 and 2 with DeepSpeed's defaults: an all-reduce a bucket, what the optimizer asks, an all-gather.

    ``use_multi_rank_bucket_allreduce`` reduces a bucket for all ranks, though each keeps its own part alone. Without
    ``overlap_comm`` each bucket is waited for. A rank's part is a multiple of two elements.
    """
    dtype, item = v["dtype"], DTYPES[v["dtype"]].itemsize
    own, beside = gradient_bytes(v["model"].name, dtype), v["stage"] == 2
    parts = fused(own[::-1] if beside else own, v["bucket"] * item)
    calls = [
        Call("allreduce", n, dtype, "gradients", work=float(n if beside else not number))
        for number, n in enumerate(parts)
    ]
    flag = [Call("allreduce", 1, "uint8", "overflow", work=0.0)] if item == 2 else []
    norm = Call("allreduce", DTYPES["float32"].itemsize, "float32", "norm", work=0.0)
    shard = padded(sum(own), 2 * ranks, dtype) // ranks
    return [
        *_reduce_beside(v, parts, calls, beside),
        *flag,
        norm,
        Call("allgather", shard, dtype, "parameters", work=0.0),
    ]


def _stage_3(v: Values, ranks: int) -> list[Item]:
    """Stage 3 with DeepSpeed's defaults, of a model that stays whole from its first gather to the update.

    Each parameter is divided among the ranks and filled up by itself. Larger ones than the threshold are gathered in
    the forward pass, as many at once as it takes to reach the prefetched elements; an embedding that the model uses as
    its head, too, alone and first. Smaller ones are gathered one by one after the update.
    """
    whole = v["model"].parameters
    if whole > LIVE_ELEMENTS:
        raise UsageError(
            f"{v['model'].name}: of more than 10⁹ parameters, here {whole}, DeepSpeed frees some between the passes, "
            "which no rule here says: use the workload fsdp"
        )
    dtype, tensors = v["dtype"], v["model"].tensors
    large = [tensor for tensor in tensors if tensor.elements > v["persistent"]]
    gathers = [
        Call("allgather", _shard(part, ranks, dtype), dtype, "gather", work=float(_shard(part, ranks, dtype)), until=1)
        for part in _group_prefetched(large, is_tied(v["model"]) and tensors[0] in large[:1])
    ]
    forward, backward = there_and_back([whole], rows(v))
    buckets = _fill_groups(tensors[::-1], v["bucket"])
    reduced = [
        Call("reduce_scatter_block", ranks * n, dtype, "gradients", work=2.0 * n, until=None)
        for n in (_shard(part, ranks, dtype) for part in buckets)
    ]
    norm = Call("allreduce", DTYPES["float64"].itemsize, "float64", "norm", work=0.0)
    small = [
        Call("allgather", _shard([tensor], ranks, dtype), dtype, "parameters", work=0.0, until=None)
        for tensor in tensors
        if tensor.elements <= v["persistent"]
    ]
    return [*gathers, *forward, *backward, *reduced, norm, *small]


def _group_prefetched(tensors: Sequence[Tensor], alone: bool) -> list[list[Tensor]]:
    """Groups that reach the elements which DeepSpeed prefetches, the first parameter perhaps `alone`."""
    groups: list[list[Tensor]] = []
    for number, tensor in enumerate(tensors):
        if not groups or (alone and number == 1) or sum(t.elements for t in groups[-1]) >= _PREFETCHED_ELEMENTS:
            groups.append([])
        groups[-1].append(tensor)
    return groups


def _fill_groups(tensors: Sequence[Tensor], most: int) -> list[list[Tensor]]:
    """Groups of at most `most` elements; a larger parameter goes alone."""
    groups: list[list[Tensor]] = []
    size = 0
    for tensor in tensors:
        if not groups or size + tensor.elements > most:
            groups.append([])
            size = 0
        groups[-1].append(tensor)
        size += tensor.elements
    return groups


def _shard(tensors: Sequence[Tensor], ranks: int, dtype: str) -> int:
    """Bytes of a rank's part of these parameters, each filled up by itself."""
    return sum(-(-tensor.elements // ranks) for tensor in tensors) * DTYPES[dtype].itemsize
