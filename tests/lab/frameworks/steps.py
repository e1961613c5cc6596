"""One step of each framework, and the workload that stands for it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional

from omb_py.suites.training.loop import Gpt2, mlp, resnet50, units
from omb_py.suites.workloads.models import Shape
from omb_py.suites.workloads.traces.replay import Entry, entries_of

Step = Callable[[], None]
Recorded = tuple[str, int, str]
GPT = Shape(2, 64, 4, 32, 256, "gpt2")
TEXT = "custom:layers=2,hidden=64,heads=4,seq=32,vocabulary=256"


def by_torch(step: Step) -> list[Entry]:
    """The calls of a step that PyTorch's profiler sees."""
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else Kineto prints when it starts and stops
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        step()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(file))
        return entries_of(json.loads(file.read_text()))


def by_tensorflow(step: Any) -> list[Entry]:
    """The calls of a step that TensorFlow's profiler sees."""
    entries: list[Entry] = step.__self__.profiled()(Path())
    return entries


@dataclass(frozen=True, slots=True)
class Case:
    """A recording: what is done, and the workload that should make the same calls."""

    name: str
    text: str
    ranks: int
    framework: str
    step: Callable[[int, int], Step]
    rank: int = 0
    package: str = "torch"
    differs: str = ""
    """Why calls differ; empty: they must be equal."""
    profiled: Callable[[Step], list[Entry]] = by_torch


