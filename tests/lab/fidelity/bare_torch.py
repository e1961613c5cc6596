"""The barest torch.distributed loops: what a person would write to time a call, with nothing else in the loop."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


def allreduce(memory: Any, iterations: int, warmup: int) -> float:
    """Median over the calls of the ranks' mean time of an all_reduce of int32, in µs."""
    tensor = torch.from_numpy(memory.view(np.int32))
    taken = []
    dist.barrier()
    for i in range(iterations + warmup):
        start = time.perf_counter()
        dist.all_reduce(tensor)
        stop = time.perf_counter()
        if i >= warmup:
            taken.append(stop - start)
        dist.barrier()
    both = torch.tensor(taken, dtype=torch.float64)
    dist.all_reduce(both)
    return statistics.median(both.tolist()) * 1e6 / dist.get_world_size()


LOOPS = {"allreduce": allreduce}
