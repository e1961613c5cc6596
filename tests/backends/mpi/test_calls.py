"""What each benchmark really asks of the library: its calls, their order and their counts, on two real ranks.

Expected is OMB 7.5's loop written down by hand: 24 bytes, a window of 3, two calls of MPI_Test.
The bytes that arrive are looked at in test_conformance.py.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omb_py.suites.imb.threads import IN_THREADS
from omb_py.suites.registry import BENCHMARKS
from tests.support.machines.counted import build
from tests.support.machines.mpi import report

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]

Said = dict[str, list[str]]
"""Part of a stage -> calls."""

BARRIER, WAIT, START, FREE = "MPI_Barrier", "MPI_Wait", "MPI_Start", "MPI_Request_free"
TESTS = "2 x MPI_Test"
ROOT_RECEIVES, ROOT_SENDS = ("gather", "gatherv"), ("scatter", "scatterv")
"""Elsewhere than on the root the other count means nothing."""

COLLECTIVES = {
    "barrier": "",
    "bcast": "24",
    "reduce": "6",
    "allreduce": "6",
    "reduce_scatter": "[3, 3]",
    "reduce_scatter_block": "3",
    "gather": "24 24",
    "gatherv": "24 [24, 24]",
    "scatter": "24 24",
    "scatterv": "[24, 24] 24",
    "allgather": "24 24",
    "allgatherv": "24 [24, 24]",
    "alltoall": "24 24",
    "alltoallv": "[24, 24] [24, 24]",
    "alltoallw": "[24, 24] [24, 24]",
}
"""Counts of the call on the root: elements of char, of int for reductions."""
NEIGHBORHOOD = {name: COLLECTIVES[name] for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")}


def behind(counts: str) -> list[str]:
    """The untimed barrier behind a call; a barrier, the one call without counts, has none."""
    return [BARRIER] if counts else []


def blocking(function: str, counts: str) -> Said:
    return {"main": [f"{function} {counts}".strip(), *behind(counts)]}


def overlapping(function: str, counts: str) -> Said:
    call = f"{function} {counts}".strip()
    return {"pure": [call, WAIT, *behind(counts)], "overlap": [call, TESTS, WAIT, BARRIER]}


def persistent(function: str, counts: str) -> Said:
    made = f"{function}_init {counts}".strip()
    return {"main setup": [made], "main": [START, WAIT, *behind(counts)], "main teardown": [FREE]}


def window(first: str, second: str) -> Said:
    return {"main": [f"3 x {first} 24", "MPI_Waitall 3", second]}


def passive(*calls: str) -> list[Said]:
    """Rank 0 alone works, under a lock that is taken before the loop."""
    return [
        {"main setup": ["MPI_Win_lock"], "main": [*calls, "MPI_Win_flush"], "main teardown": ["MPI_Win_unlock"]},
        {},
    ]


PING: Said = {"main": ["MPI_Send 24", "MPI_Recv 24"]}
PONG: Said = {"main": ["MPI_Recv 24", "MPI_Send 24"]}
OUT, IN = window("MPI_Isend", "MPI_Recv 1"), window("MPI_Irecv", "MPI_Send 1")
BOTH_WAYS: Said = {"main": ["3 x MPI_Irecv 24", "3 x MPI_Isend 24", "2 x MPI_Waitall 3"]}
STARTED: Said = {
    "main setup": ["MPI_Send_init 24", "MPI_Recv_init 24"],
    "main": [START, WAIT, START, WAIT],
    "main teardown": [f"2 x {FREE}"],
}
PARTS = {"setup": ["MPI_Psend_init 8 3", "MPI_Precv_init 8 3"], "teardown": [f"2 x {FREE}"]}
SEND_PARTS, RECV_PARTS = [START, "8 x MPI_Pready", WAIT], [START, WAIT]
SEND_AND_TEST, RECV_AND_ASK = [*SEND_PARTS[:2], TESTS, WAIT], [START, "2 x MPI_Parrived", WAIT]


def partitioned(pure: list[str], both: list[str]) -> Said:
    return {
        "pure setup": PARTS["setup"],
        "pure": pure,
        "pure teardown": PARTS["teardown"],
        "overlap setup": PARTS["setup"],
        "overlap": [*both, BARRIER],
        "overlap teardown": PARTS["teardown"],
    }


def before(said: Said, barriers: int = 1) -> Said:
    """The pairs meet in barriers before each iteration."""
    return {"main": [BARRIER] * barriers + said["main"]}


def started(made: str, count: int, calls: list[str]) -> Said:
    return {"main setup": [made], "main": calls, "main teardown": [f"{count} x {FREE}"]}


COMMUNICATORS = ("dup", "split", "create")
RING: Said = {"main": ["MPI_Irecv 24", "MPI_Isend 24", "MPI_Waitall 2", BARRIER]}
EXPOSED = ["MPI_Win_post", "MPI_Win_start", "3 x MPI_Put 24 24", "MPI_Win_complete", "MPI_Win_wait"]
BOTH = ["MPI_Irecv 24", "MPI_Send 24", WAIT]


def biband(end: str) -> Said:
    return {"main": ["3 x MPI_Irecv 24", "3 x MPI_Isend 24", "MPI_Waitall 6", end]}


def neighbors(*calls: str) -> list[Said]:
    """With two ranks both neighbors are the same one: one lock, one flush."""
    main = [*calls * 3, "MPI_Win_flush"]
    return [{"main setup": ["MPI_Win_lock"], "main": main, "main teardown": ["MPI_Win_unlock"]}]


def to_all(call: str, flush: str = "MPI_Win_flush_all") -> list[Said]:
    main = [f"3 x {call}", flush]
    return [{"main setup": ["MPI_Win_lock_all"], "main": main, "main teardown": ["MPI_Win_unlock_all"]}]


def passive_put() -> list[Said]:
    parts: list[Said] = [{}, {}]
    for stage in ("pure", "busy"):
        parts[0] |= {f"{stage} setup": ["MPI_Win_lock"], f"{stage} teardown": ["MPI_Win_unlock"]}
        parts[0] |= {stage: ["MPI_Put 24 24", "MPI_Win_flush", BARRIER]}
        parts[1] |= {stage: [BARRIER]}
    return parts


def twice(said: Said) -> Said:
    """The calls of one iteration of each of two threads."""
    return {"main": said["main"] * 2}


EXPECTED: dict[str, list[Said]] = {
    "latency": [PING, PONG],
    "latency_mp": [PING, PONG],
    "latency_mt": [{"main": PING["main"] * 2}, {"main": PONG["main"] * 2}],
    "multi_lat": [before(PING), before(PONG)],
    "bw": [OUT, IN],
    "mbw_mr": [before(OUT, 2), before(IN, 2)],
    "bibw": [BOTH_WAYS, BOTH_WAYS],
    "sendrecv": [RING, RING],
    "hypercube": [RING, RING],
    "latency_persistent": [STARTED, STARTED],
    "bw_persistent": [
        started("3 x MPI_Send_init 24", 3, ["MPI_Startall 3", "MPI_Waitall 3", "MPI_Recv 1"]),
        started("3 x MPI_Recv_init 24", 3, ["MPI_Startall 3", "MPI_Waitall 3", "MPI_Send 1"]),
    ],
    "bibw_persistent": [
        {
            "main setup": ["3 x MPI_Recv_init 24", "3 x MPI_Send_init 24"],
            "main": ["2 x MPI_Startall 3", "2 x MPI_Waitall 3"],
            "main teardown": [f"6 x {FREE}"],
        }
    ]
    * 2,
    "partitioned_latency": [
        partitioned(SEND_PARTS + RECV_PARTS, SEND_AND_TEST + RECV_AND_ASK),
        partitioned(RECV_PARTS + SEND_PARTS, RECV_AND_ASK + SEND_AND_TEST),
    ],
    "put_latency": passive("MPI_Put 24 24"),
    "get_latency": passive("MPI_Get 24 24"),
    "put_bw": passive("3 x MPI_Put 24 24"),
    "get_bw": passive("3 x MPI_Get 24 24"),
    "put_bibw": [{"main": EXPOSED}] * 2,
    "acc_latency": passive("MPI_Accumulate 24 24"),
    "get_acc_latency": [{"main": ["MPI_Win_lock", "MPI_Get_accumulate 24 24 24", "MPI_Win_unlock"]}, {}],
    "cas_latency": passive("MPI_Compare_and_swap"),
    "fop_latency": passive("MPI_Fetch_and_op"),
    "pingping": [{"main": ["MPI_Isend 24", "MPI_Recv 24", WAIT]}] * 2,
    "pingping_any_source": [{"main": ["MPI_Isend 24", "MPI_Recv 24", WAIT]}] * 2,
    "pingpong_any_source": [PING, PONG],
    "exchange": [{"main": ["2 x MPI_Isend 24", "2 x MPI_Recv 24", "MPI_Waitall 2"]}] * 2,
    "sendrecv_call": [{"main": ["MPI_Sendrecv 24 24"]}] * 2,
    "sendrecv_replace": [{"main": ["MPI_Sendrecv_replace 24"]}] * 2,
    "uniband": [OUT, IN],
    "biband": [biband("MPI_Recv 1"), biband("MPI_Send 1")],
    "reduce_local": [{"main": ["MPI_Reduce_local 6", BARRIER]}] * 2,
    "unirandom": [PONG, PING],
    "birandom": [{"main": BOTH * 2}] * 2,
    "corandom": [{"main": BOTH}] * 2,
    "bidir_put": neighbors("MPI_Put 24 24") * 2,
    "bidir_get": neighbors("MPI_Get 24 24") * 2,
    "passive_put": passive_put(),
    "one_put_all": [*to_all("MPI_Put 24 24"), {}],
    "one_get_all": [*to_all("MPI_Get 24 24"), {}],
    "put_all_local": [*to_all("MPI_Put 24 24", "MPI_Win_flush_local_all"), {}],
    "get_all_local": [*to_all("MPI_Get 24 24", "MPI_Win_flush_local_all"), {}],
    "all_put_all": to_all("MPI_Put 24 24") * 2,
    "all_get_all": to_all("MPI_Get 24 24") * 2,
    "exchange_put": neighbors("MPI_Put 24 24", "MPI_Put 24 24") * 2,
    "exchange_get": neighbors("MPI_Get 24 24", "MPI_Get 24 24") * 2,
    "rput_latency": passive("MPI_Rput 24 24", WAIT),
    "rget_latency": passive("MPI_Rget 24 24", WAIT),
    **{f"comm_{what}": [{"main": [f"MPI_Comm_{what}", "MPI_Comm_free", BARRIER]}] * 2 for what in COMMUNICATORS},
    **{name: [blocking(f"MPI_{name.capitalize()}", counts)] * 2 for name, counts in COLLECTIVES.items()},
    **{f"i{name}": [overlapping(f"MPI_I{name}", counts)] * 2 for name, counts in COLLECTIVES.items()},
    **{f"{name}_persistent": [persistent(f"MPI_{name.capitalize()}", n)] * 2 for name, n in COLLECTIVES.items()},
    **{f"neighbor_{name}": [blocking(f"MPI_Neighbor_{name}", n)] * 2 for name, n in NEIGHBORHOOD.items()},
    **{f"ineighbor_{name}": [overlapping(f"MPI_Ineighbor_{name}", n)] * 2 for name, n in NEIGHBORHOOD.items()},
}
EXPECTED |= {name: [twice(said) for said in EXPECTED[alone]] for name, alone in IN_THREADS.items()}
ELSEWHERE = {
    "init": "tests/backends/test_conformance.py",
    "hello": "tests/backends/test_conformance.py",
    "bw_fan_in": "tests/backends/mpi/test_nodes.py",
    "bw_fan_out": "tests/backends/mpi/test_nodes.py",
    "noise": "tests/suites/test_host_noise.py",
    "stencil2d": "tests/suites/imb/test_stencils.py",
    "stencil3d": "tests/suites/imb/test_stencils.py",
    "step": "tests/backends/test_workloads.py",
    **dict.fromkeys(("comm_shrink", "comm_grow"), "tests/backends/nccl/test_nccl.py"),
}
"""Those without calls of their own, of NCCL alone, and those that need several nodes, with the test that has them."""


@cache
def told(folder: Path) -> dict[str, dict[str, list[Said]]]:
    """One launch: binding -> benchmark -> what each rank called."""
    result: dict[str, Any] = report("tests.support.machines.counted", 2, LD_PRELOAD=str(build(folder)))
    return result


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[Said]]]:
    return told(tmp_path_factory.getbasetemp())


def significant(name: str, rank: int, said: Said) -> Said:
    """Calls one by one, without the counts that mean nothing on this rank; those of threads in no order."""
    kind = name.removesuffix("_persistent").removeprefix("i")

    def cut(call: str) -> str:
        if rank and kind in ROOT_RECEIVES:  # MPI_Gather 24 0
            return re.sub(r"(gather\S* \d+) .*", r"\1", call, flags=re.IGNORECASE)
        if rank and kind in ROOT_SENDS:  # MPI_Scatter 0 24
            return re.sub(r"(scatter\S*) .* ", r"\1 ", call, flags=re.IGNORECASE)
        return call

    single = {part: [cut(one) for call in calls for one in each(call)] for part, calls in said.items()}
    return {"main": sorted(single["main"])} if name.endswith("_mt") else single


def each(call: str) -> list[str]:
    """``3 x call`` written out."""
    times, by, text = call.partition(" x ")
    return [text] * int(times) if by else [call]


def test_every_benchmark_is_expected() -> None:
    assert set(EXPECTED) | set(ELSEWHERE) == set(BENCHMARKS)


@pytest.mark.parametrize("name", EXPECTED)
def test_calls_are_omb_s(name: str, counted: dict[str, dict[str, list[Said]]]) -> None:
    for binding in ("native", "mpi4py"):
        for rank, (said, wanted) in enumerate(zip(counted[binding][name], EXPECTED[name], strict=True)):
            assert significant(name, rank, said) == significant(name, rank, wanted), f"{binding}, rank {rank}"
