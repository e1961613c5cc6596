"""Python values over a communicator of mpi4py, as JSON in buffers: mpi4py's lower-case methods would unpickle them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.engine.rank.plain_values import decode, encode

if TYPE_CHECKING:
    from mpi4py import MPI


def gather(comm: MPI.Comm, value: Any) -> list[Any]:
    """One value of each rank, on rank 0; elsewhere an empty list."""
    data = np.frombuffer(encode(value), np.uint8)
    sizes = np.empty(comm.Get_size(), np.int64)
    root = comm.Get_rank() == 0
    comm.Gather(np.array([data.size], np.int64), sizes if root else None)
    if not root:
        comm.Gatherv(data, None)
        return []
    everything = np.empty(int(sizes.sum()), np.uint8)
    comm.Gatherv(data, [everything, sizes])
    ends = np.cumsum(sizes)
    return [decode(everything[end - size : end].tobytes()) for end, size in zip(ends, sizes, strict=True)]


def share(comm: MPI.Comm, value: Any) -> Any:
    """Rank 0's value, everywhere."""
    root = comm.Get_rank() == 0
    data = np.frombuffer(encode(value) if root else b"", np.uint8)
    size = np.array([data.size], np.int64)
    comm.Bcast(size)
    if not root:
        data = np.empty(int(size[0]), np.uint8)
    comm.Bcast(data)
    return value if root else decode(data.tobytes())


class MpiTraffic:
    """Numbers from rank to rank, beside the benchmark's own messages."""

    def __init__(self, comm: MPI.Comm) -> None:
        self._comm = comm

    def send(self, value: int, rank: int, tag: int) -> None:
        """A number to a rank."""
        self._comm.Send(np.array([value], np.int64), rank, tag)

    def recv(self, source: int, tag: int) -> int:
        """The number that a rank sent."""
        box = np.empty(1, np.int64)
        self._comm.Recv(box, source, tag)
        return int(box[0])
