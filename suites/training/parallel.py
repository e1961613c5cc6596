"""Spreads a model over ranks by PyTorch's DistributedDataParallel or its fully_shard. Loads PyTorch."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.errors import EnvironmentProblem
from omb_py.suites.training.models import units
from omb_py.suites.training.settings import Training

_UUID_BYTES = 64
"""Room for a GPU's UUID as PyTorch writes it."""


def device_of(training: Training) -> torch.device:
    """The model's device: this rank's GPU with nccl, else the CPU. Raises EnvironmentProblem if it has no GPU."""
    if training["backend"] != "nccl":
        return torch.device("cpu")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    # a launcher may show each task its own GPU alone, as srun --gpus-per-task=1
    index = 0 if gpus == 1 else local_rank(os.environ)
    if not dist.is_nccl_available() or index >= gpus or (gpus == 1 and _is_shared(index)):
        raise EnvironmentProblem(
            f"--backend nccl needs a PyTorch with NCCL and a GPU for each rank: torch {torch.__version__} sees {gpus} "
            "here, not one for each: use --backend gloo"
        )
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _is_shared(index: int) -> bool:
    """Whether two ranks see the same GPU; all ranks of the launch ask together."""
    device = torch.device("cuda", index) if dist.get_backend() == "nccl" else torch.device("cpu")
    text = str(torch.cuda.get_device_properties(index).uuid).encode()[:_UUID_BYTES].ljust(_UUID_BYTES)
    own = torch.tensor(list(text), dtype=torch.uint8, device=device)
    every = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(every, own)
    return len({bytes(uuid.tolist()) for uuid in every}) < len(every)


def group_of(training: Training) -> Any:
    """The process group that reduces gradients, with gloo the launch's own. Raises EnvironmentProblem."""
    if training["backend"] == "gloo":
        return dist.group.WORLD
    if training["backend"] == "mpi" and not dist.is_mpi_available():
        raise EnvironmentProblem(
            f"--backend mpi needs a PyTorch built with MPI, which torch {torch.__version__} is not: use --backend gloo"
        )
    return dist.new_group(backend=training["backend"])


def spread(net: nn.Module, training: Training, device: torch.device, group: Any) -> nn.Module:
    """The model as all ranks train it together. With FSDP each layer or block is a unit, and the rest is one unit."""
    if training["parallel"] == "ddp":
        return nn.parallel.DistributedDataParallel(net, process_group=group)
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, device.type)
    for part in (*units(net), net):
        whole = fully_shard(part, mesh=mesh)
        if training["backend"] != "nccl":
            whole.set_force_sum_reduction_for_comms(True)  # only NCCL has a reduction that averages
    return net


def library_of(training: Training) -> dict[str, str]:
    """Marks of a row: the library that reduces gradients, where it is not the launch's own Gloo."""
    if training["backend"] == "gloo":
        return {}
    nccl: Any = torch.cuda.nccl
    version = ".".join(map(str, nccl.version())) if training["backend"] == "nccl" else str(torch.__version__)
    return {"library": f"torch {training['backend']}", "library_version": version}
