"""The families of workloads, and the workload that a text describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key
from omb_py.suites.workloads import (
    classic,
    concurrent,
    data_parallel,
    experts,
    kv_transfer,
    model_parallel,
    serving,
    zero,
)
from omb_py.suites.workloads import settings as s
from omb_py.suites.workloads.buckets import DDP_CAP_BYTES, HOROVOD_BYTES
from omb_py.suites.workloads.calls import Call, Item, check_count, join_items, scale_call, slow_call
from omb_py.suites.workloads.settings import Values
from omb_py.suites.workloads.traces import replay

Make = Callable[[Values, int, int], Sequence[Item]]
"""(settings, rank, ranks) -> the calls of that rank in a step and the products between them, in order.

Raises UsageError."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of workload."""

    name: str
    summary: str
    make: Make = field(compare=False)
    formula: str
    """Calls and sizes, in the symbols of docs/workloads."""
    source: str
    settings: Mapping[str, Key] = field(compare=False)
    flop: str = ""
    """Floating point operations of ``compute=matmul``, a rank and step; empty: unknown."""
    labels: tuple[str, ...] = ()
    """The labels in the order of the table, if ranks make different calls; empty: all make calls of equal sizes."""
    latencies: Callable[[Values, int, Sequence[float]], dict[str, float]] | None = field(default=None, compare=False)
    """(settings, ranks, µs of each call) -> what requests wait for communication, in µs."""

    @property
    def keys(self) -> dict[str, Key]:
        """Its settings, then those of every family."""
        return {**self.settings, **s.COMMON}


FLOP_SOURCE: Final = "Kaplan et al. 2020 (arXiv 2001.08361), section 2.1: 2·P·T forward, 4·P·T backward"
_P = "P parameters, e bytes an element, n ranks"
_DDP_SOURCE = "torch/csrc/distributed/c10d/reducer.hpp and reducer.cpp; docs/source/notes/ddp.rst of PyTorch"
_LAYERS = s.whole(0, "layers; 0: the model's", 0)
_BATCH = s.whole(1, "sequences of a micro-batch")
_SEQ = s.whole(0, "tokens of a sequence; 0: as the model is trained", 0)
_SEQUENCE = s.word("off", "sequence parallel: an all-gather and a reduce-scatter for each all-reduce", "off", "on")
_HEAD = s.word("off", "embedding, head and loss or logits, divided by vocabulary, as well", "off", "on")
_ATTENTION = {
    "model": s.attention_model("gpt2-124m"),
    "dtype": s.dtype("bfloat16"),
    "batch": _BATCH,
    "seq": _SEQ,
    "layers": _LAYERS,
}
_TOKENS = s.whole(
    0,
    "T of compute=matmul, tokens (mlp, resnet50: samples) of a rank and step; 0: a 32nd of the "
    "sequence that the model is trained on, or 32",
    0,
)
_POINTS = s.whole(1024, "points of a rank, of compute=matmul")
_CLIENTS = s.whole(1, "ranks that share a device and its T (AccDP)")
_MODEL = {"model": s.any_model("mlp"), "dtype": s.dtype("float32"), "tokens": _TOKENS}
_TRAINING = "2·P·T forward, then 4·P·T backward"
_LAYER = "P_l parameters of a layer's matrices"
_DIVIDED = f"2·P_l/n·b·s a layer forward, 4·P_l/n·b·s backward ({_LAYER})"
_PIPELINE = {**_ATTENTION, "micro": s.whole(4, "micro-batches of a step")}
_SCHEDULE = s.word("1f1b", "order of the passes", "1f1b", "gpipe")

