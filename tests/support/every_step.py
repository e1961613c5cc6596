"""Every step of the language once, and its text: whoever handles steps is tried with all of them."""

from __future__ import annotations

import inspect

from omb_py.engine.program import steps
from omb_py.engine.program.language import Blocks, Region, Requests, RequestSlot, Step

A, B, R = Region("a", 0, 8), Region("b", 8, 32), RequestSlot(3)
UNEVEN, SWAPPED = Blocks("a", (4, 8), (0, 4)), Blocks("b", (8, 4), (0, 8))
EDGES = (1, 1), (1, 0)
MODIFIERS = {"answered", "base", "in_place", "nonblocking", "persistent", "neighbor"}
"""Functions that make other forms of steps."""

TEXTS: dict[str, tuple[Step, str]] = {
    "send": (steps.send(A, 1, "int32", 7), "send 8 B to 1"),
    "recv": (steps.recv(A, 0, "int32", 7), "recv 8 B from 0"),
    "recv_any": (steps.recv_any(A, 0, "int32", 7), "recv 8 B from any rank"),
    "recv_next": (steps.recv_next(A, (1, 2), "int32", 7), "recv 8 B from the first of 1, 2 to come"),
    "answer": (steps.answer(A, (1, 2), "int32", 7), "answer 8 B to the rank that came last"),
    "sendrecv": (steps.sendrecv(A, 1, A, 0, "char", Requests(0, 2)), "sendrecv 8 B of a to 1, from 0"),
    "sendrecv_replace": (
        steps.sendrecv_replace(A, 1, 0, "char", Requests(0, 2)),
        "sendrecv_replace 8 B of a to 1, from 0",
    ),
    "isend": (steps.isend(A, 1, "char", R), "isend 8 B to 1, request 3"),
    "irecv": (steps.irecv(A, 0, "char", R), "irecv 8 B from 0, request 3"),
    "matmul": (steps.matmul(8, 300), "matmul 8 × 300 by 300 × 300"),
    "wait": (steps.wait(R), "wait for request 3"),
    "waitall": (steps.waitall(Requests(64, 64)), "wait for requests 64 to 127"),
    "test": (steps.test(R), "test request 3"),
    "start": (steps.start(R), "start request 3"),
    "startall": (steps.startall(Requests(0, 4)), "start requests 0 to 3"),
    "free": (steps.free(R), "free request 3"),
    "psend": (steps.psend(A, 1, "char", 4), "psend 8 B to 1 in 4 partitions"),
    "precv": (steps.precv(A, 0, "char", 4), "precv 8 B from 0 in 4 partitions"),
    "pready": (steps.pready(R, 2), "declare partition 2 of request 3 ready"),
    "parrived": (steps.parrived(R, 2), "ask for partition 2 of request 3"),
    "barrier": (steps.barrier(), "barrier"),
    "bcast": (steps.bcast(A, 2, "char"), "bcast 8 B from root 2"),
    "allreduce": (steps.allreduce(A, B, "int32", "sum"), "allreduce 8 B int32 sum"),
    "allgather": (steps.allgather(A, B, "char"), "allgather 8 B from each rank"),
    "allgatherv": (steps.allgatherv(A, SWAPPED, "char"), "allgatherv 8 B of 12 B"),
    "alltoall": (steps.alltoall(B, B, "char"), "alltoall 32 B from each rank"),
    "alltoallv": (steps.alltoallv(UNEVEN, SWAPPED, "char"), "alltoallv 12 B out, 12 B in"),
    "alltoallw": (steps.alltoallw(UNEVEN, SWAPPED, "char"), "alltoallw 12 B out, 12 B in"),
    "reduce": (steps.reduce(A, A, 1, "int32", "sum"), "reduce 8 B int32 sum to root 1"),
    "scan": (steps.scan(A, A, "int32", "sum"), "scan 8 B int32 sum"),
    "exscan": (steps.exscan(A, A, "int32", "sum"), "exscan 8 B int32 sum"),
    "reduce_local": (steps.reduce_local(A, A, "int32", "sum"), "reduce_local 8 B int32 sum"),
    "reduce_scatter": (steps.reduce_scatter(B, A, (2, 6), "int32", "sum"), "reduce_scatter 32 B int32 sum"),
    "reduce_scatter_block": (steps.reduce_scatter_block(B, A, "int32", "sum"), "reduce_scatter_block 32 B int32 sum"),
    "gather": (steps.gather(A, B, 1, "char"), "gather 8 B from each rank to root 1"),
    "gatherv": (steps.gatherv(A, SWAPPED, 1, "char"), "gatherv 8 B of this rank to root 1"),
    "scatter": (steps.scatter(B, A, 1, "char"), "scatter 8 B to each rank from root 1"),
    "scatterv": (steps.scatterv(UNEVEN, A, 1, "char"), "scatterv 8 B to this rank from root 1"),
    "neighbor_allgather": (
        steps.neighbor("allgather", A, B, "char", *EDGES),
        "neighbor_allgather 8 B to 2, 32 B from 2 neighbors",
    ),
    "neighbor_allgatherv": (
        steps.neighbor("allgatherv", A, SWAPPED, "char", *EDGES),
        "neighbor_allgatherv 8 B to 2, 12 B from 2 neighbors",
    ),
    "neighbor_alltoall": (
        steps.neighbor("alltoall", B, B, "char", *EDGES),
        "neighbor_alltoall 32 B to 2, 32 B from 2 neighbors",
    ),
    "neighbor_alltoallv": (
        steps.neighbor("alltoallv", UNEVEN, SWAPPED, "char", *EDGES),
        "neighbor_alltoallv 12 B to 2, 12 B from 2 neighbors",
    ),
    "neighbor_alltoallw": (
        steps.neighbor("alltoallw", UNEVEN, SWAPPED, "char", *EDGES),
        "neighbor_alltoallw 12 B to 2, 12 B from 2 neighbors",
    ),
    "comm_dup": (steps.comm_dup(), "comm_dup"),
    "comm_split": (steps.comm_split(2), "comm_split into 2"),
    "comm_create": (steps.comm_create(), "comm_create of all ranks"),
    "comm_shrink": (steps.comm_shrink((0,)), "comm_shrink, among ranks 0"),
    "comm_grow": (steps.comm_grow((0, 1)), "comm_grow from ranks 0, 1"),
    "comm_free": (steps.comm_free(), "comm_free"),
    "compute": (steps.compute(12_500), "compute 12.5 us"),
    "zero": (steps.zero(A), "zero 8 B of a"),
    "flip": (steps.flip(A, 7), "flip a byte of a in iteration 7"),
}
"""By the name of the step."""


def constructors() -> set[str]:
    """Names of the functions that make a step of the same name, and of what `neighbor` makes."""
    found = {
        name for name, thing in vars(steps).items() if inspect.isfunction(thing) and thing.__module__ == steps.__name__
    }
    return {name for name in found - MODIFIERS if not name.startswith("_")} | set(steps.NEIGHBORHOOD)
