"""Every workload so small that all its bytes are checked within a moment, in one process and on real ranks."""

from __future__ import annotations

SMALL = {
    "ddp": "scale=1/64",
    "horovod": "scale=1/64,threshold=1M",
    "parameter_server": "scale=1/64,servers=2",
    "ring": "scale=1/64",
    "zero": "scale=1/64,bucket=300000",
    "fsdp": "scale=1/64,shard=2,replica=2",
    "tensor": "layers=1,scale=1/512,sequence=on,head=on",
    "ulysses": "layers=1,scale=1/512",
    "context": "layers=2,scale=1/512",
    "pipeline": "scale=1/512,head=on",
    "gems": "scale=1/4096,micro=2",
    "three_d": "tp=2,pp=2,dp=1,layers=2,micro=3,scale=1/4096,head=on",
    "moe": "tokens=4,hidden=64,experts=8,top=2,routing=drawn,node=2,limit=1,backward=on,mode=normal,micro=2",
    "prefill": "layers=1,scale=1/512,sequence=on,head=on",
    "decode": "layers=2,requests=3,head=on",
    "kv_transfer": "layers=2,prompt=20,prefill=2,decode_tp=2,requests=3,pieces=page,scale=1/64",
    "serving": "layers=1,requests=3,tokens=3,prompt=4,chunk=3,draft=1,turn=20ms,rate=40,head=on,scale=1/8",
    "together": "first=allreduce/400,second=alltoall/400",
    "halo": "columns=2,side=32,channels=2",
    "kmeans": "clusters=8,features=4",
    "knn": "queries=8,features=4",
    "pca": "features=16",
    "matmul": "side=16",
    "replay": "trace=2*allreduce/100/float32/0;1*reducescatter/40/bfloat16/4;1*allgather/3/int64/0",
}


WRITES = f"kv_transfer:{SMALL['kv_transfer']},op=write"
"""Into the memory of other ranks."""

_KEYS = "kv_transfer:layers=2,prompt=20,requests=5,scale=1/64"
SERVING = "serving:layers=1,requests=3,tokens=2,prompt=7,dtype=float32,scale=1/32"
_EXPERTS = "moe:tokens=6,hidden=128,experts=12,top=3"
FORMS = {
    "layers": _KEYS,
    "pages": f"{_KEYS},pieces=page",
    "whole": f"{_KEYS},pieces=whole",
    "turns": SERVING,
    "clock": f"{SERVING},turn=20ms,rate=40,chunk=4,draft=2,head=on",
    "apart": f"{SERVING},fused=off,slots=2",
    "normal": f"{_EXPERTS},mode=normal,dispatch=bf16",
    "drawn": f"{_EXPERTS},mode=normal,routing=drawn,micro=2,backward=on",
    "low latency": f"{_EXPERTS},mode=low_latency,micro=2",
}
WRITTEN = {f"{name}, written": f"{FORMS[name]},op=write" for name in ("layers", "pages", "whole")}
"""One-sided: over MPI and in the simulation."""
_INSTANCES = {3: "prefill_tp=2", 4: "prefill=2,decode_tp=2", 24: "prefill=6,prefill_tp=2,decode_tp=4"}
"""By ranks: instances of unequal tensor parallelism."""


def text_of(name: str, settings: str) -> str:
    """The workload with these settings, unless `name` is a whole one."""
    return f"{name}:{settings}" if settings else name


def instances_of(form: str, ranks: int) -> str:
    """The workload of a form, with instances for so many ranks."""
    instances = _INSTANCES.get(ranks) if form.startswith("kv_transfer") else None
    return f"{form},{instances}" if instances else form