_ALL = (
    Family(
        "ddp",
        "data parallel: PyTorch's DistributedDataParallel, an all-reduce for each bucket of gradients",
        data_parallel.ddp,
        f"all-reduces of P·e in all ({_P}); a bucket closes when it reaches first (1 MiB) or cap (25 MiB); before them "
        "broadcasts of batch norms' statistics and counters; layout=unused: an all-reduce of 4 bytes a tensor more",
        _DDP_SOURCE,
        {
            **_MODEL,
            "clients": _CLIENTS,
            "layout": s.word(
                "rebuilt",
                "of all iterations but the first, of the first, or with find_unused_parameters",
                "rebuilt",
                "first",
                "unused",
            ),
            "first": s.size("0", "limit of the first bucket that is filled; 0: 1 MiB, with a cap of yours that one"),
            "cap": s.size(str(DDP_CAP_BYTES), "limit of the other buckets (bucket_cap_mb)"),
            "buffers": s.word("on", "broadcast of batch norms' statistics (broadcast_buffers)", "on", "off"),
        },
        _TRAINING,
    ),
    Family(
        "horovod",
        "data parallel: Horovod, an all-reduce for each fusion buffer",
        data_parallel.horovod,
        f"all-reduces of P·e in all ({_P}); tensors share a buffer up to the threshold",
        "horovod/common/controller.cc (FuseResponses), docs/tensor-fusion.rst of Horovod",
        {**_MODEL, "clients": _CLIENTS, "threshold": s.size(str(HOROVOD_BYTES), "HOROVOD_FUSION_THRESHOLD")},
        _TRAINING,
    ),
    Family(
        "parameter_server",
        "data parallel: workers push gradients to servers and pull parameters",
        data_parallel.parameter_server,
        f"each worker sends P·e / servers to each server and gets as much back ({_P})",
        "Li et al., OSDI 2014",
        {
            **_MODEL,
            "servers": s.whole(1, "ranks that hold parameters, the first ones"),
            "mode": s.word(
                "sync",
                "servers answer when all have pushed (sync), each in the order of the ranks (async), or whoever comes "
                "first, by MPI_ANY_SOURCE (any)",
                "sync",
                "async",
                data_parallel.ANY,
            ),
        },
        f"{_TRAINING}, of workers",
        ("push", "pull"),
    ),
    Family(
        "ring",
        "data parallel: a ring all-reduce made of messages",
        data_parallel.ring,
        f"2·(n − 1) messages of P·e/n a rank ({_P})",
        "Patarasu and Yuan, JPDC 2009",
        {**_MODEL, "clients": _CLIENTS, "ring": s.whole(0, "ranks of a ring; 0: all", 0)},
        _TRAINING,
        ("reduce-scatter", "all-gather"),
    ),
    Family(
        "zero",
        "ZeRO stages 1 to 3 as DeepSpeed does them, or as published",
        zero.zero,
        f"stages 1, 2: all-reduces of P·e in buckets, of a scalar, all-gather of P·e ({_P}), on a ring 3·P·e·(n−1)/n a "
        "rank; stage 3: each parameter gathered once, large ones together, reduce-scatter of P·e; schedule=paper: "
        "reduce-scatter of P·e in buckets, then all-gather, on a ring 2·P·e·(n−1)/n",
        "steps of DeepSpeed 0.19.8, recorded; paper: arXiv 1910.02054",
        {
            **_MODEL,
            "stage": s.whole(2, "1: reduced after the backward pass, 2: within it, 3: parameters divided as well"),
            "schedule": s.word("deepspeed", "as DeepSpeed 0.19 with its defaults, or as the paper", *zero.SCHEDULES),
            "bucket": s.whole(zero.BUCKET_ELEMENTS, "elements of a bucket (reduce_bucket_size)"),
            "persistent": s.whole(
                zero.PERSISTENT_ELEMENTS,
                "of stage 3: parameters of so many elements at most are gathered after the update",
                0,
            ),
        },
        _TRAINING,
    ),
    Family(
        "fsdp",
        "ZeRO-3, FSDP and HSDP: each layer's parameters gathered twice, its gradients reduce-scattered",
        data_parallel.fsdp,
        "a unit of P_u parameters: all-gather of P_u·e forward and backward, reduce-scatter of "
        "P_u·e, the rows of each parameter filled up to a multiple of shard; a transformer's root (embedding, "
        "norm, head) is gathered once; on a ring 3·P·e·(n−1)/n a rank; with replicas an all-reduce of P_u·e/shard",
        "arXiv 2304.11277 (FSDP), 1910.02054 (ZeRO-3); a step of torch 2.13's fully_shard, recorded",
        {
            **_MODEL,
            "shard": s.whole(0, "ranks over which parameters are spread; 0: what replicas leave", 0),
            "replica": s.whole(1, "copies of the model (HSDP)"),
            "prefetch": s.word("on", "gather the next layer beside the computing of this one", "on", "off"),
        },
        _TRAINING,
    ),
    Family(
        "tensor",
        "tensor parallel as Megatron-LM, also with sequence parallel",
        model_parallel.tensor,
        "2 all-reduces of b·s·h·e forward and 2 backward a layer; with sequence=on all-gather and "
        "reduce-scatter for each, and 2 all-gathers more backward; with head=on an all-reduce of the embedding, one of "
        "the head backward and three of b·s·4 of the loss, and with sequence=on one of the norms' gradients",
        "arXiv 1909.08053, 2205.05198; cross_entropy.py of Megatron-LM",
        {**_ATTENTION, "tp": s.whole(0, "ranks of a model; 0: all", 0), "sequence": _SEQUENCE, "head": _HEAD},
        _DIVIDED,
    ),
    Family(
        "prefill",
        "tensor parallel inference: the forward pass over whole prompts",
        model_parallel.prefill,
        "2 all-reduces of b·s·h·e a layer; with sequence=on all-gather and reduce-scatter for each; with head=on an "
        "all-reduce of the embedding, and an all-gather of b·V/n·e logits",
        "arXiv 1909.08053, 2205.05198; logits_processor.py of vLLM",
        {**_ATTENTION, "tp": s.whole(0, "ranks of a model; 0: all", 0), "sequence": _SEQUENCE, "head": _HEAD},
        f"2·P_l/n·b·s a layer ({_LAYER})",
    ),
    Family(
        "ulysses",
        "sequence parallel by all-to-all (DeepSpeed-Ulysses)",
        model_parallel.ulysses,
        "4 all-to-alls of b·(s/n)·h·e a layer, as many backward; of grouped keys and values b·(s/n)·h_kv·e, repeated "
        "until each rank has a head",
        "arXiv 2309.14509; repeated heads as NVlabs/VILA's sequence_parallel, after arXiv 2405.07719",
        {**_ATTENTION, "sp": s.whole(0, "ranks of a sequence; 0: all", 0)},
        _DIVIDED,
    ),
    Family(
        "context",
        "context parallel: ring attention",
        model_parallel.context,
        "n − 1 times a message of keys and one of values, b·(s/n)·h_kv·e each, a layer; backward as many again, and n "
        "times two of gradients, b·(s/n)·h_kv·4; schedule=paper: n − 1 of both together, backward with their gradients",
        "arXiv 2310.01889; ring_flash_attn.py of zhuzilin/ring-flash-attention",
        {
            **_ATTENTION,
            "cp": s.whole(0, "ranks of a sequence; 0: all", 0),
            "schedule": s.word("flash", "as ring-flash-attention, or as the formula of the paper", "flash", "paper"),
        },
        _DIVIDED,
    ),
    Family(
        "pipeline",
        "pipeline parallel, 1F1B or GPipe",
        model_parallel.pipeline,
        "a message of b·s·h·e each way for each micro-batch and boundary; with head=on an all-reduce of V·h·e between "
        "first and last stage where the embedding is the head, too",
        "arXiv 2104.04473, 1811.06965",
        {**_PIPELINE, "pp": s.whole(0, "stages; 0: all ranks", 0), "schedule": _SCHEDULE, "head": _HEAD},
        f"2·P_l·b·s forward, 4·P_l·b·s backward, for each layer of a stage and micro-batch ({_LAYER})",
        ("forward", "turn", "backward", "tied embedding"),
    ),
    Family(
        "gems",
        "bidirectional pipeline: two models in opposite directions (GEMS)",
        model_parallel.gems,
        "two pipelines' messages of b·s·h·e, then two all-reduces of P·e/p between ranks i and p − 1 − i",
        "Jain et al., SC 2020 (GEMS); torchgems/comm.py of MPI4DL",
        {**_PIPELINE, "pp": s.whole(0, "stages, an even number; 0: all ranks", 0)},
        f"2·P_l·b·s forward, 4·P_l·b·s backward, for each layer of both stages and micro-batch ({_LAYER})",
        ("forward", "backward", "replicas"),
    ),
    Family(
        "three_d",
        "tensor, pipeline and data parallel at once",
        model_parallel.three_d,
        "tensor's calls for the layers of a stage and each micro-batch, pipeline's messages, then all-reduces of "
        "P·e/(tp·pp) in pieces; head=on as in tensor and pipeline",
        "arXiv 2104.04473",
        {
            **_PIPELINE,
            "tp": s.whole(1, "ranks of a tensor"),
            "pp": s.whole(1, "stages"),
            "dp": s.whole(0, "replicas; 0: what the others leave", 0),
            "schedule": _SCHEDULE,
            "sequence": _SEQUENCE,
            "head": _HEAD,
            "order": s.order("tp-dp-pp", "dimensions, the one with the nearest ranks first"),
            "cap": s.size(str(DDP_CAP_BYTES), "piece of the gradients"),
        },
        f"2·P_l/tp·b·s forward, 4·P_l/tp·b·s backward, for each layer of a stage and micro-batch ({_LAYER})",
        (
            "forward",
            "turn",
            "backward",
            "tensor forward",
            "tensor backward",
            "tensor forward gather",
            "tensor forward scatter",
            "tensor backward gather",
            "tensor backward scatter",
            *(f"tensor embedding{way}" for way in ("", " scatter")),
            *(f"tensor head{way}" for way in ("", " gather", " scatter")),
            "tensor loss",
            "tensor norms",
            "tied embedding",
            "gradients",
        ),
    ),
    Family(
        "moe",
        "expert parallel: dispatch and combine",
        experts.moe,
        "T·k·(H + 4·⌈H/128⌉) bytes to the experts' ranks, T·k·2·H back, a layer; with node= a copy a node first, then "
        "one a rank; backward as much again; mode=normal: of a token 4 + 12·k more out, 4 + 4·k back, 4·(1 + E/n) of "
        "counts to each rank; mode=low_latency: 16 more out, 4·E/n of counts",
        "DeepSeek-V3 (arXiv 2412.19437, sections 2.1.2, 3.2.2, 3.3.3); README and csrc/kernels of DeepEP",
        {
            "ep": s.whole(0, "ranks that share the experts; 0: all", 0),
            "tokens": s.whole(128, "T, tokens of a rank: 4096 in training, 128 in decoding"),
            "top": s.whole(8, "k, experts of a token"),
            "experts": s.whole(256, "experts in all", most=s.MOST_EXPERTS),
            "hidden": s.whole(7168, "H"),
            "inner": s.whole(2048, "width of an expert, of compute=matmul"),
            "layers": s.whole(1, "layers with experts"),
            "traffic": Key(
                experts.read_traffic,
                "balanced",
                "who sends to whom: balanced, zipf, hot, or @FILE with a row of copies of tokens for each rank",
                normalize=experts.inline_file,
            ),
            "skew": s.number(0, "zipf's exponent (1), or the share of the hot expert (0.5)"),
            "copies": s.word(
                "experts", "a copy for each expert, or one for each rank that has one", "experts", "ranks"
            ),
            "routing": s.word(
                "even", "copies as they are on average, or counted of tokens whose experts are drawn", "even", "drawn"
            ),
            "seed": s.whole(1, "of what is drawn", 0),
            "node": s.whole(0, "ranks of a node: a copy for each node, which hands it on within; 0: one level", 0),
            "limit": s.whole(0, "nodes of a token at most (DeepSeek-V3: 4); 0: any number", 0),
            "backward": s.word("off", "the backward pass as well", "off", "on"),
            "dispatch": s.word("fp8", "elements of dispatched tokens", "fp8", "bf16"),
            "mode": s.word(
                "plain",
                "tokens alone, or also counts, indices and weights as DeepEP's normal kernels (a copy a rank), or "
                "counts and headers as its low-latency ones (a copy an expert)",
                "plain",
                "normal",
                "low_latency",
            ),
            "micro": s.whole(1, "micro-batches that overlap"),
        },
        "2·3·H·inner for each copy of a token that comes, a layer; twice as many backward",
        (
            "counts",
            *(
                f"{way}{call}{where}"
                for way in ("", "gradients ")
                for call in ("dispatch", "combine")
                for where in ("", " between nodes", " within the node")
            ),
        ),
    ),
    Family(
        "decode",
        "tensor parallel inference: small all-reduces for each token",
        model_parallel.decode,
        "2 all-reduces of b·h·e a layer and token; with head=on one of the embedding, and an all-gather of b·V/n·e "
        "logits",
        "arXiv 1909.08053; logits_processor.py of vLLM",
        {
            "model": s.attention_model("gpt2-124m"),
            "dtype": s.dtype("bfloat16"),
            "batch": s.whole(1, "sequences of a request"),
            "layers": _LAYERS,
            "tp": s.whole(0, "ranks of a model; 0: all", 0),
            "tokens": s.whole(1, "tokens of a step"),
            "requests": s.whole(1, "requests at once"),
            "head": _HEAD,
        },
        f"2·P_l/n·b a layer and token ({_LAYER})",
    ),
    Family(
        "kv_transfer",
        "disaggregated inference: keys and values go from prefill to decode instances",
        kv_transfer.kv_transfer,
        "2·L·s·h_kv·e of a request in all, by heads from each rank of its prefill instance to those of its decode "
        "instance: keys and values of a layer apart, of each page, or everything at once; op=write: a notification of "
        "8 bytes more for each pair of ranks",
        "Zhong et al., OSDI 2024 (DistServe); Patel et al., ISCA 2024 (Splitwise); NIXL's and vLLM's blocks",
        {
            "model": s.attention_model("llama2-7b"),
            "dtype": s.dtype("bfloat16"),
            "layers": _LAYERS,
            "prompt": s.whole(1024, "s, tokens of a request"),
            "requests": s.whole(4, "requests of a step; instances take turns"),
            "prefill": s.whole(1, "instances that read prompts, the first ranks"),
            "decode": s.whole(0, "instances that generate; 0: what the others leave", 0),
            "prefill_tp": s.whole(1, "ranks of an instance that reads prompts"),
            "decode_tp": s.whole(1, "ranks of an instance that generates"),
            "pieces": s.word(
                "layer", "what a message holds: of a layer, of a page of a layer, or all", *kv_transfer.PIECES
            ),
            "page": s.whole(16, "tokens of a page (vLLM's block)"),
            "op": s.word(
                "send", "messages, or one-sided writes, flushed, then a notification (NIXL's WRITE)", *kv_transfer.OPS
            ),
        },
        f"2·P_l/prefill_tp·s for each layer and request, of those that send ({_LAYER})",
        ("send", "receive", "write", "notify", "arrive"),
    ),
    Family(
        "serving",
        "tensor parallel inference with continuous batching: a turn's tokens of all requests in one call (Flover)",
        serving.serving,
        "2 all-reduces a layer and turn: of b·p·h·e for b prompts of p tokens that begin, of a·h·e for a requests that "
        "go on; fused=off: of p·h·e and h·e for each request; chunk=c: one of (c + a)·h·e; draft=k: (k + 1)·a in "
        "place of a, and (1 - α^(k+1))/(1 - α) tokens a turn; head=on as in decode",
        "Yao et al., arXiv 2305.13484 (Flover); chunk: arXiv 2403.02310 (Sarathi-Serve); draft: arXiv 2211.17192",
        {
            "model": s.attention_model("gpt2-124m"),
            "dtype": s.dtype("bfloat16"),
            "layers": _LAYERS,
            "tp": s.whole(0, "ranks of a model; 0: all", 0),
            "arrivals": Key(
                serving.read_arrivals,
                serving.POISSON,
                "when requests come, in turns or with turn= in seconds: poisson, or @FILE with a line WHEN TOKENS each",
                normalize=serving.inline_file,
            ),
            "requests": s.whole(4, "requests, of poisson"),
            "rate": s.number(0.5, "requests a turn, or with turn= a second, on average, of poisson", 1e-6),
            "tokens": s.whole(8, "tokens that each gets, of poisson"),
            "seed": s.whole(1, "of what is drawn", 0),
            "prompt": s.whole(32, "p, tokens of a request when it begins"),
            "slots": s.whole(16, "requests at once; others wait until one has all its tokens"),
            "fused": s.word("on", "one call for all requests of a turn, or one for each", "on", "off"),
            "turn": s.duration("how long a turn takes, as 20ms: arrivals are seconds; 0: they are turns"),
            "chunk": s.whole(0, "positions of prompts that a turn reads beside its tokens; 0: whole prompts", 0),
            "draft": s.whole(0, "k, drafted tokens that a turn checks of each request", 0),
            "accepted": s.number(0.8, "α, chance that a drafted token is accepted"),
            "head": _HEAD,
        },
        f"2·P_l/n for each token and prompt position of a layer ({_LAYER})",
        latencies=serving.latencies,
    ),
    Family(
        "together",
        "two collectives at once, each on a communicator of its own",
        concurrent.call_together,
        "the bytes of each, as a rank puts them in",
        "NCCL_TESTS_SPLIT of nccl-tests; -multi of the IMB User Guide",
        {
            "first": Key(concurrent.read_collective, "allreduce/1M", "OP/SIZE, as allreduce/1M"),
            "second": Key(concurrent.read_collective, "alltoall/1M", "OP/SIZE; none: the first alone"),
            "ranks": s.word("all", "every rank calls both, or each half of the ranks its own", "all", "halves"),
            "repeat": s.whole(1, "calls of each in a step"),
            "dtype": s.dtype("float32"),
        },
        labels=("first", "second"),
    ),
    Family(
        "halo",
        "spatial parallel: edges of tiles of a large image, in rows (1-D) or in rows and columns (2-D)",
        model_parallel.halo,
        "b·c·e·(k−1)/2 times the length of an edge to each neighbor, before each convolution",
        "Jain et al., SC 2020 (GEMS); Dryden et al., IPDPS 2019",
        {
            "columns": s.whole(1, "tiles across"),
            "side": s.whole(4096, "pixels of the image's side"),
            "channels": s.whole(64, "c"),
            "kernel": s.whole(3, "k, odd"),
            "batch": s.whole(1, "b"),
            "layers": s.whole(4, "convolutions of a step"),
            "dtype": s.dtype("float32"),
        },
        "2·(c·k)²·b for each pixel of a tile, a convolution",
        ("halo",),
    ),
    Family(
        "kmeans",
        "K-means: centres and inertia of an iteration",
        classic.kmeans,
        "an all-reduce of (K·D + K)·e and one of e",
        "OMB-Py, IPDPSW 2022",
        {
            "clusters": s.whole(1024, "K"),
            "features": s.whole(128, "D"),
            "points": _POINTS,
            "dtype": s.dtype("float32"),
            "iterations": s.whole(1, "iterations of a step"),
        },
        "2·K·D·points an iteration",
    ),
    Family(
        "knn",
        "nearest neighbors: queries out, candidates back",
        classic.knn,
        "a broadcast of Q·D·e and a gather of k·Q·(e + 8)",
        "OMB-Py, IPDPSW 2022",
        {
            "queries": s.whole(1024, "Q"),
            "features": s.whole(128, "D"),
            "k": s.whole(10, "neighbors"),
            "points": _POINTS,
            "dtype": s.dtype("float32"),
        },
        "2·Q·D·points",
    ),
    Family(
        "pca",
        "principal components or a truncated SVD",
        classic.pca,
        "all-reduces of (D + 1)·e and D²·e; tsvd: one of D·r·e an iteration",
        "Halko et al., SIAM Review 2011",
        {
            "method": s.word("pca", "of what", "pca", "tsvd"),
            "features": s.whole(512, "D"),
            "components": s.whole(16, "r"),
            "iterations": s.whole(4, "power iterations"),
            "points": _POINTS,
            "dtype": s.dtype("float32"),
        },
        "2·D²·points; tsvd: 4·D·r·points an iteration",
    ),
    Family(
        "matmul",
        "a matrix product: one matrix broadcast, the other scattered, the product gathered",
        classic.matmul,
        "a broadcast of N²·e, blocks of ⌈N/n⌉·N·e out and back",
        "OMB-Py, IPDPSW 2022",
        {"side": s.whole(512, "N"), "dtype": s.dtype("float32")},
        "2·⌈N/n⌉·N²",
    ),
    Family(
        "replay",
        "a recorded step: the collectives of a Kineto, execution, Chakra or param basic trace",
        replay.replay,
        "the recorded calls with the recorded bytes",
        "the trace",
        {
            "trace": Key(
                replay.read_calls,
                "1*allreduce/1024/float32/0",
                "@FILE, a trace of one rank",
                normalize=replay.inline_file,
            ),
            "wait": s.word(
                "end", "end: calls may overlap the rest of the step; now: each is waited for at once", "end", "now"
            ),
            "unknown": s.word("refuse", "calls that cannot be replayed", "refuse", "skip"),
        },
    ),
)
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({family.name: family for family in _ALL})


