"""Training with TensorFlow's MultiWorkerMirroredStrategy, of the same models from the same parameters.

This module loads TensorFlow. A model of PyTorch is read module by module: its parameters become variables, and each
kind of module has its TensorFlow form here.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from omb_py.suites.training.loop import RATE, Bottleneck, Gpt2, Layer, TrainedModel
from omb_py.suites.workloads.traces.replay import Entry

Tensor: TypeAlias = Any
"""What TensorFlow makes: it has no types."""
Part: TypeAlias = Any
"""A module of PyTorch, whose parts are known by its class."""
Forward = Callable[["TensorFlowNetwork", Part, Tensor], Tensor]
"""(network, module of PyTorch, input) -> output."""


@contextmanager
def _silence() -> Iterator[None]:
    """TensorFlow's C++ code writes to standard error what its own settings do not silence."""
    before, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(null)


os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
with _silence():
    tf: Any = import_module("tensorflow")


class TensorFlowNetwork:
    """A model of PyTorch in TensorFlow's operations. Images have their channels last, the only order that CPUs take."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self.variables: dict[Any, Any] = {p: tf.Variable(_put_channels_last(p)) for p in net.parameters()}

    def __call__(self, module: Part, x: Tensor) -> Tensor:
        return FORWARD[type(module)](self, module, x)

    def dense(self, module: Part, x: Tensor) -> Tensor:
        y = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), self.variables[module.weight], transpose_b=True)
        return tf.reshape(y + self.variables[module.bias], (*x.shape[:-1], y.shape[-1]))

    def convolution(self, module: Part, x: Tensor) -> Tensor:
        x = _pad(x, module.padding[0])
        return tf.nn.conv2d(x, self.variables[module.weight], strides=module.stride, padding="VALID")

    def batch_norm(self, module: Part, x: Tensor) -> Tensor:
        scale, offset = self.variables[module.weight], self.variables[module.bias]
        return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=module.eps)[0]

    def layer_norm(self, module: Part, x: Tensor) -> Tensor:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        offset, scale = self.variables[module.bias], self.variables[module.weight]
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, module.eps)

    def pool(self, module: Part, x: Tensor) -> Tensor:
        return tf.nn.max_pool2d(_pad(x, module.padding, x.dtype.min), module.kernel_size, module.stride, "VALID")

    def chain(self, module: Part, x: Tensor) -> Tensor:
        for part in module:
            x = self(part, x)
        return x

    def bottleneck(self, module: Bottleneck, x: Tensor) -> Tensor:
        y = tf.nn.relu(self(module.across, tf.nn.relu(self(module.down, x))))
        return tf.nn.relu(self(module.up, y) + self(module.short, x))

    def layer(self, module: Layer, x: Tensor) -> Tensor:
        batch, tokens, hidden = x.shape
        parts = tf.reshape(self.dense(module.attend, self(module.before, x)), (batch, tokens, 3 * module.heads, -1))
        query, key, value = tf.split(tf.transpose(parts, (0, 2, 1, 3)), 3, axis=1)
        scores = tf.matmul(query, key, transpose_b=True) / (hidden // module.heads) ** 0.5
        seen = tf.linalg.band_part(tf.ones((tokens, tokens), tf.bool), -1, 0)
        attended = tf.matmul(tf.nn.softmax(tf.where(seen, scores, scores.dtype.min)), value)
        joined = tf.reshape(tf.transpose(attended, (0, 2, 1, 3)), (batch, tokens, hidden))
        x = x + self.dense(module.project, joined)
        return x + self.dense(module.narrow, tf.nn.gelu(self.dense(module.widen, self(module.between, x))))

    def gpt2(self, module: Gpt2, tokens: Tensor) -> Tensor:
        embedding, positions = self.variables[module.tokens.weight], self.variables[module.positions.weight]
        x = tf.gather(embedding, tokens) + positions[: tokens.shape[1]]
        x = self(module.norm, self.chain(module.layers, x))
        return tf.matmul(tf.reshape(x, (-1, x.shape[-1])), embedding, transpose_b=True)


FORWARD: Final[dict[type[nn.Module], Forward]] = {
    nn.Sequential: TensorFlowNetwork.chain,
    nn.Linear: TensorFlowNetwork.dense,
    nn.Conv2d: TensorFlowNetwork.convolution,
    nn.BatchNorm2d: TensorFlowNetwork.batch_norm,
    nn.LayerNorm: TensorFlowNetwork.layer_norm,
    nn.MaxPool2d: TensorFlowNetwork.pool,
    nn.AdaptiveAvgPool2d: lambda network, module, x: tf.reduce_mean(x, (1, 2)),
    nn.Flatten: lambda network, module, x: x,
    nn.Identity: lambda network, module, x: x,
    nn.ReLU: lambda network, module, x: tf.nn.relu(x),
    Bottleneck: TensorFlowNetwork.bottleneck,
    Layer: TensorFlowNetwork.layer,
    Gpt2: TensorFlowNetwork.gpt2,
}


def _put_channels_last(tensor: torch.Tensor) -> Tensor:
    """Values with channels last, as TensorFlow has images (N, H, W, C) and filters (H, W, in, out)."""
    values = tensor.detach().numpy()
    return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values


def _pad(x: Tensor, width: int, value: float = 0) -> Tensor:
    return tf.pad(x, ((0, 0), (width, width), (width, width), (0, 0)), constant_values=value) if width else x


class MirroredModel(TrainedModel):
    """A model that a strategy trains on all ranks, or without one this rank alone."""

    def __init__(self, net: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], strategy: Tensor = None) -> None:
        self.strategy = strategy
        self.marks = {"library": "TensorFlow's collectives", "library_version": str(tf.__version__)}
        with strategy.scope() if strategy else tf.init_scope(), _silence():
            self.network = TensorFlowNetwork(net)
        given, wanted = (part.numpy() for part in batch)
        self.batch = tf.constant(given.transpose(0, 2, 3, 1) if given.ndim == 4 else given), tf.constant(wanted)
        self.run = tf.function(self._train_together if strategy else self._train_alone)

    def step(self) -> Tensor:
        return self.run(*self.batch)

    def _train_together(self, given: Tensor, wanted: Tensor) -> Tensor:
        return self.strategy.run(self._train, args=(given, wanted))

    def _train_alone(self, given: Tensor, wanted: Tensor) -> Tensor:
        loss, gradients = self._gradients(given, wanted)
        for variable, gradient in zip(self.network.variables.values(), gradients, strict=True):
            variable.assign_sub(RATE * gradient)
        return loss

    def _train(self, given: Tensor, wanted: Tensor) -> Tensor:
        loss, gradients = self._gradients(given, wanted)
        replica = tf.distribute.get_replica_context()  # as Keras's optimisers reduce gradients, and then update
        reduced = replica.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        replica.merge_call(self._update, args=(reduced,))
        return loss

    def _update(self, strategy: Tensor, reduced: Tensor) -> None:
        for variable, gradient in zip(self.network.variables.values(), reduced, strict=True):
            strategy.extended.update(variable, lambda own, by: own.assign_sub(RATE * by), args=(gradient,))

    def _gradients(self, given: Tensor, wanted: Tensor) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            logits = self.network(self.network.net, given)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits))
        gradients = tape.gradient(loss, list(self.network.variables.values()))
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]  # that of an embedding is sparse

    def parameters(self) -> Iterator[np.ndarray[Any, Any]]:
        return (variable.numpy() for variable in self.network.variables.values())

    def profiled(self) -> Callable[[Path], list[Entry]]:
        """The calls that TensorFlow's profiler saw, and their elements by the graph of the step."""
        protocol: Any = import_module("tensorflow.tsl.profiler.protobuf.xplane_pb2")
        with tempfile.TemporaryDirectory() as folder, _silence():
            with tf.profiler.experimental.Profile(folder):
                self.step()
            (file,) = Path(folder).rglob("*.xplane.pb")
            space = protocol.XSpace.FromString(file.read_bytes())
        made = (plane.event_metadata[event.metadata_id].name for plane in space.planes for event in _events(plane))
        nodes = {
            f"{node.name}:{node.type}": node
            for node in _list_collectives(self.run.get_concrete_function(*self.batch).graph)
        }
        calls = [nodes[name] for name in made if name in nodes]
        entries = [
            (_CALLS[node.type], node.inputs[0].shape.num_elements(), node.inputs[0].dtype.name) for node in calls
        ]
        return lambda file: [(*entry, 0) for entry in entries]


