"""The text of every benchmark from seeded simulated ranks, their rows, and their options."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.golden.running import Place

_COLLECTIVES = (
    "barrier bcast reduce allreduce reduce_scatter reduce_scatter_block gather gatherv scatter scatterv allgather "
    "allgatherv alltoall alltoallv alltoallw"
)
_NEIGHBORS = "neighbor_allgather neighbor_allgatherv neighbor_alltoall neighbor_alltoallv neighbor_alltoallw"
_MESSAGES = (
    "latency bw bibw latency_mt latency_mp multi_lat mbw_mr latency_persistent bw_persistent bibw_persistent "
    "partitioned_latency bw_fan_in bw_fan_out"
)
_ONE_SIDED = (
    "put_latency get_latency put_bw get_bw put_bibw acc_latency get_acc_latency cas_latency fop_latency "
    "rput_latency rget_latency"
)
_IMB = (
    "pingping pingping_any_source pingpong_any_source exchange sendrecv_call sendrecv_replace uniband biband "
    "reduce_local unirandom birandom corandom bidir_put bidir_get one_put_all one_get_all put_all_local get_all_local "
    "all_put_all all_get_all exchange_put exchange_get passive_put pingpong_mt pingping_mt sendrecv_mt exchange_mt "
    "uniband_mt biband_mt barrier_mt bcast_mt reduce_mt allreduce_mt"
)
FAMILIES = {
    "pt2pt": _MESSAGES.split(),
    "collective": [*_COLLECTIVES.split(), "sendrecv", "hypercube"],
    "non-blocking": [f"i{name}" for name in _COLLECTIVES.split()],
    "persistent": [f"{name}_persistent" for name in _COLLECTIVES.split()],
    "neighborhood": [*_NEIGHBORS.split(), *(f"i{name}" for name in _NEIGHBORS.split())],
    "one-sided": _ONE_SIDED.split(),
    "imb": _IMB.split(),
    "others": ["init", "hello", "comm_dup", "comm_split", "comm_create", "comm_shrink", "comm_grow", "noise", "step"],
}
ALL = [name for names in FAMILIES.values() for name in names]
MOCK = "--backend mock --mock noise=0.05 --seed 7"
SIZES = "-m 8,1K,16K"
COUNTS = "-i 4 -x 1"
UNSIZED = {"cas_latency", "fop_latency", *FAMILIES["others"], *(n for n in ALL if "barrier" in n)}
"""Those that take no -m: that they refuse it is in their file too."""
LEFT_OUT = {"run_id", "launch_id", "started_at", "environment_key", "samples_us", "samples_avg_us"}
"""Columns of a row that vary, or that the other columns sum up."""


def text(name: str) -> Callable[[Place], str]:
    """Two ranks, four, and four on two nodes with all bytes checked; what a benchmark refuses is kept as well."""
    sizes = [SIZES, ""] if name in UNSIZED else [SIZES]
    lines = [f"{name} -n 2 {one} {COUNTS} {MOCK} --no-store" for one in sizes]
    rest = f"{sizes[-1]} {COUNTS} --no-store"
    lines += [
        f"{name} -n 4 {rest} {MOCK} -f -z50,99",
        f"{name} -n 4 {rest} --backend mock --mock noise=0.05,nodes=2 --seed 8 -c",
    ]
    return lambda place: place.shown(*(" ".join(line.split()) for line in lines))


def rows(names: list[str]) -> Callable[[Place], str]:
    """The row of each benchmark: every column that is not null."""

    def made(place: Place) -> str:
        parts = []
        for name in names:
            size = "" if name in UNSIZED else "-m 64:64"
            ranks = 4 if name in {"bw_fan_in", "bw_fan_out"} else 2
            mock = "noise=0.05,nodes=2" if ranks == 4 else "noise=0.05"
            line = f"{name} -n {ranks} {size} -i 3 -x 1 --backend mock --mock {mock} --seed 9 --no-store --format json"
            parts += [f"== {name}", *(_columns(place, row) for row in json.loads(place.run(line).out))]
        return "\n".join(parts) + "\n"

    return made


def _columns(place: Place, row: dict[str, object]) -> str:
    kept = {key: value for key, value in row.items() if value is not None and key not in LEFT_OUT}
    return place.normal("\n".join(f"{key}: {json.dumps(value)}" for key, value in kept.items()))


FORMS = ("osu", "table", "csv", "json", "nccl-tests", "imb")


def form(name: str) -> Callable[[Place], str]:
    """One form of output, of three benchmarks."""
    lines = (
        f"{one} -m 8,4K {COUNTS} {MOCK} --no-store --tag why=golden --format {name}"
        for one in ("latency -n 2", "allreduce -n 4 -T float32 -c", "ibcast -n 4 -f")
    )
    return lambda place: place.shown(*lines)


_OPTIONS = {
    "messages": (
        "bw -n 2 -V", "bw -n 2 -R 1 -W 8", "mbw_mr -n 4 -V", "mbw_mr -n 4 -R 0", "bibw -n 2 -b single",
        "latency -n 2 -D cont", "latency -n 2 -D vect -c", "bw -n 2 -D vect:4:2 -c", "latency -n 2 -b multiple",
        "latency_mt -n 2 -t 2:3", "latency_mp -n 2 -t 2:2", "partitioned_latency -n 2 -q 4 -t 10",
        "latency -n 2 -T all", "latency -n 2 -T float16,complex128 -c", "latency -n 2 -z -x 0",
        "latency -n 2 -z1,50,100",
        "latency -n 2 --launches 2", "latency -n 2 --buffer bytearray", "latency -n 2 --cache rotate",
        "latency -n 2 -I", "latency -n 2 --thread-level multiple", "latency -n 2 -G tty",
        "bw -n 2 -G tty --format table",
        "latency -n 2 --quiet", "latency -n 2 --buffer array", "latency -n 2 --buffer object --object dict",
        "osu_latency -n 2",
    ),
    "collectives": (
        "allreduce -n 4 -T all", "allreduce -n 4 --op prod -T float64 -c", "allreduce -n 4 -l -c",
        "reduce -n 4 -k rotate -c",
        "bcast -n 4 -k fixed:2 -c", "gather -n 3 -l -k fixed:1", "alltoallv -n 4 --imbalance 0.5 -c",
        "gatherv -n 4 --imbalance 1 -c", "allreduce -n 4 --process-sync dissemination",
        "bcast -n 4 --process-sync none",
        "bcast -n 4 --process-sync roundtime", "ibcast -n 4 -t 20 -f", "iallreduce -n 4 -f -z50,99",
        "alltoall -n 4 -D vect:4:2 -c", "allreduce -n 3 -fcz50,99", "allreduce -n 8 -f --format table",
        "neighbor_alltoall -n 8 -N cart:2:1 -c", "neighbor_allgather -n 4 -N cart:1:2", "allreduce -n 4 --cache rotate",
        "allgather -n 4 --launches 2 --format table", "bcast -n 4 -i omb -m 8:8 -x 2", "bcast -n 4 -i 64:6,0:3",
        "bcast -n 4 -i auto --precision 5%", "barrier -n 4 -f -z50,99", "alltoallv -n 3 --traffic traffic.txt -c",
        "neighbor_alltoallv -n 3 -N graph:graph.txt -c", "latency -n 2 -D indx:index.txt -c",
    ),
    "one-sided": (
        "put_bw -n 2 -V", "put_bibw -n 2 -w dynamic -s fence -c", "acc_latency -n 2 -T mpi_char,mpi_int -c",
        "acc_latency -n 2 -c --mock flip=1", "fop_latency -n 2 --op max -T int64",
        *(f"{name} -n 2 -w {window} -s {sync}"
        for name in ("put_latency", "get_bw", "acc_latency")
        for window in ("create", "allocate", "dynamic", "shared")
        for sync in ("flush", "flush_local", "lock", "lock_all", "pscw", "fence")
        if window == "create" or sync == "lock"),
    ),
    "mock": (
        "latency -n 2 --mock alpha=2us,beta=1ns,eager=1K", "allreduce -n 4 --mock straggler=2:5us -f",
        "bcast -n 4 --mock slow=1:2", "multi_lat -n 4 --mock link=0-2:3", "latency -n 2 --mock spike=0.3:10 -z50,99",
        "latency -n 2 --launches 3 --mock launch=0.1,drift=0.05", "latency -n 2 --mock series=10us/12us",
        "latency -n 2 --mock version=1.1", "allgather -n 4 --mock data=off",
        "allgather -n 4 --mock noise=0.1",
        "noise -n 2 --mock noise=0.1,spike=0.1:5", "allreduce -n 4 -c --mock flip=2:64", "bw -n 2 -c --mock flip=1",
        "latency -n 2 --mock hang=1", "allreduce -n 4 --mock hang=2:64:1", "latency -n 2 --mock die=0:64",
        "allreduce -n 4 --mock die=3",
    ),
    "step": (
        "step -n 2", "step -n 4 --workload ddp:model=resnet50,scale=1/1024 -c",
        "step -n 4 --workload fsdp:model=gpt2-124m,scale=1/1024", "step -n 4 --workload three_d:tp=2,pp=2,scale=1/1024",
        "step -n 4 --workload knn -c", "step -n 2 --workload kmeans:clusters=8,features=8",
        "step -n 2 --workload ddp:scale=1/1024,compute=1ms --format table",
        "step -n 2 --workload tensor:seq=32,layers=1,compute=matmul,scale=1/64 --mock gflops=20",
        "replay trace.json -n 2", "replay trace.json -n 2 --wait now --scale 1/2",
        "replay trace.json -n 2 -c --compute 1ms",
    ),
}  # fmt: skip
OPTIONS = list(_OPTIONS)
_FILES = {
    "traffic.txt": "8 16 24\n16 8 24\n24 16 8\n",
    "graph.txt": "0, 1\n1, 2\n2, 0\n0, 2\n",
    "index.txt": "0, 2\n4, 1\n6, 2\n",
    "trace.json": json.dumps(
        [
            {"comms": "all_reduce", "in_msg_size": 1024, "out_msg_size": 1024, "dtype": "float"},
            {"comms": "broadcast", "in_msg_size": 64, "out_msg_size": 64, "dtype": "float"},
            {"comms": "all_gather", "in_msg_size": 64, "out_msg_size": 128, "dtype": "float"},
        ]
    ),
}


def options(group: str) -> Callable[[Place], str]:
    """Options of benchmarks, one line each, with what is said on stderr."""

    def made(place: Place) -> str:
        for name, content in _FILES.items():
            place.write(name, content)
        return place.shown(*(_complete(line) for line in _OPTIONS[group]))

    return made


def _complete(line: str) -> str:
    words = line.split()
    unsized = words[0] in UNSIZED or words[0] in ("step", "replay")
    more = [] if unsized or "-m" in words else ["-m 8,64"]
    more += [] if "-i" in words else ["-i 4"]
    more += [] if "-x" in words else ["-x 1"]
    mock = "" if "--mock" in words else " --mock noise=0.05"
    return f"{line} {' '.join(more)} --backend mock{mock} --seed 7 --no-store"