@dataclass(frozen=True, slots=True)
class Workload:
    """A family with its settings."""

    family: Family
    text: str
    """``NAME`` or ``NAME:KEY=VALUE,…`` in a canonical form that names no file."""
    values: Mapping[str, Any] = field(compare=False)

    def calls(self, rank: int, ranks: int) -> tuple[Call, ...]:
        """The calls of a rank in a step, in order. Raises UsageError if ranks and settings do not fit."""
        return _calls(self, rank, ranks)

    def slowness(self, rank: int) -> float:
        """How many times as long a rank computes as ``compute`` says."""
        slow = self.values["slow"]
        return 1.0 if slow is None else float(slow.of(rank))

    @property
    def from_anyone(self) -> bool:
        """Whether a rank receives from whoever comes first."""
        return bool(self.values.get("mode") == data_parallel.ANY)

    @property
    def one_sided(self) -> bool:
        """Whether ranks write into each other's memory."""
        return bool(self.values.get("op") == kv_transfer.BY_WRITING)

    def labels(self, rank: int, ranks: int) -> Mapping[tuple[str, int], str]:
        """(label, size) -> the row of the table of calls; all ranks have the same rows in the same order."""
        calls = Counter((call.label, call.size) for call in self.calls(rank, ranks))
        if not self.family.labels:
            return {(label, size): f"{label}, {count} × {size} B" for (label, size), count in calls.items()}
        rows = {(label, 0): label for label in self.family.labels}
        return {**rows, **{(label, size): label for label, size in calls}}