_CALLS: Final = {
    "CollectiveReduceV2": "all_reduce",
    "CollectiveGatherV2": "all_gather",
    "CollectiveBcastSendV2": "broadcast",
    "CollectiveBcastRecvV2": "broadcast",
    "CollectiveReduceScatterV2": "reduce_scatter",
    "CollectiveAllToAllV2": "all_to_all",
}
"""Operations of TensorFlow, as traces name the calls."""


_MOST_TOLD: Final = 256
"""Bytes of an address."""


def _events(plane: Tensor) -> Iterator[Tensor]:
    return (event for line in plane.lines for event in line.events)


def _list_collectives(graph: Tensor) -> Iterator[Tensor]:
    """The collective operations of a graph, and of the functions in it."""
    inner = (function.graph for function in graph._functions.values() if hasattr(function, "graph"))
    for each in (graph, *inner):
        yield from (node for node in each.get_operations() if node.type in _CALLS)


def join(group: dist.ProcessGroup) -> Tensor:
    """A strategy over all ranks, which meet at ports that they tell each other in the launch's process group."""
    threads = torch.get_num_threads()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.config.set_visible_devices([], "GPU")
    with socket.socket() as held:  # until every rank has a port
        held.bind(("", 0))
        every = _tell_all(f"{socket.gethostname()}:{held.getsockname()[1]}", group)
    one_host = len({address.rpartition(":")[0] for address in every}) == 1
    workers = [f"127.0.0.1:{address.rpartition(':')[2]}" if one_host else address for address in every]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": workers}), task_type="worker", task_id=dist.get_rank(group), rpc_layer="grpc"
    )
    with _silence():
        return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)


def _tell_all(text: str, group: dist.ProcessGroup) -> list[str]:
    """The texts of all ranks, as bytes: objects would be unpickled."""
    own = torch.zeros(_MOST_TOLD, dtype=torch.uint8)
    own[: len(text)] = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    every = [torch.zeros_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(every, own, group=group)
    return [bytes(each.tolist()).rstrip(b"\0").decode() for each in every]
