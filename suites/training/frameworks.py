"""The frameworks that train: ours, and those of installed packages (entry points ``omb_py.frameworks``).

Nothing here loads one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from omb_py.distribution import pip_install
from omb_py.errors import UsageError, nearest
from omb_py.plug_ins import REPAIR, load_plug_ins

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.distributed import ProcessGroup

    Batch = tuple[torch.Tensor, torch.Tensor]
    from omb_py.suites.training.loop import TrainedModel
    from omb_py.suites.training.settings import Training

ENTRY_POINTS: Final = "omb_py.frameworks"


class Framework(ABC):
    """A framework that spreads the training of a PyTorch model over ranks, and makes the calls of a step."""

    name: ClassVar[str]
    layouts: ClassVar[tuple[str, ...]]
    """Values of ``--parallel``, the default first."""
    whole: ClassVar[tuple[str, ...]] = ()
    """Layouts in which each rank holds all parameters, so that they must be the same on all."""
    backends: ClassVar[tuple[str, ...]] = ("gloo", "nccl")
    """Process groups of PyTorch that it works with; of one with its own calls, the one over which its ranks meet."""
    traces: ClassVar[bool] = True
    """Whether ``--trace`` can record its steps."""

    def missing(self) -> str:
        """Why it cannot be used in this installation, with what to do; empty if it can. Loads nothing heavy."""
        return ""

    @abstractmethod
    def workload(self, parallel: str, model: str) -> str:
        """The workload that should make the same calls: for a layout and a model as ``--workload`` names it."""

    @abstractmethod
    def spread(self, net: nn.Module, batch: Batch, training: Training, group: ProcessGroup) -> TrainedModel:
        """The model as all ranks train it together.

        Args:
            net: the model on this rank's device, with the same parameters on all ranks.
            batch: input, and the classes wanted, of this rank.
            training: what is trained.
            group: the process group whose ranks share the work.
        """

    def alone(self, net: nn.Module, batch: Batch) -> TrainedModel:
        """The same model as this rank trains it without the others."""
        from omb_py.suites.training.loop import TrainedModel

        return TrainedModel(net, batch)


class Torch(Framework):
    """PyTorch's own DistributedDataParallel and fully_shard."""

    name, layouts, whole, backends = "torch", ("ddp", "fsdp"), ("ddp",), ("gloo", "nccl", "mpi")

    def workload(self, parallel: str, model: str) -> str:
        return f"{parallel}:model={model}"

    def spread(self, net: nn.Module, batch: Batch, training: Training, group: ProcessGroup) -> TrainedModel:
        from omb_py.suites.training.loop import TrainedModel, spread

        return TrainedModel(spread(net, training, group), batch)


class DeepSpeed(Framework):
    """DeepSpeed's ZeRO, stages 1 to 3, with its defaults."""

    name, layouts, whole = "deepspeed", ("zero1", "zero2", "zero3"), ("zero1", "zero2")

    def missing(self) -> str:
        from importlib.util import find_spec

        if find_spec("deepspeed") is not None:
            return ""
        return "DeepSpeed is not installed: DS_BUILD_OPS=0 pip install --no-build-isolation deepspeed"

    def workload(self, parallel: str, model: str) -> str:
        return f"zero:model={model},stage={parallel.removeprefix('zero')}"

    def spread(self, net: nn.Module, batch: Batch, training: Training, group: ProcessGroup) -> TrainedModel:
        from omb_py.suites.training.deepspeed_engine import initialise

        return initialise(net, batch, training)


class TensorFlow(Framework):
    """TensorFlow's MultiWorkerMirroredStrategy on CPUs: all gradients in one all-reduce over gRPC."""

    name, layouts, whole, backends, traces = "tensorflow", ("mirrored",), ("mirrored",), ("gloo",), False

    def missing(self) -> str:
        from importlib.util import find_spec

        return "" if find_spec("tensorflow") else f"TensorFlow is not installed: {pip_install('tensorflow')}"

    def workload(self, parallel: str, model: str) -> str:
        return f"horovod:model={model},threshold=1T"

    def spread(self, net: nn.Module, batch: Batch, training: Training, group: ProcessGroup) -> TrainedModel:
        from omb_py.suites.training.tensorflow_engine import MirroredModel, join

        return MirroredModel(net, batch, join(group))

    def alone(self, net: nn.Module, batch: Batch) -> TrainedModel:
        from omb_py.suites.training.tensorflow_engine import MirroredModel

        return MirroredModel(net, batch)


_OURS: Final = (Torch(), DeepSpeed(), TensorFlow())
OURS: Final[Mapping[str, Framework]] = {framework.name: framework for framework in _OURS}
_NOT_HERE: Final = {
    "horovod": "its last release, 0.28, does not compile with PyTorch since 2.1: its rule is the workload horovod"
}
"""Frameworks that are asked for, and why there is none."""


@cache
def frameworks() -> Mapping[str, Framework]:
    """All frameworks by name, ours first."""
    return {**OURS, **load_plug_ins(ENTRY_POINTS, Framework, ours=OURS.get).loaded}


def find_framework(name: str) -> Framework:
    """The framework with this name. Raises UsageError with the nearest name, or with the reason why there is none."""
    if name in OURS:
        return OURS[name]
    if name in _NOT_HERE:
        raise UsageError(f"framework {name}: {_NOT_HERE[name]}")
    if why := load_plug_ins(ENTRY_POINTS, Framework, ours=OURS.get).broken.get(name):
        raise UsageError(f"framework {name} cannot be loaded ({why}): {REPAIR}")
    if name not in frameworks():
        raise UsageError(f"unknown framework {name!r}: {nearest(name, frameworks())}")
    return frameworks()[name]


def layouts() -> Mapping[str, str]:
    """Layout -> the first framework that has it."""
    named: dict[str, str] = {}
    for framework in frameworks().values():
        for layout in framework.layouts:
            named.setdefault(layout, framework.name)
    return named
