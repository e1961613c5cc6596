"""A transformer's shape, and a model as the list of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple


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
