"""Real training with PyTorch on synthetic data: models, their spreading over ranks, and the timed loop."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from omb_py.engine.measuring.cell_result import CellResult, LapSeries
from omb_py.engine.measuring.measure import Phase
from omb_py.engine.program.benchmark import Cell, Sampling
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.rank.launcher_variables import local_rank
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem
from omb_py.suites.training.frameworks import find_framework
from omb_py.suites.training.memory import check_memory, name_lack_of_memory
from omb_py.suites.training.schedule import TrainingSchedule
from omb_py.suites.training.settings import GPT2, Training, parse_training
from omb_py.suites.workloads.families import parse_workload
from omb_py.suites.workloads.models import MLP, Shape, transformer
from omb_py.suites.workloads.traces.replay import Entry, element_type, entries_of, op_of

_STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""Stages of ResNet-50: blocks, width, stride of the first block."""


def _conv(into: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    """A block of ResNet-50 (arXiv 1512.03385), the stride in its 3 × 3 convolution as in torchvision."""

    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        self.down, self.across = _conv(into, width, 1), _conv(width, width, 3, stride)
        self.up = _conv(width, 4 * width, 1)
        self.short = _conv(into, 4 * width, 1, stride) if stride > 1 or into != 4 * width else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map images to images of 4 × width channels."""
        y = self.across(torch.relu(self.down(x))).relu()
        return torch.relu(self.up(y) + self.short(x))


def resnet50() -> nn.Sequential:
    """ResNet-50, 25 557 032 parameters."""
    layers: list[nn.Module] = [nn.Sequential(_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))]
    into = 64
    for blocks, width, stride in _STAGES:
        for block in range(blocks):
            layers.append(Bottleneck(into, width, stride if block == 0 else 1))
            into = 4 * width
    return nn.Sequential(*layers, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000)))


def mlp() -> nn.Sequential:
    """The perceptron of many tutorials, 669 706 parameters."""
    layers: list[nn.Module] = []
    for into, out in pairwise(MLP):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Layer(nn.Module):
    """A layer of GPT-2: attention, then the feed-forward part, each after a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        h = shape.hidden
        self.heads = shape.heads
        self.before = nn.LayerNorm(h)
        self.attend, self.project = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.between = nn.LayerNorm(h)
        self.widen, self.narrow = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, tokens, hidden) to the same shape."""
        batch, tokens, hidden = x.shape
        parts = self.attend(self.before(x)).view(batch, tokens, 3 * self.heads, hidden // self.heads)
        query, key, value = parts.transpose(1, 2).chunk(3, dim=1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, tokens, hidden))
        narrowed: Tensor = self.narrow(functional.gelu(self.widen(self.between(x))))
        return x + narrowed


class Gpt2(nn.Module):
    """GPT-2 (Radford et al. 2019), output weights tied to the embedding; 124 439 808 parameters with 12 layers."""

    def __init__(self, shape: Shape, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.sequence, shape.hidden)
        with torch.no_grad():
            for weights in (self.tokens.weight, self.positions.weight):
                weights.mul_(0.02)  # GPT-2's deviation; PyTorch draws with one of 1
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        self.norm = nn.LayerNorm(shape.hidden)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, tokens) to (batch × tokens, vocabulary)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x).flatten(0, 1), self.tokens.weight)


def build(training: Training) -> nn.Module:
    """The model, with parameters drawn from torch's generator."""
    if training.model == GPT2:
        return Gpt2(transformer(GPT2), training["layers"])
    return resnet50() if training.model == "resnet50" else mlp()


def units(net: nn.Module) -> list[nn.Module]:
    """The modules that FSDP wraps one by one: layers and blocks with parameters."""
    parts = net.layers if isinstance(net, Gpt2) else net.children()
    return [part for part in parts if any(True for _ in part.parameters())]


def batch_of(training: Training, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Synthetic input and the classes wanted, the same in every step."""
    n = training["batch"]
    if training.model == GPT2:
        vocabulary = transformer(GPT2).vocabulary
        tokens = torch.randint(vocabulary, (n, training["seq"] + 1), generator=generator)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    side = training.values.get("image")
    shape, classes = ((3, side, side), 1000) if side else ((MLP[0],), MLP[-1])
    return torch.randn(n, *shape, generator=generator), torch.randint(classes, (n,), generator=generator)


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


def group_of(training: Training) -> dist.ProcessGroup:
    """The process group that reduces gradients, with gloo the launch's own. Raises EnvironmentProblem."""
    if training["backend"] == "gloo":
        world = dist.group.WORLD
        assert world is not None, "the session has made it"
        return world
    if training["backend"] == "mpi" and not dist.is_mpi_available():
        raise EnvironmentProblem(
            f"--backend mpi needs a PyTorch built with MPI, which torch {torch.__version__} is not: use --backend gloo"
        )
    group: dist.ProcessGroup = dist.new_group(backend=training["backend"])
    return group


def spread(net: nn.Module, training: Training, group: dist.ProcessGroup) -> nn.Module:
    """The model as all ranks train it together. With FSDP each layer or block is a unit, and the rest is one unit."""
    if training["parallel"] == "ddp":
        return nn.parallel.DistributedDataParallel(net, process_group=group)
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, next(net.parameters()).device.type)
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


