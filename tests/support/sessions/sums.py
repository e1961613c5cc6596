"""A rank that adds numbers so that the algorithm can be told: by the bits of the sum, and by the pieces that it adds.

``python -m tests.support.sessions.sums BYTES…``; rank 0 prints, for each message size, a digest of the sum by MPI_SUM,
which depends on the order from three ranks on, and the lengths in bytes for which an operation of its own was called.
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mpi.start import initialise

CALLS = 8
"""MPICH's shared memory takes a communicator over after five (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD)."""


def added(pieces: list[int], more: Any, total: Any, datatype: Any) -> None:
    """The sum of two vectors, as an operation of a user; notes its length."""
    sums: NDArray[np.float32] = np.frombuffer(total, np.float32)
    sums += np.frombuffer(more, np.float32)
    pieces.append(sums.nbytes)


def main(sizes: list[int]) -> None:
    """Add the vectors of all ranks, several times."""
    mpi: Any = initialise("funneled")[0]
    comm, told = mpi.COMM_WORLD, []
    pieces: list[int] = []
    add = mpi.Op.Create(partial(added, pieces), commute=True)
    for nbytes in sizes:
        own: NDArray[np.float32] = np.random.default_rng(comm.rank).standard_normal(nbytes // 4).astype(np.float32)
        total = np.empty_like(own)
        for _ in range(CALLS):
            comm.Allreduce(own, total, mpi.SUM)
        digest = hashlib.sha256(total.tobytes()).hexdigest()[:8]
        pieces.clear()
        comm.Allreduce(own, total, add)
        told.append(f"{digest} {pieces}")
    if comm.rank == 0:
        print(json.dumps(told), flush=True)
    mpi.Finalize()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
