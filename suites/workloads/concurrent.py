"""Workloads of several things at once: requests that come and go, and two collectives (docs/workloads)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.engine.program.dtypes import DTYPES
from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.grammar.values import parse_size, parse_word
from omb_py.suites.workloads.calls import Call, Item, check_count, padded, there_and_back
from omb_py.suites.workloads.grid import divides, one_and_copies
from omb_py.suites.workloads.model_parallel import check_heads, layers
from omb_py.suites.workloads.settings import Values

POISSON = "poisson"
Arrivals = tuple[tuple[int, int], ...]
"""(turn at which a request arrives, tokens that are generated for it), in order of arrival."""


def inline_file(text: str) -> str:
    """`text` itself, or for ``@FILE`` with a line ``TURN TOKENS`` for each request these as ``0 8;3 20``."""
    if not text.startswith("@"):
        return text
    lines = entries(Path(text[1:]), "trace of requests", "arrivals=@FILE")
    return ";".join(" ".join(body.replace(",", " ").split()) for _, body in lines)


def read_arrivals(text: str) -> Arrivals | None:
    """The requests of a text of :func:`inline_file`; None for ``poisson``. Raises UsageError."""
    if text == POISSON:
        return None
    try:
        requests = sorted((int(turn), int(tokens)) for turn, tokens in (part.split() for part in text.split(";")))
        if min(min(turn, tokens - 1) for turn, tokens in requests) < 0:
            raise ValueError
    except ValueError:
        raise UsageError(f"{text!r}: write poisson, or @FILE with a line TURN TOKENS for each request") from None
    return tuple(requests)


def drawn(requests: int, rate: float, tokens: int, seed: int) -> Arrivals:
    """Arrivals of a Poisson process: gaps are exponential with mean 1 / `rate` turns, in whole turns.

    Args:
        requests: their number.
        rate: requests of a turn on average.
        tokens: tokens that are generated for each.
        seed: of the draw.
    """
    draw, at, arrivals = random.Random(seed), 0.0, []
    for _ in range(requests):
        at += draw.expovariate(rate)
        arrivals.append((int(at), tokens))
    return tuple(arrivals)


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass through all layers: the requests that begin, and those that get their next token."""

    begins: int
    goes_on: int


def turns(arrivals: Sequence[tuple[int, int]], slots: int) -> list[Turn]:
    """The turns in which anything is done.

    A request begins in the first turn from its arrival on in which one of `slots` places is free, gets a token in that
    turn and in each one after it, and leaves its place as soon as it has all (eviction).
    """
    waiting, active, done = list(arrivals), list[int](), list[Turn]()
    now = 0
    while waiting or active:
        if not active:
            now = max(now, waiting[0][0])
        begins = [tokens for arrival, tokens in waiting[: slots - len(active)] if arrival <= now]
        del waiting[: len(begins)]
        done.append(Turn(len(begins), len(active)))
        active = [left - 1 for left in (*active, *begins) if left > 1]
        now += 1
    return done


def serving(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each turn has two all-reduces a layer: of the prompts of requests that begin, and of a token of each other one.

    With ``fused=off`` each request has its own, and those of one turn may be in flight together.
    """
    where = one_and_copies("tp", v["tp"], ranks)
    n, group, shape = where.size("tp"), where.group(rank, "tp"), v["model"].shape
    check_heads(v, n, "tp")
    item = shape.hidden * DTYPES[v["dtype"]].itemsize
    if v["arrivals"] is None:
        check_count({"requests": v["requests"]})
    arrivals = v["arrivals"] or drawn(v["requests"], v["rate"], v["tokens"], v["seed"])
    check_count({"tokens": sum(tokens for _, tokens in arrivals), "layers": layers(v)})
    halves = (shape.projections + shape.output) / n, shape.feed_forward / n

    def layer(label: str, count: int, positions: int) -> list[Item]:
        """A layer for `count` requests with so many positions each."""
        together, parts = (count * positions, 1) if v["fused"] == "on" else (positions, count)
        items: list[Item] = []
        for half in there_and_back(halves, together)[0]:
            call = Call("allreduce", together * item, v["dtype"], label, group, until=parts - 1)
            items += [half, call] * parts
        return items

    steps: list[Item] = []
    for turn in turns(arrivals, v["slots"]) if n > 1 else ():
        for label, count, positions in (("prompt", turn.begins, v["prompt"]), ("token", turn.goes_on, 1)):
            steps += layer(label, count, positions) * (layers(v) if count else 0)
    return steps


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


def together(v: Values, rank: int, ranks: int) -> list[Item]:
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
