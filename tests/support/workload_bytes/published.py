"""The published bytes of each family of workloads, as symbols, as numbers and with their source.

The numbers are written out from the publication, and nothing here is computed by the workloads themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """What one rank puts into the calls of one step."""

    text: str
    """The workload."""
    ranks: int
    symbols: str
    """The formula in the symbols of docs/workloads/index.md."""
    numbers: tuple[str, ...]
    """``CALLS × BYTES``, the bytes as whole numbers with ``·``, ``+``, ``-``, ``/`` and brackets."""
    source: str
    rank: int = 0

    def expected(self) -> dict[int, int]:
        """Bytes of a call -> number of such calls."""
        calls: dict[int, int] = {}
        for number in self.numbers:
            count, _, product = number.partition(" × ")
            nbytes = eval(product.replace("·", "*").replace("/", "//"), {"__builtins__": {}})
            calls[nbytes] = calls.get(nbytes, 0) + int(count)
        return calls


_RESNET = "P: He et al., arXiv 1512.03385, as torchvision 0.15 counts it"
_MEGATRON = "Shoeybi et al., arXiv 1909.08053, section 3"
_LLAMA_70B = "h, L, heads: Touvron et al., arXiv 2307.09288"
_GPT2 = "P: Radford et al. 2019, as transformers counts it"
_TORCH = "recorded: `omb-py train mlp --parallel fsdp --trace` with torch 2.13"
_DDP = "recorded: communication hook of DistributedDataParallel, torch 2.13; reducer.cpp"

PUBLISHED: Final = (
    Published(
        "ddp:model=resnet50",
        2,
        "P·e, in buckets that close when they reach 1 MiB, then 25 MiB; statistics and counters of 53 batch norms",
        ("1 × 2·26560·4", "1 × 53·8", "1 × 8196000", "1 × 31502336", "1 × 26255360", "1 × 26550272", "1 × 9724160"),
        _DDP,
    ),
    Published("ddp:model=resnet50,layout=first,cap=1G,buffers=off", 2, "P·e", ("1 × 25557032·4",), _RESNET),
    Published(
        "horovod:model=resnet50",
        2,
        "P·e, together while the sum is at most 128 MiB",
        ("1 × 25557032·4",),
        "FuseResponses in controller.cc of Horovod 0.28",
    ),
    Published(
        "parameter_server:model=resnet50,servers=2",
        4,
        "P·e/servers to each server",
        ("1 × 2·(25557032/2·4)",),
        "Li et al., OSDI 2014",
        3,
    ),
    Published(
        "parameter_server:model=resnet50,servers=2",
        4,
        "P·e/servers to each worker",
        ("1 × 2·(25557032/2·4)",),
        "Li et al., OSDI 2014",
    ),
    Published(
        "ring:model=resnet50", 4, "2·(n − 1) messages of P·e/n", ("6 × 25557032·4/4",), "Patarasu and Yuan, JPDC 2009"
    ),
    Published(
        "zero:model=resnet50,schedule=paper",
        8,
        "reduce-scatter of P·e, all-gather of P·e/n",
        ("1 × 25557032·4", "1 × 25557032·4/8"),
        "Rajbhandari et al., arXiv 1910.02054, section 7",
    ),
    Published(
        "fsdp:model=mlp",
        2,
        "all-gathers of each unit's shard forward and backward, a reduce-scatter of the unit",
        ("2 × 803840", "2 × 525312", "2 × 10260", "1 × 20520", "1 × 1050624", "1 × 1607680"),
        _TORCH,
    ),
    Published(
        "fsdp:model=mlp,shard=2,replica=2",
        4,
        "the same among shard ranks, and an all-reduce of P_u·e/shard",
        ("3 × 803840", "3 × 525312", "3 × 10260", "1 × 20520", "1 × 1050624", "1 × 1607680"),
        "Zhao et al., arXiv 2304.11277, section 3.2.2",
    ),
    Published(
        "tensor:model=llama2-70b",
        8,
        "4·L all-reduces of b·s·h·e",
        ("320 × 1·4096·8192·2",),
        f"{_MEGATRON}; {_LLAMA_70B}",
    ),
    Published(
        "tensor:model=llama2-70b,sequence=on",
        8,
        "6·L all-gathers of b·s·h·e/n (2·L of inputs again, backward), 4·L reduce-scatters of b·s·h·e",
        ("480 × 1·4096·8192·2/8", "320 × 1·4096·8192·2"),
        "Korthikanti et al., arXiv 2205.05198, section 4.2.2",
    ),
    Published(
        "tensor:model=gpt2-124m,sequence=on,head=on",
        4,
        "as above; a reduce-scatter of the embedding, all-gathers and a reduce-scatter of the head, 3 of b·s·4 of the "
        "loss, (6·L + 2)·h·4 of norms and biases",
        ("74 × 1·1024·768·2/4", "50 × 1·1024·768·2", "3 × 1024·4", "1 × 74·768·4"),
        "Korthikanti et al., arXiv 2205.05198; cross_entropy.py and finalize_model_grads.py of Megatron-LM",
    ),
    Published(
        "prefill:model=llama2-70b,head=on",
        8,
        "2·L all-reduces of b·s·h·e and one of the embedding; b·V/n·e logits, V a multiple of 128·n",
        ("161 × 1·4096·8192·2", "1 × 32768/8·2"),
        f"{_MEGATRON}; logits_processor.py of vLLM; {_LLAMA_70B}",
    ),
    Published(
        "ulysses:model=llama2-7b,seq=4096",
        8,
        "4·N·h/n elements a layer, as many backward (N = s)",
        ("256 × 4096/8·4096·2",),
        "Jacobs et al., arXiv 2309.14509, section 3.2",
    ),
    Published(
        "context:model=llama2-70b,seq=131072,layers=1,schedule=paper",
        8,
        "n − 1 blocks of 2·b·(s/n)·h_kv·e, backward twice as large",
        ("7 × 2·131072/8·1024·2", "7 × 2·2·131072/8·1024·2"),
        "Liu et al., arXiv 2310.01889, section 3",
    ),
    Published(
        "context:model=llama2-70b,seq=8192,layers=1",
        4,
        "2·(n − 1) blocks of 2·b·(s/n)·h_kv·e, n of gradients in 4 bytes",
        ("6 × 2·8192/4·1024·2", "4 × 2·8192/4·1024·4"),
        "ring_flash_attn.py of zhuzilin/ring-flash-attention",
    ),
    Published(
        "pipeline:model=gpt2-124m,micro=6",
        4,
        "b·s·h·e each way for each micro-batch",
        ("12 × 1·1024·768·2",),
        "Narayanan et al., arXiv 2104.04473, section 2.2",
        1,
    ),
    Published(
        "pipeline:model=gpt2-124m,micro=6,schedule=gpipe",
        4,
        "the same: the schedule changes the order alone",
        ("12 × 1·1024·768·2",),
        "Huang et al., arXiv 1811.06965",
        2,
    ),
    Published(
        "gems:model=gpt2-124m,micro=4",
        4,
        "of two models 2·b·s·h·e for each micro-batch, two all-reduces of P·e/p",
        ("8 × 1·1024·768·2", "2 × 124439808·2/4"),
        f"Jain et al., SC 2020; apply_allreduce_master in torchgems/comm.py of MPI4DL; {_GPT2}",
    ),
    Published(
        "three_d:model=gpt2-124m,tp=2,pp=2,dp=2,micro=4",
        8,
        "4·L/pp all-reduces and a message of b·s·h·e for each micro-batch, P·e/(tp·pp) in pieces of 25 MiB",
        ("100 × 1·1024·768·2", "2 × 25·1024·1024", "1 × 124439808·2/4 - 50·1024·1024"),
        "Narayanan et al., arXiv 2104.04473, section 3",
    ),
    Published(
        "moe:tokens=4096",
        8,
        "T·k·(H + 4·H/128) out, T·k·2·H back",
        ("1 × 4096·8·(7168 + 4·56)", "1 × 4096·8·2·7168"),
        "DeepSeek-V3, arXiv 2412.19437, sections 3.3 and 4.2; README of DeepEP",
    ),
    Published(
        "decode:model=llama2-70b",
        8,
        "2·L all-reduces of b·h·e a token",
        ("160 × 1·8192·2",),
        f"{_MEGATRON}; {_LLAMA_70B}",
    ),
    Published(
        "kv_transfer:model=llama2-70b,requests=1,prompt=1000,prefill_tp=2,decode_tp=4,pieces=page",
        6,
        "2·L·s·h_kv·e of a request, by heads: half of it from each of two ranks, a call a layer",
        ("80 × 1000·1024·2",),
        "Zhong et al., OSDI 2024; h_kv: Touvron et al., arXiv 2307.09288",
    ),
    Published(
        "serving:model=gpt2-124m,arrivals=0 3;1 1;2 2,prompt=32",
        4,
        "2·L all-reduces of b·p·h·e for prompts that begin, of a·h·e for requests that go on",
        ("72 × 32·768·2", "72 × 768·2"),
        "Yao et al., arXiv 2305.13484, section 3",
    ),
    Published(
        "together:first=allreduce/1M,second=alltoall/64K",
        4,
        "each collective's vector",
        ("1 × 1024·1024", "1 × 64·1024"),
        "-multi of the IMB User Guide 2021.8; NCCL_TESTS_SPLIT of nccl-tests",
    ),
    Published(
        "halo:layers=3,batch=2",
        4,
        "b·c·e·(k − 1)/2 times the edge to each of two neighbors",
        ("3 × 2·2·64·4·1·4096",),
        "Dryden et al., IPDPS 2019; Jain et al., SC 2020",
        1,
    ),
    Published(
        "kmeans", 4, "(K·D + K)·e, and e", ("1 × (1024·128 + 1024)·4", "1 × 4"), "Alnaasan et al., OMB-Py, IPDPSW 2022"
    ),
    Published(
        "knn",
        4,
        "Q·D·e, and k·Q·(e + 8)",
        ("1 × 1024·128·4", "1 × 10·1024·(4 + 8)"),
        "Alnaasan et al., OMB-Py, IPDPSW 2022",
    ),
    Published("pca", 4, "(D + 1)·e, and D²·e", ("1 × (512 + 1)·4", "1 × 512·512·4"), "Halko et al., SIAM Review 2011"),
    Published(
        "pca:method=tsvd",
        4,
        "D·r·e for each of i iterations",
        ("4 × 512·16·4",),
        "Halko et al., SIAM Review 2011, algorithm 4.4",
    ),
    Published(
        "matmul",
        4,
        "N²·e to all; ⌈N/n⌉·N·e out and back",
        ("1 × 512·512·4", "2 × 512/4·512·4"),
        "Alnaasan et al., OMB-Py, IPDPSW 2022",
    ),
    Published(
        "replay:trace=2*allreduce/100/float32/0;1*allgather/3/int64/0",
        4,
        "the recorded elements · e",
        ("2 × 100·4", "1 × 3·8"),
        "the trace; of torch 2.13: `tests/suites/workloads/traces/test_replay.py`",
    ),
)
