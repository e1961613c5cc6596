"""The barest C loop over oneCCL's allreduce, on the communicator and buffers of a session."""

from __future__ import annotations

import ctypes
import statistics
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.backends.nccl.communicators import SCRATCH
from tests.support.c_library import STRICT, shared_library


def allreduce(session: Any, size: int, iterations: int, warmup: int) -> float:
    """Median over the calls of the ranks' mean time, in µs. Raises RuntimeError when a call fails."""
    samples = np.zeros(iterations)
    pointers = [session.comms.memory.address(name) for name in ("send", "recv", SCRATCH)]
    operands = [session.nccl.address_of("ncclAllReduce"), session.comms.first, *pointers]
    code = _loop()(*map(ctypes.c_void_p, operands), size, iterations, warmup, ctypes.c_void_p(samples.ctypes.data))
    if code:
        raise RuntimeError(session.nccl.error_text(code))
    return statistics.median(session.total(samples).tolist()) / session.size


@cache
def _loop() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(__file__).with_name("oneccl.c")
        return ctypes.CDLL(str(shared_library(source, Path(folder, "oneccl.so"), *STRICT))).allreduce
