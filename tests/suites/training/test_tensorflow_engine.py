"""TensorFlow's forms of PyTorch's modules, trained alone beside them from the same parameters.

ResNet-50 whole would show nothing: of few small images its float32 gradients are off by per cents, and PyTorch's own
losses in float32 and in float64 part after a step (tests/lab/evidence/workload_bytes.md).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.optional import needs_tensorflow, needs_torch

pytestmark = [pytest.mark.slow, needs_torch, needs_tensorflow]
STEPS = 4


def network(name: str) -> tuple[Any, tuple[Any, Any]]:
    """A small model with every kind of module of its like, and a batch."""
    import torch
    from torch import nn

    from omb_py.suites.training import loop
    from omb_py.suites.workloads.models import Shape

    if name == "gpt":
        tokens = torch.randint(11, (2, 7))
        return loop.Gpt2(Shape(2, 8, 2, 6, 11, "gpt2"), 2), (tokens[:, :-1], tokens[:, 1:].flatten())
    if name == "perceptron":
        return nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 5)), (torch.randn(8, 6), torch.randint(5, (8,)))
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    blocks = loop.Bottleneck(8, 4, 2), loop.Bottleneck(16, 4, 1)
    return nn.Sequential(stem, *blocks, head), (torch.randn(4, 3, 37, 33), torch.randint(5, (4,)))


@pytest.mark.parametrize("name", ["perceptron", "convolutions", "gpt"])
def test_losses_and_parameters_are_those_of_pytorch(name: str) -> None:
    import torch

    from omb_py.suites.training.loop import TrainedModel
    from omb_py.suites.training.tensorflow_engine import MirroredModel

    torch.manual_seed(1)
    net, batch = network(name)
    theirs = MirroredModel(net, batch)  # which copies the parameters
    ours = TrainedModel(net, batch)
    losses = [(float(ours.step()), float(theirs.step())) for _ in range(STEPS)]
    assert [one for one, _ in losses] == pytest.approx([other for _, other in losses], rel=1e-5)
    for own, other in zip(net.parameters(), theirs.parameters(), strict=True):
        values = torch.tensor(other.transpose(3, 2, 0, 1) if other.ndim == 4 else other)
        torch.testing.assert_close(values, own.detach(), rtol=1e-4, atol=1e-5)
    assert losses[0][0] > losses[-1][0]