Counted = tuple[str, int, str]
"""Op, bytes and type of a call."""
RATE = 0.01
"""Learning rate of plain SGD, as in Horovod's synthetic benchmark."""
STEP, ALONE = "step", "alone"
"""Laps: a step of all ranks together; the same on a copy that each rank trains alone."""


class TrainedModel:
    """A model, its optimiser and its batch."""

    marks: Mapping[str, str] = {}
    """Of a row: the library that reduces gradients, where it is no process group of PyTorch."""

    def __init__(self, net: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.net, (self.input, self.wanted) = net, batch
        self.optimiser = torch.optim.SGD(net.parameters(), lr=RATE)

    def step(self) -> Any:
        """Train one step and return the loss before it."""
        self.optimiser.zero_grad()
        loss: Any = functional.cross_entropy(self.net(self.input), self.wanted)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def parameters(self) -> Iterable[np.ndarray[Any, Any]]:
        """The parameters as this rank holds them."""
        return (each.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for each in self.net.parameters())

    def profiled(self) -> Callable[[Path], list[Entry]]:
        """Train one step under a profiler. What writes its trace to a file and returns the calls of this rank."""
        from torch.profiler import ProfilerActivity, profile

        on_gpu = self.input.is_cuda
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else Kineto prints when it starts and stops
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        with profile(activities=kinds, record_shapes=True, acc_events=True) as recorded:  # one cycle: no warning
            self.step()
            if on_gpu:
                torch.cuda.synchronize()

        def written(file: Path) -> list[Entry]:
            recorded.export_chrome_trace(str(file))
            return entries_of(json.loads(file.read_text()))

        return written


class Trainer:
    """The model over all ranks, and its copy on this rank alone. The watchdog asks it for its position."""

    labels = ("a step of training", "a step without communication", "a step that is traced")

    def __init__(self, session: Session, training: Training, sampling: Sampling) -> None:
        self.session, self.training = session, training
        self.schedule = TrainingSchedule(training, sampling)
        self.device = device_of(training)
        generator = torch.Generator().manual_seed(session.local[0])  # other data on each rank, as in training
        batch: Any = tuple(part.to(self.device) for part in batch_of(training, generator))
        nets = []
        for _ in (STEP, ALONE):
            torch.manual_seed(0)  # both models, on all ranks, start with the same parameters
            nets.append(build(training).to(self.device))
        self.parameters = sum(p.numel() for p in nets[0].parameters())
        self.framework = find_framework(training["framework"])
        if why := self.framework.missing():
            raise EnvironmentProblem(why)
        together = self.framework.spread(nets[0], batch, training, group_of(training))
        self.models = {STEP: together, ALONE: self.framework.alone(nets[1], batch)}
        self.losses: list[float] = []
        self._at = (0, 0)
        session.say(self.schedule.begin_text(self.parameters))

    def position(self) -> tuple[int, int]:
        """(step, which of `labels`)."""
        return self._at

    def timed(self, lap: str, number: int) -> int:
        """Train one step, which all ranks begin together; its time in ns."""
        self._at = number, int(lap == ALONE)
        self._ready()
        self.session.barrier()
        began = time.perf_counter_ns()
        with self.session.guard():
            loss = self.models[lap].step()
        self._ready()
        took = time.perf_counter_ns() - began
        if lap == STEP:
            self.losses.append(float(loss))
        return took

    def _ready(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def pair(self, number: int) -> dict[str, int]:
        """Train a step together and a step alone, in an order that alternates; the time of each lap in ns."""
        laps = (STEP, ALONE) if number % 2 == 0 else (ALONE, STEP)
        took = {lap: self.timed(lap, number) for lap in laps}
        self.session.say(self.schedule.count(sum(took.values()) / 1e9))
        return took

    def traced(self, file: Path) -> list[Entry]:
        """Record one step on rank 0, and return its calls; on other ranks none.

        Raises EnvironmentProblem if its trace cannot be written.
        """
        self.timed(STEP, 0)  # DDP rebuilds its buckets after the first step
        self._at = 0, 2
        self.session.barrier()
        with self.session.guard():
            if 0 not in self.session.local:
                self.models[STEP].step()
                return []
            written = self.models[STEP].profiled()
        try:
            file.touch()
        except OSError as error:
            raise EnvironmentProblem(f"trace {file} cannot be written: {error.strerror}") from None
        return written(file)

    def counted(self) -> dict[str, float]:
        """Calls of one more step and their payload in bytes, and as the workload predicts them. Rank 0 knows them."""
        with tempfile.TemporaryDirectory() as folder:
            entries = self.traced(Path(self.training["trace"] or Path(folder) / "step.json"))
        if 0 not in self.session.local or self.session.size == 1:
            return {}
        counted, predicted = calls_of_entries(entries), predicted_calls(self.training.workload, self.session.size)
        return {
            "calls": float(counted.total()),
            "payload": float(sum(nbytes * count for (_, nbytes, _), count in counted.items())),
            "predicted_calls": float(predicted.total()),
            "predicted_payload": float(sum(nbytes * count for (_, nbytes, _), count in predicted.items())),
            "as_predicted": float(counted == predicted),
        }

    def same_everywhere(self) -> bool | None:
        """Whether all ranks hold the same parameters and all losses are finite; None if each rank holds a part."""
        if self.training["parallel"] not in self.framework.whole:
            return None
        parameters = hashlib.blake2b()
        for parameter in self.models[STEP].parameters():
            parameters.update(parameter.data)
        hashes = self.session.gather(parameters.hexdigest())
        return bool(self.session.share(len(set(hashes)) == 1 and bool(np.isfinite(self.losses).all())))

    def close(self) -> None:
        """Drop everything that refers to a process group."""
        self.models.clear()


def train(session: Session, cell: Cell, phase: Phase) -> CellResult:
    """Train, and time each step.

    Args:
        session: a session of a backend with a process group of PyTorch, with one rank a process.
        cell: `workload` names the model and its settings; `iterations` are timed after `warmup` steps.
        phase: called with the name of each phase.

    Returns:
        Laps ``step`` and ``alone`` in µs, a sample a step; complete on rank 0.

    Raises:
        EnvironmentProblem: no GPU, no such process group, too little memory, or a trace that cannot be written.
    """
    training = parse_training(cell.options.workload)
    check_memory(session, training)
    with name_lack_of_memory(training):
        return _train(session, cell, training, phase)


def _train(session: Session, cell: Cell, training: Training, phase: Phase) -> CellResult:
    trainer = Trainer(session, training, cell.sampling)
    session.watch(trainer)
    phase("loop")
    for number in range(-cell.sampling.warmup, 0):
        trainer.pair(number)
    pairs: list[dict[str, int]] = []
    began, stop = time.monotonic(), "fixed"
    for number in range(cell.sampling.iterations):
        pairs += [trainer.pair(number * training["steps"] + j) for j in range(training["steps"])]
        late = cell.sampling.time_limit is not None and time.monotonic() - began >= cell.sampling.time_limit
        if number + 1 < cell.sampling.iterations and session.share(late):
            stop = "time"
            break
    phase("write")
    shown = replace(cell.with_options(workload=training.shown), backend=training["backend"], device=trainer.device.type)
    version = hashlib.sha256(f"{training.shown};threads={torch.get_num_threads()}".encode()).hexdigest()[:16]
    marks = {**library_of(training), **trainer.models[STEP].marks}
    result = CellResult(shown, len(pairs), stop, version, marks=marks)
    _add_laps(session, pairs, result)
    result.extra = _numbers(result, trainer)
    result.validated = trainer.same_everywhere()
    result.wrong_bytes = None if result.validated is None else int(not result.validated)
    phase("loop")
    result.extra |= trainer.counted()
    trainer.close()
    return result


def calls_of_entries(entries: list[Entry]) -> Counter[Counted]:
    """The calls of a trace."""
    counts: Counter[Counted] = Counter()
    for name, elements, kind, _ in entries:
        dtype = element_type(kind)
        counts[op_of(name) or name, elements * DTYPES[dtype].itemsize, dtype] += 1
    return counts


def predicted_calls(text: str, ranks: int) -> Counter[Counted]:
    """The calls of rank 0 in a step of a workload; alone it makes none that a trace shows."""
    return Counter((call.op, call.sent, call.dtype) for call in parse_workload(text).calls(0, ranks))


def _add_laps(session: Session, pairs: list[dict[str, int]], result: CellResult) -> None:
    """Add the two series of each lap, the ranks' means, and how often each rank was the slowest."""
    for lap in (STEP, ALONE):
        own = np.array([pair[lap] / 1000 for pair in pairs])
        slowest, whole = session.maximum(own), session.total(own)
        result.series[lap] = LapSeries(max=slowest, avg=whole / session.size)
        ranks = sorted(session.gather((session.local[0], float(own.mean()), float((own >= slowest).mean()))))
        result.laps[lap] = [mean for _, mean, _ in ranks]
        if lap == STEP:
            result.slowest_rank_share = [share for _, _, share in ranks]


def _numbers(result: CellResult, trainer: Trainer) -> dict[str, float]:
    """Values of the row: the time of a step beyond one without communication (µs, %), model and losses."""
    together, alone = (np.asarray(result.series[lap]["max"]) for lap in (STEP, ALONE))
    beyond = together - alone
    # of a single step nothing says how far it is off
    half = {"exposed_half_us": 1.96 * float(beyond.std(ddof=1)) / len(beyond) ** 0.5} if len(beyond) > 1 else {}
    return {
        "alone_us": float(alone.mean()),
        "exposed_us": float(beyond.mean()),
        **half,
        "share_pct": float(beyond.mean() / together.mean() * 100),
        "steps": float(trainer.training["steps"]),
        "parameters": float(trainer.parameters),
        "loss_first": trainer.losses[0],
        "loss_last": trainer.losses[-1],
    }
