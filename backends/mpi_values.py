"""Python values over a communicator of mpi4py, as JSON in buffers: mpi4py's lower-case methods would unpickle them."""

from __future__ import annotations

from array import array
from copy import copy
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from omb_py.engine.rank.plain_values import decode, encode

if TYPE_CHECKING:
    from mpi4py import MPI

    from omb_py.engine.samples import Values

T = TypeVar("T")


def gather(comm: MPI.Comm, value: T) -> list[T]:
    """One value of each rank, on rank 0; elsewhere an empty list."""
    data = encode(value)
    sizes = array("q", bytes(8 * comm.Get_size()))
    root = comm.Get_rank() == 0
    comm.Gather(array("q", [len(data)]), sizes if root else None)
    if not root:
        comm.Gatherv(data, None)
        return []
    everything = bytearray(sum(sizes))
    comm.Gatherv(data, [everything, list(sizes)])
    return [decode(bytes(everything[end - size : end])) for end, size in zip(accumulate(sizes), sizes, strict=True)]


def share(comm: MPI.Comm, value: T) -> T:
    """Rank 0's value, everywhere."""
    root = comm.Get_rank() == 0
    data = bytearray(encode(value) if root else b"")
    size = array("q", [len(data)])
    comm.Bcast(size)
    if not root:
        data = bytearray(size[0])
    comm.Bcast(data)
    return value if root else decode(bytes(data))


class MpiAgreement:
    """How a process agrees with all others over `comm`; none of it is timed."""

    mpi: Any
    """The module ``mpi4py.MPI``."""
    comm: MPI.Intracomm

    def barrier(self) -> None:
        self.comm.Barrier()

    def maximum(self, values: Values) -> Values:
        return self._reduce(values, self.mpi.MAX)

    def total(self, values: Values) -> Values:
        return self._reduce(values, self.mpi.SUM)

    def _reduce(self, values: Values, op: MPI.Op) -> Values:
        result = copy(values)
        self.comm.Allreduce(values, result, op)
        return result

    def gather(self, value: T) -> list[T]:
        return gather(self.comm, value)

    def share(self, value: T) -> T:
        return share(self.comm, value)


class MpiTraffic:
    """Numbers from rank to rank, beside the benchmark's own messages."""

    def __init__(self, comm: MPI.Comm) -> None:
        self._comm = comm

    def send(self, value: int, rank: int, tag: int) -> None:
        """A number to a rank."""
        self._comm.Send(array("q", [value]), rank, tag)

    def recv(self, source: int, tag: int) -> int:
        """The number that a rank sent."""
        box = array("q", [0])
        self._comm.Recv(box, source, tag)
        return box[0]
