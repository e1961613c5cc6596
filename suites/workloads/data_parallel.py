"""Data parallel training: the calls that reduce the gradients (docs/workloads/data-parallel.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Message
from omb_py.errors import UsageError
from omb_py.suites.workloads import buckets
from omb_py.suites.workloads.calls import EXCHANGE, SERVE, Call, Item, Product, padded, there_and_back
from omb_py.suites.workloads.grid import divides, grid
from omb_py.suites.workloads.models import Model, Tensor, model
from omb_py.suites.workloads.settings import Values

ANY = "any"
"""Mode of a parameter server that answers whichever worker comes first."""


@lru_cache(maxsize=64)
def gradient_bytes(name: str, dtype: str) -> tuple[int, ...]:
    """Bytes of each parameter of a model in the order of definition."""
    return tuple(tensor.elements * DTYPES[dtype].itemsize for tensor in model(name).tensors)


@lru_cache(maxsize=64)
def ddp_buckets(name: str, dtype: str, layout: str, first: int, cap: int) -> tuple[int, ...]:
    """Bytes of DDP's buckets in the order in which they are reduced; `first` 0: PyTorch's choice for this `cap`."""
    first = first or (buckets.DDP_FIRST_BYTES if cap == buckets.DDP_CAP_BYTES else cap)
    return tuple(buckets.ddp(gradient_bytes(name, dtype), layout, first, cap))


def rows(v: Values) -> int:
    """T: as set, else a 32nd of the sequence that the model is trained on, or 32 for a model without sequences.

    Clients of one device share it (AccDP: Alnaasan et al., HiPC 2022).
    """
    shape, clients = v["model"].shape, int(v.get("clients", 1))
    return -(-int(v["tokens"] or (shape.sequence // 32 if shape else 32)) // clients)


def passes(model: Model, rows: int) -> tuple[list[Product], list[Product]]:
    """The products of a model's forward and backward pass, unit by unit."""
    return there_and_back([count for _, count in model.units], rows)


def _backward(v: Values, sizes: Sequence[int], label: str) -> list[Item]:
    """A forward pass, then an all-reduce for each part of the gradients as soon as the backward pass completes it."""
    item, tokens = DTYPES[v["dtype"]].itemsize, rows(v)
    steps: list[Item] = [*passes(v["model"], tokens)[0]]
    for n in sizes:
        steps += [Product(n / item, tokens, 2), Call("allreduce", n, v["dtype"], label, work=n, until=None)]
    return steps


def ddp(v: Values, rank: int, ranks: int) -> list[Item]:
    """PyTorch's DDP: one all-reduce a bucket, beside the rest of the backward pass.

    Before the forward pass rank 0 sends its buffers, one message for each element type. With find_unused_parameters an
    all-reduce of a number for each parameter tells who was used.
    """
    divides("ranks", ranks, "clients", v["clients"])
    sizes = ddp_buckets(v["model"].name, v["dtype"], v["layout"], v["first"], v["cap"])
    items = [*_broadcast_buffers(v), *_backward(v, sizes, "bucket")]
    if v["layout"] == "unused":
        numbers = len(v["model"].tensors) * DTYPES["int32"].itemsize
        items.append(Call("allreduce", numbers, "int32", "used", work=0.0, until=None))
    return items


def _broadcast_buffers(v: Values) -> list[Item]:
    """Statistics and counters of batch norms, two messages on their way at once, done before the forward pass."""
    norms, item = v["model"].batch_norms, DTYPES[v["dtype"]].itemsize
    if v["buffers"] == "off" or not norms:
        return []
    sizes = (2 * sum(norms) * item, v["dtype"]), (len(norms) * DTYPES["int64"].itemsize, "int64")
    return [Call("bcast", n, kind, "buffers", work=0.0, until=1 - j) for j, (n, kind) in enumerate(sizes)]


def horovod(v: Values, rank: int, ranks: int) -> list[Item]:
    """Horovod: one all-reduce a fusion buffer, without the messages that agree on which tensors are ready."""
    divides("ranks", ranks, "clients", v["clients"])
    ready = gradient_bytes(v["model"].name, v["dtype"])[::-1]
    return _backward(v, buckets.fused(ready, v["threshold"]), "buffer")


def parameter_server(v: Values, rank: int, ranks: int) -> list[Item]:
    """Workers push gradients to servers, each of which holds a part of the parameters, and pull parameters back."""
    servers: int = v["servers"]
    if servers >= ranks:
        raise UsageError(f"servers {servers} leave no worker among {ranks} ranks: use -n {servers + 1} or more")
    whole = sum(gradient_bytes(v["model"].name, v["dtype"]))
    part = padded(whole, servers, v["dtype"]) // servers

    def call(label: str, sends: list[Message], receives: list[Message], work: float = 0.0) -> Call:
        return Call(EXCHANGE, 0, v["dtype"], label, sends=tuple(sends), receives=tuple(receives), work=work)

    workers = range(servers, ranks)
    if rank >= servers:
        push = [Message(server, part, 1) for server in range(servers)]
        forward, backward = passes(v["model"], rows(v))
        pull = [Message(server, part, 2, v["mode"] == ANY) for server in range(servers)]
        return [*forward, *backward, call("push", push, [], 1.0), call("pull", [], pull)]
    if v["mode"] == "sync":
        return [
            call("push", [], [Message(worker, part, 1) for worker in workers]),
            call("pull", [Message(worker, part, 2) for worker in workers], []),
        ]
    if v["mode"] == ANY:
        pushed, pulled = (tuple(Message(worker, part, tag) for worker in workers) for tag in (1, 2))
        return [Call(SERVE, 0, v["dtype"], "pull", sends=pulled, receives=pushed, work=0.0)]
    turns = [(call("push", [], [Message(w, part, 1)]), call("pull", [Message(w, part, 2)], [])) for w in workers]
    return [call for turn in turns for call in turn]


