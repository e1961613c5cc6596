"""Two collectives at once (docs/workloads/concurrent.md)."""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.errors import UsageError
from omb_py.grammar.values import parse_size, parse_word
from omb_py.suites.workloads.calls import Call, Item, padded
from omb_py.suites.workloads.grid import divides
from omb_py.suites.workloads.settings import Values

NONE = "none"
_OPS = ("allreduce", "reduce_scatter_block", "allgather", "alltoall", "bcast", "reduce", "gather", "scatter", "barrier")
_DIVIDED = ("reduce_scatter_block", "alltoall")


@dataclass(frozen=True, slots=True)
class HalfCollective:
    """An operation and its bytes, as :class:`omb_py.suites.workloads.calls.Call` counts them."""

    op: str
    nbytes: int


def read_collective(text: str) -> HalfCollective | None:
    """The collective of ``OP/SIZE``; None for ``none``. Raises UsageError."""
    op, slash, size = text.partition("/")
    parse_word(op, (*_OPS, NONE))
    if bool(slash) == (op in (NONE, "barrier")):
        raise UsageError(f"{text!r}: write " + (op if slash else f"{op}/1M, with the bytes"))
    return None if op == NONE else HalfCollective(op, parse_size(size) if slash else 0)


def call_together(v: Values, rank: int, ranks: int) -> list[Item]:
    """Every rank calls both collectives, on two communicators of all ranks; or each half of the ranks calls its own."""
    halves = v["ranks"] == "halves"
    half = divides("ranks", ranks, "halves", 2) if halves else ranks
    first, second = tuple(range(half)), tuple(range(ranks - half, ranks))
    calls: list[Item] = []
    # all ranks twice: the world's communicator for one, another of the same ranks for the other
    for label, group, comm in (("first", first, first if halves else ()), ("second", second, second)):
        collective = v[label]
        if collective is None or rank not in group:
            continue
        parts = len(group) if collective.op in _DIVIDED else 1
        nbytes = padded(collective.nbytes, parts, v["dtype"])
        calls += [Call(collective.op, nbytes, v["dtype"], label, comm, until=None)] * v["repeat"]
    return calls
