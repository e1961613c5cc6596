"""Buckets: the rules by which frameworks combine gradients before they reduce them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

DDP_FIRST_BYTES: Final = 1 << 20
DDP_CAP_BYTES: Final = 25 << 20
"""PyTorch's kDefaultFirstBucketBytes and kDefaultBucketBytesCap (torch/csrc/distributed/c10d/reducer.hpp)."""
HOROVOD_BYTES: Final = 128 << 20
"""Horovod's default HOROVOD_FUSION_THRESHOLD (horovod/common/operations.cc)."""


def filled(sizes: Sequence[int], first: int, cap: int) -> list[int]:
    """DDP's rule: a bucket closes when its size reaches its limit, `first` for the first one and `cap` for the others.

    Args:
        sizes: bytes of each tensor, in the order in which they are taken.
        first: limit of the first bucket in bytes.
        cap: limit of the others.

    Returns:
        Bytes of each bucket.
    """
    buckets: list[int] = []
    filling, limit = 0, first
    for size in sizes:
        filling += size
        if filling >= limit:
            buckets.append(filling)
            filling, limit = 0, cap
    return [*buckets, filling] if filling else buckets


def ddp(sizes: Sequence[int], layout: str, first: int = DDP_FIRST_BYTES, cap: int = DDP_CAP_BYTES) -> list[int]:
    """The buckets of DistributedDataParallel in the order in which they are reduced.

    Args:
        sizes: bytes of each parameter in the order of definition.
        layout: ``first``: one bucket for all, as in the first iteration; ``rebuilt``: as in all others, filled in the
            order in which gradients become ready, assumed to be the reverse order of definition; ``unused``: as in all
            iterations with find_unused_parameters, filled in the order of definition and reduced from the last
            (docs/workloads/data-parallel.md).
        first: limit of the first bucket that is filled, in bytes.
        cap: limit of the others.

    Returns:
        Bytes of each bucket.
    """
    if layout == "first":
        return [sum(sizes)]
    if layout == "unused":
        return filled(sizes, first, cap)[::-1]
    return filled(sizes[::-1], first, cap)


def fused(sizes: Sequence[int], threshold: int) -> list[int]:
    """Horovod's rule: tensors go together as long as their sum is not more than `threshold`.

    Args:
        sizes: bytes of each gradient in the order in which they become ready, all of them ready in one cycle.
        threshold: bytes of the fusion buffer; 0: each tensor goes alone.

    Returns:
        Bytes of each fusion buffer as it is reduced.
    """
    buffers: list[int] = []
    for size in sizes:
        if buffers and buffers[-1] + size <= threshold:
            buffers[-1] += size
        else:
            buffers.append(size)
    return buffers
