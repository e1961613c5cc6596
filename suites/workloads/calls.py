"""One communication call of a workload, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod, sqrt
from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Message
from omb_py.errors import UsageError

EXCHANGE: Final = "exchange"
"""Op of a call that sends messages to some ranks and receives from some, all at once."""
SERVE: Final = "serve"
"""Op of a call that takes a message of each of some ranks, in the order in which they come, and answers it at once."""
WRITE: Final = "write"
"""Op of a call that writes into the memory of other ranks; the next :data:`NOTIFY` completes it."""
NOTIFY: Final = "notify"
"""Op of an exchange that first completes what this rank has written. It tells other ranks that it is there."""
OF_MESSAGES: Final = (EXCHANGE, SERVE, WRITE, NOTIFY)
MOST_CALLS: Final = 1_000_000
"""Calls or products of a step: more would be a list of gigabytes."""
MOST_ELEMENTS: Final = 1 << 26
"""Elements of the largest matrix, 256 MiB. Larger ones are multiplied in equal parts."""


@dataclass(frozen=True, slots=True)
class Product:
    """The computing of a layer: (T × k)·(k × k) with k² parameters, 2·T·k² floating point operations, `times` over."""

    parameters: float
    """Parameters of the layer that the rank holds, or uses."""
    rows: int
    """T: the tokens or samples that pass through the layer."""
    times: int = 1
    """1 in a forward pass, 2 in a backward one (for the gradients of its input, and of its parameters)."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(rows, side, times) of the products, whose matrices have at most :data:`MOST_ELEMENTS`."""
        parts = ceil(self.parameters / MOST_ELEMENTS)
        side = max(1, round(sqrt(self.parameters / parts)))
        pieces = ceil(self.rows * side / MOST_ELEMENTS)
        return ceil(self.rows / pieces), side, self.times * parts * pieces

    @property
    def flop(self) -> int:
        """Floating point operations of all products."""
        rows, side, times = self.shape
        return 2 * rows * side**2 * times


def there_and_back(sizes: Sequence[float], rows: int) -> tuple[list[Product], list[Product]]:
    """The products of a forward pass through layers of so many parameters each, and of the backward pass."""
    return [Product(size, rows) for size in sizes], [Product(size, rows, 2) for size in sizes[::-1]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one rank. Sizes in bytes are those of whole elements of `dtype`."""

    op: str
    """A collective, or one of :data:`OF_MESSAGES`."""
    nbytes: int = 0
    """Bytes of the vector (reduction, broadcast), of all blocks together (reduce_scatter_block, alltoall), of this
    rank's contribution (allgather, gather), or of a rank's block (scatter)."""
    dtype: str = "float32"
    label: str = ""
    """The purpose of the call. Calls of one label and size share a row of the table."""
    group: tuple[int, ...] = ()
    """The ranks of its communicator; empty: all."""
    root: int = 0
    """The root's place in the group."""
    out: tuple[int, ...] = ()
    """Bytes that an alltoallv sends to each rank of the group."""
    back: tuple[int, ...] = ()
    """Bytes that an alltoallv receives from each rank of the group."""
    sends: tuple[Message, ...] = ()
    """Messages that an exchange sends, and answers of a server, all of one size and tag."""
    receives: tuple[Message, ...] = ()
    """Messages that an exchange receives, and those that a server answers, all of one size and tag."""
    written: tuple[Message, ...] = ()
    """What other ranks have written into this rank's memory when the notifications have come."""
    work: float = 1.0
    """Share of the step's computing that comes before it, in any unit."""
    until: int | None = 0
    """How many further calls may start before it must be complete; None: it may run until the end of the step."""
    before: tuple[Product, ...] = ()
    """Products before the call when a step multiplies matrices (``compute=matmul``)."""
    after: tuple[Product, ...] = ()
    """Products after the call; only the last call of a step has any."""

    @property
    def flop(self) -> int:
        """Floating point operations before and after the call."""
        return sum(product.flop for product in (*self.before, *self.after))

    @property
    def sent(self) -> int:
        """Bytes that this rank contributes."""
        if self.op in OF_MESSAGES:
            return sum(message.nbytes for message in self.sends)
        return sum(self.out) if self.op == "alltoallv" else self.nbytes

    @property
    def size(self) -> int:
        """Bytes that name the call: those sent, or of a pure receive those received."""
        return self.sent or sum(message.nbytes for message in (*self.receives, *self.written))


Item = Call | Product
"""An element of a step; a family lists calls and products in order."""


def check_count(counts: Mapping[str, int], instead: str = "take fewer") -> None:
    """Raises UsageError, before anything is listed, if these numbers, multiplied, are more than a step may have."""
    if (total := prod(counts.values())) > MOST_CALLS:
        factors = " × ".join(f"{name} {count:,}" for name, count in counts.items())
        raise UsageError(
            f"{factors} make {total:,} calls or products, and a step has at most {MOST_CALLS:,}: {instead}"
        )


def join_items(items: Iterable[Item]) -> list[Call]:
    """The calls, each with the products before it; the last one also with the products after it.

    Without any call the products are dropped, too.
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


def scale_call(call: Call, scale: float, ranks: int) -> Call:
    """The call with its sizes and the parameters of its products multiplied by `scale`.

    Sizes stay whole elements, at least one if they were not 0. `ranks` is the size of the world.
    """
    if scale == 1.0:
        return call
    ranks = len(call.group) or ranks

    def scaled_bytes(nbytes: int, blocks: int = 1) -> int:
        item = DTYPES[call.dtype].itemsize * blocks
        return max(1, round(nbytes * scale / item)) * item if nbytes else 0

    def scaled_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple(replace(message, nbytes=scaled_bytes(message.nbytes)) for message in messages)

    def scaled_products(products: Iterable[Product]) -> tuple[Product, ...]:
        return tuple(replace(product, parameters=product.parameters * scale) for product in products)

    blocks = ranks if call.op in ("reduce_scatter_block", "alltoall") else 1
    return replace(
        call,
        nbytes=scaled_bytes(call.nbytes, blocks),
        out=tuple(map(scaled_bytes, call.out)),
        back=tuple(map(scaled_bytes, call.back)),
        sends=scaled_messages(call.sends),
        receives=scaled_messages(call.receives),
        written=scaled_messages(call.written),
        before=scaled_products(call.before),
        after=scaled_products(call.after),
    )


def slow_call(call: Call, factor: float) -> Call:
    """The call with `factor` times the rows in its products: as much more computing before and after it."""

    def more(products: tuple[Product, ...]) -> tuple[Product, ...]:
        return tuple(replace(product, rows=ceil(product.rows * factor)) for product in products)

    return replace(call, before=more(call.before), after=more(call.after)) if factor > 1 else call


def padded(nbytes: int, parts: int, dtype: str) -> int:
    """`nbytes` rounded up to a multiple that divides into `parts` of whole elements."""
    unit = DTYPES[dtype].itemsize * parts
    return -(-nbytes // unit) * unit