_REPEATED: Final = ("layers", "micro", "requests", "repeat", "iterations")
"""Settings by which calls and products are multiplied, in every family that has them; others are checked there."""


@lru_cache(maxsize=4096)
def _calls(workload: Workload, rank: int, ranks: int) -> tuple[Call, ...]:
    family, values = workload.family, workload.values
    try:
        check_count({key: values[key] or values["model"].shape.layers for key in _REPEATED if key in values})
        calls = join_items(family.make(values, rank, ranks))
    except UsageError as error:
        raise UsageError(f"workload {family.name}: {error}") from None
    slow = values["slow"]
    if slow and slow.rank >= ranks:
        raise UsageError(f"workload {family.name}: slow={slow.rank}:… of {ranks} ranks: the last one is {ranks - 1}")
    factor = workload.slowness(rank)
    return tuple(slow_call(scale_call(call, values["scale"], ranks), factor) for call in calls)


_OF_WORK: Final = ("model", "dtype", "batch", "seq", "layers", "tokens", *s.COMMON)
"""Settings that say what is to be done. The others say how it is spread over ranks and calls."""


def same_work(base: str, new: str) -> str:
    """What two workloads do, if they do the same in other ways.

    Raises:
        UsageError: they do other work, or each computes as long as its own calls take.
    """
    workloads = [parse_workload(text) for text in (base, new)]
    first, second = (workload.values for workload in workloads)
    sides = " and ".join(workload.text for workload in workloads)
    wrong = next((key for key in _OF_WORK if key in first and key in second and first[key] != second[key]), None)
    wrong = wrong or ("" if "model" in first and "model" in second else "model")
    if wrong:
        raise UsageError(f"{sides} are other work and can never be compared: give both the same {wrong}=…")
    if first["compute"] is None:
        raise UsageError(
            f"each of {sides} would compute as long as its own calls take (compute=auto), and such steps can never be "
            "compared: give both the same computing, as compute=5ms"
        )
    given = [dict.fromkeys(workload.text.partition(":")[2].split(",")) for workload in workloads]
    return ",".join(text for text in given[0] if text in given[1])


@lru_cache(maxsize=256)
def parse_workload(text: str) -> Workload:
    """A workload from ``NAME`` or ``NAME:KEY=VALUE,…``.

    Raises:
        UsageError: an unknown name, key or value, with the nearest; a file that cannot be read.
    """
    name, _, rest = text.strip().partition(":")
    if name not in FAMILIES:
        raise UsageError(f"unknown workload {name!r}: {nearest(name, FAMILIES)}")
    family = FAMILIES[name]
    grammar = s.grammar(name, family.keys)
    texts = grammar.texts(rest)
    values = grammar.values(texts)
    if values["compute"] and values["compute"].products and not family.flop:
        raise UsageError(f"workload {name}: nothing says how much is multiplied between its calls: use compute=5ms")
    settings = ",".join(f"{key}={texts[key][0]}" for key in family.keys if key in texts)
    return Workload(family, f"{name}:{settings}" if settings else name, values)
