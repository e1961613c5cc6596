"""Training with DeepSpeed's engine. This module loads DeepSpeed."""

from __future__ import annotations

import logging
import os
import warnings
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import torch
from torch import distributed as dist
from torch.nn import functional

from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.suites.training.loop import RATE, TrainedModel
from omb_py.suites.training.settings import Training


class EngineModel(TrainedModel):
    """A model that a DeepSpeed engine trains."""

    def __init__(self, engine: Any, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.net, self.engine, (self.input, self.wanted) = engine.module, engine, batch

    def step(self) -> object:
        loss: Any = functional.cross_entropy(self.engine(self.input), self.wanted)
        self.engine.backward(loss)
        self.engine.step()
        return loss.detach()


def initialise(net: Any, batch: tuple[Any, Any], training: Training) -> TrainedModel:
    """The model in an engine over PyTorch's world, which the launch has made. ZeRO's settings are DeepSpeed's."""
    on_cpu = training["backend"] != "nccl"
    os.environ["DS_BUILD_OPS"] = "0"
    if on_cpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
    os.environ.setdefault("LOCAL_RANK", str(local_rank(os.environ)))
    os.environ.setdefault("RANK", str(dist.get_rank()))
    os.environ.setdefault("WORLD_SIZE", str(dist.get_world_size()))
    # its calls have newer names in PyTorch, which says so at each
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.distributed")
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        deepspeed: Any = import_module("deepspeed")
        # it would compile an extension of shared memory, for minutes, and all-reduce through it instead of Gloo
        calls: Any = import_module("deepspeed.comm.torch")  # by name: what it imports hides it
        calls.build_shm_op = lambda: None
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
        deepspeed.init_distributed(training["backend"], auto_mpi_discovery=False, verbose=False)
        config = {
            "train_micro_batch_size_per_gpu": training["batch"],
            "zero_optimization": {"stage": int(training["parallel"].removeprefix("zero"))},
            "zero_allow_untested_optimizer": True,
        }
        optimiser = torch.optim.SGD(net.parameters(), lr=RATE)
        engine, *_ = deepspeed.initialize(model=net, optimizer=optimiser, config=config)
    return EngineModel(engine, batch)
