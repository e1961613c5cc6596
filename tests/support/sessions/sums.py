"""A rank that adds numbers whose sum depends on the order: the bits of the result tell which algorithm added them.

``python -m tests.support.sessions.sums BYTES…``; rank 0 prints a digest for each message size.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mpi.start import initialise

CALLS = 8
"""MPICH's shared memory takes a communicator over after five (MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD)."""


def main(sizes: list[int]) -> None:
    """Add the vectors of all ranks, several times."""
    mpi: Any = initialise("funneled")[0]
    comm, digests = mpi.COMM_WORLD, []
    for nbytes in sizes:
        own: NDArray[np.float32] = np.random.default_rng(comm.rank).standard_normal(nbytes // 4).astype(np.float32)
        total = np.empty_like(own)
        for _ in range(CALLS):
            comm.Allreduce(own, total, mpi.SUM)
        digests.append(hashlib.sha256(total.tobytes()).hexdigest()[:8])
    if comm.rank == 0:
        print(json.dumps(digests), flush=True)
    mpi.Finalize()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
