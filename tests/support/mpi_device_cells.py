"""A rank of MPI with buffers on the simulated device: ``python -m tests.support.mpi_device_cells FILE CELLS``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from omb_py.backends.mpi.devices import DeviceRunner, Resolver
from omb_py.backends.registry import find as backend
from omb_py.engine import validate
from tests.support.nccl_cells import measured


def main() -> None:
    """One rank; rank 0 writes what each cell gave."""
    validate.ITERATIONS = 3
    session = backend("mpi").connect({"thread_level": "single", "device": "sim"})
    found = [measured(session, cell, DeviceRunner, Resolver) for cell in json.loads(sys.argv[2])]
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(found))
    session.close()


if __name__ == "__main__":
    main()
