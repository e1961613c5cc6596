"""Model parallelism: tensor, sequence, context, pipeline and spatial parallel (docs/workloads/model-parallel.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.language import Message
from omb_py.errors import UsageError
from omb_py.suites.workloads import vocabulary
from omb_py.suites.workloads.calls import EXCHANGE, Call, Item, Product, check_count, padded, there_and_back
from omb_py.suites.workloads.grid import RankGrid, divides, grid, one_and_copies
from omb_py.suites.workloads.settings import Values


def activation(v: Values) -> int:
    """Bytes of the activations of a micro-batch between two layers: b·s·h·e."""
    return int(v["batch"] * tokens(v) * v["model"].shape.hidden * DTYPES[v["dtype"]].itemsize)


def tokens(v: Values) -> int:
    """Tokens of a sequence: as set, else those of the sequences that the model is trained on."""
    return int(v["seq"] or v["model"].shape.sequence)


def layers(v: Values) -> int:
    """Number of layers: as set, else the model's."""
    return int(v["layers"] or v["model"].shape.layers)


def _half_layer(v: Values, group: tuple[int, ...], n: int, label: str, product: Product, back: bool) -> list[Item]:
    """Product and calls of attention or the feed-forward part, forward or `back`.

    With sequence parallel a rank keeps its part of the input only, so the way back gathers the input once more.
    """
    whole, dtype = activation(v), v["dtype"]
    if v["sequence"] == "on":
        whole = padded(whole, n, dtype)
        gather = Call("allgather", whole // n, dtype, f"{label} gather", group)
        again = [replace(gather, label=f"{label} gather of the input")] * back
        return [gather, *again, product, Call("reduce_scatter_block", whole, dtype, f"{label} scatter", group)]
    return [product, Call("allreduce", whole, dtype, label, group)]


def _split_halves(v: Values, n: int, rows: int) -> tuple[list[Product], list[Product]]:
    """The products of each of `n` ranks in a layer, forward and backward: attention, then the feed-forward part."""
    shape = v["model"].shape
    return there_and_back([(shape.projections + shape.output) / n, shape.feed_forward / n], rows)


def _layers_of(v: Values, group: tuple[int, ...], count: int, prefix: str = "") -> tuple[list[Item], list[Item]]:
    """Forward and backward pass through `count` layers, each divided among the ranks of a group."""
    n = len(group)
    both = zip(("forward", "backward"), _split_halves(v, n, v["batch"] * tokens(v)), strict=True)
    forward, backward = (
        [
            item
            for product in products
            for item in _half_layer(v, group, n, f"{prefix}{way}", product, way == "backward")
        ]
        * count
        for way, products in both
    )
    return forward, backward


def divide_heads(v: Values, name: str, rank: int, ranks: int) -> tuple[int, ...]:
    """The ranks of a rank's group, among which the heads are divided. Raises UsageError if they cannot be."""
    where = one_and_copies(name, v[name], ranks)
    divides(f"{v['model'].name}: heads", v["model"].shape.heads, name, where.size(name))
    return where.group(rank, name)


def tensor(v: Values, rank: int, ranks: int) -> list[Item]:
    """Megatron-LM's tensor parallel: attention and feed-forward part each end in one all-reduce, in both passes.

    With ``sequence=on`` an all-gather and a reduce-scatter take its place, and the backward pass gathers each input
    again instead of having kept it (arXiv 2205.05198, section 4.2.2).
    """
    group = divide_heads(v, "tp", rank, ranks)
    n = len(group)
    forward, backward = _layers_of(v, group, layers(v) if n > 1 else 0)
    if v["head"] == "off" or n == 1:
        return forward + backward
    positions = v["batch"] * tokens(v)
    there, back = vocabulary.loss(v, group, positions, "")
    first = vocabulary.embedding(v, group, positions, "embedding")
    return [*first, *forward, *there, *back, *backward, *vocabulary.norm_gradients(v, group, layers(v), True, "")]


def prefill(v: Values, rank: int, ranks: int) -> list[Item]:
    """The forward pass of tensor parallel inference over whole prompts: half of the calls of a training step."""
    group = divide_heads(v, "tp", rank, ranks)
    if len(group) == 1:
        return []
    steps, _ = _layers_of(v, group, layers(v))
    if v["head"] == "off":
        return steps
    first = vocabulary.embedding(v, group, v["batch"] * tokens(v), "embedding")
    return [*first, *steps, *vocabulary.logits(v, group, v["batch"])]


def _count_exchanged_heads(v: Values, n: int) -> int:
    """Heads of keys and values that are exchanged: fewer than ranks are repeated until each rank has one."""
    shape = v["model"].shape
    heads = shape.kv_heads or shape.heads
    if heads < n:
        divides("sp", n, f"{v['model'].name}: heads of keys and values", heads)
        return n
    divides(f"{v['model'].name}: heads of keys and values", heads, "sp", n)
    return int(heads)


def ulysses(v: Values, rank: int, ranks: int) -> list[Item]:
    """DeepSpeed-Ulysses: all-to-alls split queries, keys and values by heads, and the result by tokens again.

    Grouped keys and values have fewer heads, so theirs are smaller.
    """
    group = divide_heads(v, "sp", rank, ranks)
    n = len(group)
    shape, dtype = v["model"].shape, v["dtype"]
    a_head = divides("tokens", tokens(v), "sp", n) * v["batch"] * shape.hidden // shape.heads * DTYPES[dtype].itemsize
    whole, grouped = (padded(a_head * heads, n, dtype) for heads in (shape.heads, _count_exchanged_heads(v, n)))
    rows = v["batch"] * tokens(v) // n
    forward, backward = there_and_back([shape.projections, shape.output + shape.feed_forward], rows)
    if whole == grouped:
        kinds = {"forward": [("forward", whole)] * 4, "backward": [("backward", whole)] * 4}
    else:
        split = [("queries", whole), ("keys and values", grouped), ("keys and values", grouped), ("result", whole)]
        kinds = {
            way: [(f"{way} {name}", nbytes) for name, nbytes in (split if way == "forward" else split[::-1])]
            for way in ("forward", "backward")
        }
    steps: list[Item] = []
    for way, (first, last) in (("forward", forward), ("backward", backward)):
        one_layer: list[Item] = [
            first,
            *(Call("alltoall", nbytes, dtype, label, group) for label, nbytes in kinds[way]),
        ]
        steps += [*one_layer, last] * (layers(v) if n > 1 else 0)
    return steps


def context(v: Values, rank: int, ranks: int) -> list[Item]:
    """Ring attention as ring-flash-attention does it: blocks of keys and values go round the ring, each its message.

    In the backward pass they go round again, and their gradients in float32 go once more: n times, back to their owner.
    With ``schedule=paper`` keys, values and gradients travel together, n − 1 times, as one message.
    """
    where = one_and_copies("cp", v["cp"], ranks)
    n = where.size("cp")
    block = divides("tokens", tokens(v), "cp", n)
    elements = 2 * v["batch"] * block * v["model"].shape.kv_hidden
    nbytes = elements * DTYPES[v["dtype"]].itemsize
    after, before = where.shifted(rank, "cp", 1, around=True), where.shifted(rank, "cp", -1, around=True)
    assert after is not None and before is not None

    def around(label: str, size: int, dtype: str, tags: tuple[int, ...], work: float = 1.0, until: int = 1) -> Call:
        ends = [tuple(Message(peer, size // len(tags), tag) for tag in tags) for peer in (after, before)]
        return Call(EXCHANGE, 0, dtype, label, sends=ends[0], receives=ends[1], until=until, work=work)

    if n < 2:
        return []
    # the blocks of a ring are computed one after the other, so each has its part of the layer
    paper = v["schedule"] == "paper"
    products = there_and_back([v["model"].shape.layer / (n - 1 if paper else n)], v["batch"] * block)
    (forward,), (backward,) = products
    keys = around("forward", nbytes, v["dtype"], (1,) if paper else (1, 2))
    if paper:
        both = around("backward", 2 * nbytes, v["dtype"], (1,))
        block_there: list[Item] = [forward, keys]
        block_back: list[Item] = [backward, both]
        return block_there * (layers(v) * (n - 1)) + block_back * (layers(v) * (n - 1))
    again = around("backward", nbytes, v["dtype"], (1, 2), 0.0)
    gradients, home = (around("gradients", 4 * elements, "float32", (3, 4), until=until) for until in (2, 0))
    there: list[Item] = [keys, forward]
    back: list[Item] = [again, backward, gradients]
    return [*there * (n - 1), forward] * layers(v) + [*back * (n - 1), backward, home] * layers(v)


def decode(v: Values, rank: int, ranks: int) -> list[Item]:
    """Tensor parallel inference: each request has two all-reduces of b·h·e a layer and token."""
    group = divide_heads(v, "tp", rank, ranks)
    check_count({"layers": layers(v), "requests": v["requests"], "tokens": v["tokens"]})
    nbytes = v["batch"] * v["model"].shape.hidden * DTYPES[v["dtype"]].itemsize
    call = Call("allreduce", nbytes, v["dtype"], "token", group, until=v["requests"] - 1)
    if len(group) == 1:
        return []
    layer: list[Item] = []
    for half in _split_halves(v, len(group), v["batch"])[0]:
        layer += [half, call] * v["requests"]
    token = layer * layers(v)
    if v["head"] == "on":
        first = vocabulary.embedding(v, group, v["batch"], "embedding") * v["requests"]
        token = [*first, *token, *vocabulary.logits(v, group, v["batch"]) * v["requests"]]
    return token * int(v["tokens"])


def _stage(v: Values, where: RankGrid, rank: int, message: int, work: Sequence[list[Item]]) -> list[Item]:
    """The calls and products of one stage of a pipeline.

    GPipe runs all forward passes first; 1F1B follows Megatron-LM's forward_backward_pipelining_without_interleaving.

    Args:
        v: settings.
        where: the grid, with a dimension ``pp``.
        rank: the rank whose stage it is.
        message: bytes of a message between stages.
        work: calls and products of a micro-batch's forward pass, and of its backward pass.
    """
    before, after = where.shifted(rank, "pp", -1), where.shifted(rank, "pp", 1)
    m, stages, at = v["micro"], where.size("pp"), where.coordinate(rank, "pp")

    def exchange(label: str, out: int | None, back: int | None, work: float = 0.0) -> list[Item]:
        sends = () if out is None else (Message(out, message, 1),)
        receives = () if back is None else (Message(back, message, 1),)
        call = Call(EXCHANGE, 0, v["dtype"], label, sends=sends, receives=receives, work=work)
        return [call] if sends or receives else []

    ahead = m if v["schedule"] == "gpipe" else min(stages - at - 1, m)
    calls: list[Item] = []
    for _ in range(ahead):
        calls += exchange("forward", None, before) + work[0] + exchange("forward", after, None, 1.0)
    steady = m - ahead
    if steady:
        calls += exchange("forward", None, before)
    for j in range(steady):
        calls += work[0] + exchange("turn", after, after, 1.0)  # the forward result out, a gradient back
        calls += work[1]
        last = j == steady - 1
        calls += exchange("turn", before, None if last else before, 2.0)
    for _ in range(ahead):
        calls += exchange("backward", None, after) + work[1] + exchange("backward", before, None, 2.0)
    return calls


def _whole_layers(v: Values, stages: int) -> tuple[list[Item], list[Item]]:
    """The products of a stage and micro-batch, forward and backward, with undivided layers."""
    forward, backward = there_and_back([v["model"].shape.layer] * (layers(v) // stages), v["batch"] * tokens(v))
    return [*forward], [*backward]


def pipeline(v: Values, rank: int, ranks: int) -> list[Item]:
    """A pipeline, GPipe or 1F1B: each micro-batch's activations go from stage to stage, their gradients back."""
    where = one_and_copies("pp", v["pp"], ranks)
    _check_stages(v, where.size("pp"))
    calls = _stage(v, where, rank, activation(v), _whole_layers(v, where.size("pp")))
    return [*calls, *_tied(v, where, rank, 1)]


def _tied(v: Values, where: RankGrid, rank: int, tp: int) -> list[Item]:
    """With ``head=on`` what first and last stage reduce of the embedding that both hold."""
    if v["head"] == "off":
        return []
    stages = where.group(rank, "pp")
    return vocabulary.tied_gradients(v, (stages[0], stages[-1]), rank, tp)


def _check_stages(v: Values, stages: int) -> None:
    if stages > layers(v):
        raise UsageError(f"{v['model'].name}: {layers(v)} layers cannot fill {stages} stages: use pp={layers(v)}")
    divides(f"{v['model'].name}: layers", layers(v), "pp", stages)


def gems(v: Values, rank: int, ranks: int) -> list[Item]:
    """GEMS: two models run in opposite directions over the same ranks, so that one fills while the other drains.

    At the end the two ranks that hold the same two stages add up the gradients of each (MPI4DL's
    apply_allreduce_master).
    """
    here = one_and_copies("pp", v["pp"], ranks)
    n, at = here.size("pp"), here.coordinate(rank, "pp")
    if n % 2:
        raise UsageError(f"gems pairs stage i with stage p - 1 - i, so it needs an even number of ranks, not {n}")
    _check_stages(v, n)
    message, products = activation(v), _whole_layers(v, n)
    calls: list[Item] = []
    for _ in range(v["micro"]):
        for forward in (1, -1):
            ends = here.shifted(rank, "pp", -forward), here.shifted(rank, "pp", forward)
            ways = (("forward", ends), ("backward", ends[::-1]))
            for (label, (source, to)), computing in zip(ways, products, strict=True):
                if source is not None:
                    calls.append(Call(EXCHANGE, 0, v["dtype"], label, receives=(Message(source, message),), work=0.0))
                calls += computing
                if to is not None:
                    calls.append(Call(EXCHANGE, 0, v["dtype"], label, sends=(Message(to, message),), work=1.0))
    stages = here.group(rank, "pp")
    twin = tuple(sorted((rank, stages[n - 1 - at])))
    part = v["model"].parameters // n * DTYPES[v["dtype"]].itemsize
    return [*calls, *[Call("allreduce", part, v["dtype"], "replicas", twin, work=0.0)] * 2]


def _add_ends(
    v: Values, group: tuple[int, ...], work: tuple[list[Item], list[Item]], first: bool, last: bool
) -> tuple[list[Item], list[Item]]:
    """A micro-batch's passes with the embedding on the first stage, and head and loss on the last one."""
    positions = v["batch"] * tokens(v)
    there, back = vocabulary.loss(v, group, positions, "tensor ") if last else ([], [])
    before = vocabulary.embedding(v, group, positions, "tensor embedding") if first else []
    return [*before, *work[0], *there], [*back, *work[1]]


def three_d(v: Values, rank: int, ranks: int) -> list[Item]:
    """Tensor, pipeline and data parallel at once; `order` says which dimension has the nearest ranks.

    With ``sequence=on`` stages exchange the part of the sequence that each rank of the tensor holds.
    """
    where = grid(ranks, {"tp": v["tp"], "pp": v["pp"], "dp": v["dp"]}, "dp", v["order"])
    tp, pp, dp = (where.size(name) for name in ("tp", "pp", "dp"))
    divides(f"{v['model'].name}: heads", v["model"].shape.heads, "tp", tp)
    _check_stages(v, pp)
    group = where.group(rank, "tp")
    work = _layers_of(v, group, layers(v) // pp, "tensor ") if tp > 1 else _whole_layers(v, pp)
    at = where.coordinate(rank, "pp")
    if v["head"] == "on" and tp > 1:
        work = _add_ends(v, group, work, at == 0, at == pp - 1)
    message = padded(activation(v), tp, v["dtype"]) // tp if v["sequence"] == "on" else activation(v)
    calls = _stage(v, where, rank, message, work)
    if v["head"] == "on" and tp > 1:
        calls += vocabulary.norm_gradients(v, group, layers(v) // pp, at == pp - 1, "tensor ")
    calls += _tied(v, where, rank, tp)
    if dp > 1:
        itemsize = DTYPES[v["dtype"]].itemsize
        part = v["model"].parameters // (tp * pp) * itemsize
        cap = max(itemsize, v["cap"] // itemsize * itemsize)
        check_count({"pieces": -(-part // cap)}, "take a larger cap")
        parts = [min(cap, part - start) for start in range(0, part, cap)]
        calls += [
            Call("allreduce", n, v["dtype"], "gradients", where.group(rank, "dp"), work=0.0, until=None) for n in parts
        ]
    return calls


_AROUND = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def halo(v: Values, rank: int, ranks: int) -> list[Item]:
    """Neighboring tiles of a large image exchange edges: before each convolution of kernel k a tile gets (k − 1)/2 rows
    or columns of each neighbor, and corners."""
    where = grid(ranks, {"columns": v["columns"], "rows": 0}, "rows")
    rows, columns = where.size("rows"), where.size("columns")
    wide = divides("pixels across", v["side"], "columns", columns)
    high = divides("pixels down", v["side"], "rows", rows)
    if v["kernel"] % 2 == 0:
        raise UsageError(f"kernel {v['kernel']} has no middle: use kernel={v['kernel'] + 1}")
    edge = (v["kernel"] - 1) // 2
    if edge > min(wide, high):
        raise UsageError(f"kernel {v['kernel']} reaches {edge} pixels, but a tile has {high} × {wide}: use fewer ranks")
    sends, receives = [], []
    for number, (dy, dx) in enumerate(_AROUND):
        column = where.shifted(rank, "columns", dx)
        peer = None if column is None else where.shifted(column, "rows", dy)
        if peer is None or not edge:
            continue
        pixels = (edge if dy else high) * (edge if dx else wide)
        nbytes = v["batch"] * pixels * v["channels"] * DTYPES[v["dtype"]].itemsize
        sends.append(Message(peer, nbytes, 1 + number))
        receives.append(Message(peer, nbytes, 1 + len(_AROUND) - 1 - number))  # the tag of the opposite direction
    exchange = Call(EXCHANGE, 0, v["dtype"], "halo", sends=tuple(sends), receives=tuple(receives))
    convolution = Product((v["channels"] * v["kernel"]) ** 2, v["batch"] * high * wide)
    layer: list[Item] = [exchange, convolution]
    return layer * v["layers"] if sends else []