def batch(name: str) -> tuple[Tensor, Tensor]:
    if name == "gpt":
        tokens = torch.randint(GPT.vocabulary, (1, GPT.sequence + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    shape = (784,) if name == "mlp" else (3, 33, 33)
    return torch.randn(2, *shape), torch.randint(10, (2,))


def built(name: str) -> nn.Module:
    return {"gpt": lambda: Gpt2(GPT, GPT.layers), "mlp": mlp, "resnet50": resnet50}[name]()


def trained(net: nn.Module, given: tuple[Tensor, Tensor]) -> Step:
    def step() -> None:
        net.zero_grad()
        functional.cross_entropy(net(given[0]), given[1]).backward()

    return step


def ddp(name: str, rank: int, ranks: int, **options: Any) -> Step:
    return trained(nn.parallel.DistributedDataParallel(built(name), **options), batch(name))


def fsdp(name: str, rank: int, ranks: int, replicas: int = 1) -> Step:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    shape = (ranks,) if replicas == 1 else (replicas, ranks // replicas)
    names = ("shard",) if replicas == 1 else ("replica", "shard")
    net, mesh = built(name), init_device_mesh("cpu", shape, mesh_dim_names=names)
    for part in (*units(net), net):
        fully_shard(part, mesh=mesh).set_force_sum_reduction_for_comms(True)
    return trained(net, batch(name))


class DividedLayer(nn.Module):
    """The products of a layer, whose attention is reduced to a product of a rank's own part."""

    def __init__(self, h: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(h), nn.LayerNorm(h)
        self.attend, self.project = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.widen, self.narrow = nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.attend(self.before(x)).chunk(3, -1)
        x = x + self.project(query * key * value)
        narrowed: Tensor = self.narrow(self.widen(self.between(x)).relu())
        return x + narrowed


class DividedModel(nn.Module):
    """Embedding, layers, norm and head."""

    def __init__(self) -> None:
        super().__init__()
        h = GPT.hidden
        self.tokens, self.head = nn.Embedding(GPT.vocabulary, h), nn.Linear(h, GPT.vocabulary, bias=False)
        self.layers, self.norm = nn.ModuleList(DividedLayer(h) for _ in range(GPT.layers)), nn.LayerNorm(h)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def dtensor(rank: int, ranks: int, sequence: bool = False, forward: bool = False) -> Step:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        loss_parallel,
        parallelize_module,
    )

    kept = Shard(1) if sequence else Replicate()
    wide, narrow = ColwiseParallel(input_layouts=kept), RowwiseParallel(output_layouts=kept)
    plan: dict[str, Any] = {
        "tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=kept),
        "head": ColwiseParallel(
            input_layouts=kept, output_layouts=Replicate() if forward else Shard(-1), use_local_output=forward
        ),
    }
    for layer in range(GPT.layers):
        plan |= {f"layers.{layer}.{name}": wide for name in ("attend", "widen")}
        plan |= {f"layers.{layer}.{name}": narrow for name in ("project", "narrow")}
        plan |= {f"layers.{layer}.{name}": SequenceParallel() for name in ("before", "between") if sequence}
    plan |= {"norm": SequenceParallel()} if sequence else {}
    net = parallelize_module(DividedModel(), init_device_mesh("cpu", (ranks,)), plan)
    tokens, wanted = batch("gpt")

    def inferred() -> None:
        with torch.no_grad():
            net(tokens)

    def step() -> None:
        net.zero_grad()
        with loss_parallel():
            functional.cross_entropy(net(tokens).flatten(0, 1), wanted).backward()

    return inferred if forward else step


def pipeline(schedule: str, rank: int, ranks: int) -> Step:
    from torch.distributed import pipelining

    stage = pipelining.PipelineStage(nn.Linear(GPT.hidden, GPT.hidden), rank, ranks, torch.device("cpu"))
    run = getattr(pipelining, schedule)(stage, 4, loss_fn=functional.mse_loss)
    sent = torch.randn(4, GPT.sequence, GPT.hidden)
    given = {"args": (sent,) if rank == 0 else (), "kwargs": {"target": sent} if rank == ranks - 1 else {}}
    return lambda: run.step(*given["args"], **given["kwargs"])


def prepared() -> Any:
    """DeepSpeed, which compiles no extension of shared memory. Its module is asked by name: another hides it."""
    os.environ |= {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0"}
    import deepspeed as ds

    import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    ds.init_distributed("gloo", verbose=False, auto_mpi_discovery=False)
    return ds


def deepspeed(stage: int, rank: int, ranks: int, name: str = "gpt", half: bool = False, **options: Any) -> Step:
    ds = prepared()
    net, given = built(name), batch(name)
    config: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": stage, **options},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": half},
    }
    engine, *_ = ds.initialize(model=net, optimizer=torch.optim.Adam(net.parameters()), config=config)

    def step() -> None:
        engine.backward(functional.cross_entropy(engine(given[0]), given[1]))
        engine.step()

    return step


@cache
def strategy() -> Any:
    """TensorFlow's strategy over the process group, of which a process can have one."""
    from omb_py.suites.training.tensorflow_engine import join

    world = dist.group.WORLD
    assert world is not None
    return join(world)


def tensorflow(name: str, rank: int, ranks: int) -> Step:
    from omb_py.suites.training.tensorflow_engine import MirroredModel

    return MirroredModel(built(name), batch(name), strategy()).step


def ulysses(rank: int, ranks: int) -> Step:
    prepared()
    from deepspeed.sequence.layer import DistributedAttention

    attention = DistributedAttention(
        lambda q, k, v, *rest, **named: q * k * v, dist.group.WORLD, scatter_idx=2, gather_idx=1
    )
    shape = 1, GPT.sequence // ranks, ranks, GPT.hidden // ranks
    own = [torch.randn(*shape, requires_grad=True) for _ in range(3)]
    return lambda: attention(*own, 0).sum().backward()


def kmeans(rank: int, ranks: int, clusters: int = 16, features: int = 8, points: int = 512) -> Step:
    """An iteration of scikit-learn's K-means on each rank's points, added up: the centres are those of all points."""
    import numpy as np
    from sklearn.cluster import KMeans

    draw = np.random.default_rng(1)
    whole, start = draw.random((ranks * points, features), np.float32), draw.random((clusters, features), np.float32)
    one = {"n_clusters": clusters, "init": start, "n_init": 1, "max_iter": 1, "algorithm": "lloyd"}

    def step() -> None:
        own = whole[rank * points : (rank + 1) * points]
        estimator = KMeans(**one).fit(own)
        labels = np.linalg.norm(own[:, None] - start, axis=2).argmin(axis=1)
        sums, counts = np.zeros_like(start), np.bincount(labels, minlength=clusters).astype(np.float32)
        np.add.at(sums, labels, own)
        full = counts > 0
        np.testing.assert_allclose(estimator.cluster_centers_[full], sums[full] / counts[full, None], rtol=1e-4)
        both = torch.from_numpy(np.concatenate([sums.ravel(), counts]))
        dist.all_reduce(both)
        inertia = torch.tensor([((own - start[labels]) ** 2).sum()], dtype=torch.float32)
        dist.all_reduce(inertia)
        found = both[: clusters * features].view(clusters, features) / both[clusters * features :, None]
        np.testing.assert_allclose(found.numpy(), KMeans(**one).fit(whole).cluster_centers_, rtol=1e-4)

    return step


_TP = f"model={TEXT},dtype=float32"
_LAYERS_KEEP = (
    "DTensor keeps the gathered input of a layer, Megatron-LM gathers it again; norms' gradients are not added up"
)
_ZERO = "DeepSpeed"
CASES = (
    Case("ddp-resnet50", "ddp:model=resnet50", 2, "DDP", partial(ddp, "resnet50")),
    Case("ddp-mlp", "ddp:model=mlp", 2, "DDP", partial(ddp, "mlp")),
    Case("ddp-cap", "ddp:model=mlp,cap=1M", 2, "DDP, bucket_cap_mb=1", partial(ddp, "mlp", bucket_cap_mb=1)),
    Case(
        "ddp-unused",
        "ddp:model=resnet50,layout=unused",
        2,
        "DDP, find_unused_parameters",
        partial(ddp, "resnet50", find_unused_parameters=True),
    ),
    Case("fsdp-mlp-2", "fsdp:model=mlp", 2, "FSDP2", partial(fsdp, "mlp")),
    Case("fsdp-mlp-3", "fsdp:model=mlp", 3, "FSDP2", partial(fsdp, "mlp")),
    Case("ddp-gpt-2", f"ddp:model={TEXT}", 2, "DDP", partial(ddp, "gpt")),
    Case("fsdp-gpt-2", f"fsdp:model={TEXT}", 2, "FSDP2", partial(fsdp, "gpt")),
    Case("fsdp-gpt-3", f"fsdp:model={TEXT}", 3, "FSDP2", partial(fsdp, "gpt")),
    Case("hsdp-mlp", "fsdp:model=mlp,shard=2,replica=2", 4, "FSDP2, HSDP", partial(fsdp, "mlp", replicas=2)),
    Case("tensor-2", f"tensor:{_TP},head=on", 2, "DTensor", dtensor),
    Case("tensor-4", f"tensor:{_TP},head=on", 4, "DTensor", dtensor),
    Case(
        "tensor-sequence",
        f"tensor:{_TP},head=on,sequence=on",
        4,
        "DTensor, SequenceParallel",
        partial(dtensor, sequence=True),
        differs=_LAYERS_KEEP,
    ),
    Case(
        "prefill",
        f"prefill:{_TP},head=on",
        2,
        "DTensor, forward",
        partial(dtensor, forward=True),
        differs="DTensor gathers the logits of every position, an engine for inference those of the last",
    ),
    Case("pipeline-1f1b", f"pipeline:{_TP},layers=4", 4, "Schedule1F1B", partial(pipeline, "Schedule1F1B"), 1),
    Case(
        "pipeline-gpipe",
        f"pipeline:{_TP},layers=4,schedule=gpipe",
        4,
        "ScheduleGPipe",
        partial(pipeline, "ScheduleGPipe"),
        2,
    ),
    *(
        Case(
            f"zero-{stage}-{n}", f"zero:model={TEXT},stage={stage}", n, _ZERO, partial(deepspeed, stage), 0, "deepspeed"
        )
        for n in (2, 3)
        for stage in (1, 2, 3)
    ),
    *(
        Case(
            f"zero-{stage}-bf16",
            f"zero:model={TEXT},stage={stage},dtype=bfloat16",
            2,
            f"{_ZERO}, bf16",
            partial(deepspeed, stage, half=True),
            0,
            "deepspeed",
        )
        for stage in (2, 3)
    ),
    Case("zero-3-mlp", "zero:model=mlp,stage=3", 2, _ZERO, partial(deepspeed, 3, name="mlp"), 0, "deepspeed"),
    Case(
        "zero-1-buckets",
        f"zero:model={TEXT},stage=1,bucket=20000",
        2,
        f"{_ZERO}, reduce_bucket_size",
        partial(deepspeed, 1, reduce_bucket_size=20000),
        0,
        "deepspeed",
    ),
    Case(
        "zero-2-buckets",
        f"zero:model={TEXT},stage=2,bucket=20000",
        2,
        f"{_ZERO}, reduce_bucket_size",
        partial(deepspeed, 2, reduce_bucket_size=20000),
        0,
        "deepspeed",
        "a matrix is ready before its bias, which the workload takes in the reverse order of definition",
    ),
    Case(
        "zero-3-prefetched",
        f"zero:model={TEXT},stage=3,persistent=0",
        2,
        f"{_ZERO}, stage3_param_persistence_threshold=0",
        partial(deepspeed, 3, stage3_param_persistence_threshold=0),
        0,
        "deepspeed",
    ),
    *(
        Case(
            f"mirrored-{name}",
            f"horovod:model={text},threshold=1T",
            2,
            "TensorFlow, MultiWorkerMirroredStrategy",
            partial(tensorflow, name),
            package="tensorflow-cpu",
            profiled=by_tensorflow,
        )
        for name, text in (("gpt", TEXT), ("mlp", "mlp"), ("resnet50", "resnet50"))
    ),
    Case(
        "kmeans",
        "kmeans:clusters=16,features=8",
        2,
        "scikit-learn's KMeans, added up over ranks",
        kmeans,
        package="scikit-learn",
    ),
    Case(
        "ulysses",
        "ulysses:model=custom:layers=1,hidden=64,heads=2,seq=32,dtype=float32",
        2,
        "DeepSpeed-Ulysses, DistributedAttention",
        ulysses,
        0,
        "deepspeed",
    ),
)