def ring(v: Values, rank: int, ranks: int) -> list[Item]:
    """A ring all-reduce of messages to the next rank: reduce-scatter, then all-gather, of one chunk a step."""
    divides("ranks", ranks, "clients", v["clients"])
    rings = grid(ranks, {"ring": v["ring"], "rings": 0}, "rings") if v["ring"] else grid(ranks, {"ring": 0}, "ring")
    n, dtype = rings.size("ring"), v["dtype"]
    after, before = rings.shifted(rank, "ring", 1, around=True), rings.shifted(rank, "ring", -1, around=True)
    chunk = padded(sum(gradient_bytes(v["model"].name, dtype)), n, dtype) // n
    if n < 2 or after is None or before is None:
        raise UsageError(f"a ring needs 2 ranks or more, not {n}: use -n 2")
    forward, backward = passes(v["model"], rows(v))
    messages = [
        Call(
            EXCHANGE,
            0,
            dtype,
            "reduce-scatter" if step < n - 1 else "all-gather",
            work=float(step == 0),
            sends=(Message(after, chunk),),
            receives=(Message(before, chunk),),
        )
        for step in range(2 * (n - 1))
    ]
    return [*forward, *backward, *messages]


def wrapped(model: Model) -> tuple[list[list[Tensor]], bool]:
    """The parameters that FSDP2 gathers together, in the order of first use, and whether the first are the root's.

    Each layer of a transformer is a unit, and the root holds the rest; other models have units alone.
    """
    units = [tensors for _, tensors in model.by_unit]
    if model.shape is None:
        return units, False
    root = [tensor for tensor in model.tensors if not tensor.unit.startswith("layer ")]
    return [root, *(tensors for name, tensors in model.by_unit if name.startswith("layer "))], True


def shard_bytes(tensors: Sequence[Tensor], n: int, dtype: str) -> int:
    """Bytes of a rank's shard: FSDP2 spreads the rows of each parameter and fills up the last ranks' with padding."""
    return sum(-(-tensor.rows // n) * tensor.columns for tensor in tensors) * DTYPES[dtype].itemsize


def fsdp(v: Values, rank: int, ranks: int) -> list[Item]:
    """ZeRO-3, FSDP2 and, with replicas, HSDP: each unit is gathered before its forward and its backward pass.

    The root stays whole between them. With prefetch the next unit is gathered while this one computes. Calls, bytes and
    order are those of a recorded step of torch 2.13 (tests/suites/workloads/test_recorded.py).
    """
    where = grid(ranks, {"shard": v["shard"], "replica": v["replica"]}, "shard")
    dtype, n, r = v["dtype"], where.size("shard"), where.size("replica")
    shard, copies = where.group(rank, "shard"), where.group(rank, "replica")
    parts, rooted = wrapped(v["model"])
    sizes = [shard_bytes(part, n, dtype) for part in parts]
    forward, backward = there_and_back([sum(tensor.elements for tensor in part) for part in parts], rows(v))
    ahead = v["prefetch"] == "on"

    def gather(unit: int, label: str, work: float, until: int) -> list[Item]:
        return [Call("allgather", sizes[unit], dtype, label, shard, work=work, until=until)] if n > 1 else []

    def reduce(unit: int) -> list[Item]:
        calls: list[Item] = []
        work = float(sizes[unit])
        if n > 1:
            calls.append(Call("reduce_scatter_block", n * sizes[unit], dtype, "reduce", shard, work=work, until=None))
        if r > 1:
            alone = 0.0 if n > 1 else work
            calls.append(Call("allreduce", sizes[unit], dtype, "replicas", copies, work=alone, until=None))
        return calls

    items: list[Item] = []
    for unit, product in enumerate(forward):
        before = float(sizes[unit - 1]) if unit else 0.0
        items += [*gather(unit, "gather forward", before, int(ahead and unit > 0)), product]
    order = list(range(len(parts)))[::-1]
    gathered = order[:-1] if rooted else order
    between = (1 if n > 1 else 0) + (1 if r > 1 else 0)  # calls that may start before the next unit is needed
    for number, (unit, product) in enumerate(zip(order, backward, strict=True)):
        after = gathered[number + 1 : number + 2]
        if number == 0:
            items += gather(unit, "gather backward", float(sizes[unit]), int(ahead and bool(after)))
        if ahead and after:
            more = len(gathered) > number + 2
            items += gather(after[0], "gather backward", 0.0, between + int(more))
        items += [product, *reduce(unit)]
        if not ahead and after:
            items += gather(after[0], "gather backward", 0.0, 0)
    return items
