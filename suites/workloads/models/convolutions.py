"""Parameters of networks of convolutions and of a perceptron, in the order of definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from omb_py.suites.workloads.models.shape import Tensor, in_unit

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
