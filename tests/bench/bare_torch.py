"""The barest torch.distributed loops: what a person would write to time a call, with nothing else in the loop."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


def allreduce(memory: Any, iterations: int, warmup: int) -> float:
    """Mean over the ranks of the mean time of an all_reduce of int32, in µs."""
    tensor = torch.from_numpy(memory.view(np.int32))
    total = 0.0
    dist.barrier()
    for i in range(iterations + warmup):
        start = time.perf_counter()
        dist.all_reduce(tensor)
        stop = time.perf_counter()
        if i >= warmup:
            total += stop - start
        dist.barrier()
    mean = torch.tensor([total * 1e6 / iterations], dtype=torch.float64)
    dist.all_reduce(mean)
    return float(mean[0]) / dist.get_world_size()


LOOPS = {"allreduce": allreduce}
