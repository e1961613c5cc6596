"""Small definitions of the models, parameters in the order of the published ones. Loads PyTorch.

Counts and order are those of :mod:`omb_py.suites.workloads.models.catalogue`, asserted in tests/suites/training.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from omb_py.suites.training.settings import Training
from omb_py.suites.workloads.models.catalogue import transformer
from omb_py.suites.workloads.models.convolutions import MLP
from omb_py.suites.workloads.models.shape import Shape

_STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""Stages of ResNet-50: blocks, width, stride of the first block."""


def _conv(into: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    """A block of ResNet-50 (arXiv 1512.03385), the stride in its 3 × 3 convolution as in torchvision."""

    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        self.down, self.across = _conv(into, width, 1), _conv(width, width, 3, stride)
        self.up = _conv(width, 4 * width, 1)
        self.short = _conv(into, 4 * width, 1, stride) if stride > 1 or into != 4 * width else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map images to images of 4 × width channels."""
        y = self.across(torch.relu(self.down(x))).relu()
        return torch.relu(self.up(y) + self.short(x))


def resnet50() -> nn.Sequential:
    """ResNet-50, 25 557 032 parameters."""
    layers: list[nn.Module] = [nn.Sequential(_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))]
    into = 64
    for blocks, width, stride in _STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(into, width, stride if block == 0 else 1))
            into = 4 * width
    return nn.Sequential(*layers, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000)))


def mlp() -> nn.Sequential:
    """The perceptron of many tutorials, 669 706 parameters."""
    layers: list[nn.Module] = []
    for into, out in pairwise(MLP):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Layer(nn.Module):
    """A layer of GPT-2: attention, then the feed-forward part, each after a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        h = shape.hidden
        self.heads = shape.heads
        self.before = nn.LayerNorm(h)
        self.attend, self.project = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.between = nn.LayerNorm(h)
        self.widen, self.narrow = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, hidden) to the same shape."""
        batch, tokens, hidden = x.shape
        parts = self.attend(self.before(x)).view(batch, tokens, 3 * self.heads, hidden // self.heads)
        query, key, value = parts.transpose(1, 2).chunk(3, dim=1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, tokens, hidden))
        narrowed: Tensor = self.narrow(functional.gelu(self.widen(self.between(x))))
        return x + narrowed


class Gpt2(nn.Module):
    """GPT-2 (Radford et al. 2019), output weights tied to the embedding; 124 439 808 parameters with 12 layers."""

    def __init__(self, shape: Shape, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.sequence, shape.hidden)
        with torch.no_grad():
            for weights in (self.tokens.weight, self.positions.weight):
                weights.mul_(0.02)  # GPT-2's deviation; PyTorch draws with one of 1
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        self.norm = nn.LayerNorm(shape.hidden)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, tokens) to (batch × tokens, vocabulary)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.tokens.weight).flatten(0, 1)


def build(training: Training) -> nn.Module:
    """The model, with parameters drawn from torch's generator."""
    if training.model == "gpt2":
        return Gpt2(transformer("gpt2-124m"), training["layers"])
    return resnet50() if training.model == "resnet50" else mlp()


def units(net: nn.Module) -> list[nn.Module]:
    """The modules that FSDP wraps one by one: layers and blocks with parameters."""
    parts = net.layers if isinstance(net, Gpt2) else net.children()
    return [part for part in parts if any(True for _ in part.parameters())]


def batch_of(training: Training, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Synthetic input and the classes wanted, the same in every step."""
    n = training["batch"]
    if training.model == "gpt2":
        vocabulary = transformer("gpt2-124m").vocabulary
        tokens = torch.randint(vocabulary, (n, training["seq"] + 1), generator=generator)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    side = training.values.get("image")
    shape, classes = ((3, side, side), 1000) if side else ((MLP[0],), MLP[-1])
    return torch.randn(n, *shape, generator=generator), torch.randint(classes, (n,), generator=generator)
