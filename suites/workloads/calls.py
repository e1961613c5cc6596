"""One communication call of a workload, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.message import Message

EXCHANGE: Final = "exchange"
"""Messages to and from some ranks, all at once."""
OPS: Final = (
    "allreduce",
    "reduce_scatter_block",
    "allgather",
    "alltoall",
    "alltoallv",
    "bcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
    EXCHANGE,
)


MOST_ELEMENTS: Final = 1 << 26
"""Of a matrix that is multiplied: 256 MiB. Larger ones are multiplied in equal parts."""


@dataclass(frozen=True, slots=True)
class Product:
    """What a layer computes: (T × k)·(k × k) with k² parameters, 2·T·k² floating point operations, some times over."""

    parameters: float
    """That the rank holds of the layer, or uses of it."""
    rows: int
    """T: tokens or samples that go through the layer."""
    times: int = 1
    """1 in a forward pass, 2 in a backward one (for the gradients of its input, and of its parameters)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(rows, side, times) as multiplied: in parts of at most :data:`MOST_ELEMENTS`."""
        parts = ceil(self.parameters / MOST_ELEMENTS)
        side = max(1, round(sqrt(self.parameters / parts)))
        pieces = ceil(self.rows * side / MOST_ELEMENTS)
        return ceil(self.rows / pieces), side, self.times * parts * pieces

    @property
    def flop(self) -> int:
        """Floating point operations of all times."""
        rows, side, times = self.shape
        return 2 * rows * side**2 * times


def there_and_back(sizes: Sequence[float], rows: int) -> tuple[list[Product], list[Product]]:
    """The products of a forward pass through layers with so many parameters, and those of the backward pass."""
    return [Product(size, rows) for size in sizes], [Product(size, rows, 2) for size in sizes[::-1]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one rank. Sizes in bytes are those of whole elements of `dtype`."""

    op: str
    """One of :data:`OPS`."""
    nbytes: int = 0
    """The vector of a reduction or broadcast; all blocks together of a reduce_scatter_block or alltoall; what this rank
    gives of an allgather or gather; a rank's block of a scatter."""
    dtype: str = "float32"
    label: str = ""
    """What the call is for: calls with one label (and size) stand in one row of the table."""
    group: tuple[int, ...] = ()
    """Ranks of its communicator; empty: all."""
    root: int = 0
    """A place in the group."""
    out: tuple[int, ...] = ()
    """Of an alltoallv: bytes for each rank of the group."""
    back: tuple[int, ...] = ()
    """Of an alltoallv: bytes from each."""
    sends: tuple[Message, ...] = ()
    """Of an exchange."""
    receives: tuple[Message, ...] = ()
    work: float = 1.0
    """Share of the step's computing that comes before it, in any unit."""
    until: int | None = 0
    """How many further calls may start before it must be done; None: the end of the step. 0: what follows needs it."""
    before: tuple[Product, ...] = ()
    """What is computed before it when a step multiplies matrices (``compute=matmul``)."""
    after: tuple[Product, ...] = ()
    """And after it: of the last call of a step."""

    @property
    def flop(self) -> int:
        """Floating point operations before and after it."""
        return sum(product.flop for product in (*self.before, *self.after))

    @property
    def sent(self) -> int:
        """Bytes that this rank puts in."""
        if self.op == EXCHANGE:
            return sum(message.nbytes for message in self.sends)
        return sum(self.out) if self.op == "alltoallv" else self.nbytes

    @property
    def size(self) -> int:
        """Bytes by which the call is known: what goes in, of a pure receive what comes."""
        return self.sent or sum(message.nbytes for message in self.receives)


Item = Call | Product
"""What a step consists of: a family writes down both, in order."""


def joined(items: Iterable[Item]) -> list[Call]:
    """The calls, each with the products that stand before it; the last one also with those behind it.

    Where there is no call, there is no product either.
    """
    calls: list[Call] = []
    waiting: list[Product] = []
    for item in items:
        if isinstance(item, Product):
            waiting += [item] if item.parameters > 0 and item.rows > 0 else []
        else:
            calls.append(replace(item, before=tuple(waiting)) if waiting else item)
            waiting = []
    return [*calls[:-1], replace(calls[-1], after=tuple(waiting))] if calls and waiting else calls


def scaled(call: Call, scale: float, ranks: int) -> Call:
    """The call with all its sizes times `scale`, in whole elements and at least one where there was one.

    So are the parameters of its products.

    `ranks` is how many the world has.
    """
    if scale == 1.0:
        return call
    ranks = len(call.group) or ranks

    def of(nbytes: int, blocks: int = 1) -> int:
        item = DTYPES[call.dtype].itemsize * blocks
        return max(1, round(nbytes * scale / item)) * item if nbytes else 0

    def messages(some: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(replace(message, nbytes=of(message.nbytes)) for message in some)

    def smaller(some: Iterable[Product]) -> tuple[Product, ...]:
        return tuple(replace(product, parameters=product.parameters * scale) for product in some)

    blocks = ranks if call.op in ("reduce_scatter_block", "alltoall") else 1
    return replace(
        call,
        nbytes=of(call.nbytes, blocks),
        out=tuple(map(of, call.out)),
        back=tuple(map(of, call.back)),
        sends=messages(call.sends),
        receives=messages(call.receives),
        before=smaller(call.before),
        after=smaller(call.after),
    )


def padded(nbytes: int, parts: int, dtype: str) -> int:
    """The next number of bytes that so many ranks can share in whole elements."""
    unit = DTYPES[dtype].itemsize * parts
    return -(-nbytes // unit) * unit
