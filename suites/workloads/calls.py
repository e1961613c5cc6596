"""One communication call of a workload, as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from omb_py.engine.dtypes import DTYPES
from omb_py.engine.message import Message

EXCHANGE: Final = "exchange"
"""Messages to and from some ranks, all at once."""
OPS: Final = ("allreduce", "reduce_scatter_block", "allgather", "alltoall", "alltoallv", "bcast", "reduce", "gather",
              "scatter", "barrier", EXCHANGE)  # fmt: skip


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


def scaled(call: Call, scale: float, ranks: int) -> Call:
    """The call with all its sizes times `scale`, in whole elements and at least one where there was one.

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

    blocks = ranks if call.op in ("reduce_scatter_block", "alltoall") else 1
    return replace(
        call, nbytes=of(call.nbytes, blocks), out=tuple(map(of, call.out)), back=tuple(map(of, call.back)),
        sends=messages(call.sends), receives=messages(call.receives),
    )  # fmt: skip


def padded(nbytes: int, parts: int, dtype: str) -> int:
    """The next number of bytes that so many ranks can share in whole elements."""
    unit = DTYPES[dtype].itemsize * parts
    return -(-nbytes // unit) * unit
