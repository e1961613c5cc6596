"""A rank whose buffers are PyTorch's tensors, over MPI: ``python -m tests.support.sessions.torch_buffers FILE``.

Types of 1, 2 and 8 bytes, and every byte checked. The counts of a reduce_scatter are of elements, so it shows where the
library is handed another type.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from omb_py.backends.registry import find as backend
from omb_py.engine.program.dtypes import DTYPES
from omb_py.options.table import make_cell
from omb_py.suites.registry import find
from tests.support.conformance import complaints

TYPES = ("char", "int16", "float64")
BENCHMARKS = ("allreduce", "reduce_scatter")


def main() -> None:
    """Every benchmark with every type."""
    session = backend("mpi").connect({})
    said = {}
    usual = {"iterations": 2, "auto": False, "warmup": 0, "validate": True, "buffer": "torch"}
    for dtype in TYPES:
        for name in BENCHMARKS:
            benchmark = find(name)
            size = benchmark.sizes_for(dtype, (32 * DTYPES[dtype].itemsize,))[0]
            cell = make_cell(benchmark, "mpi", "mpi4py", size, dtype=dtype, **usual)
            said[f"{name} {dtype}"] = complaints(session, cell)
    if session.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(said))
    session.close()


if __name__ == "__main__":
    main()
