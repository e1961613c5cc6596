"""Mixtures of experts: tokens travel to the ranks of their experts and back (docs/workloads/experts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.suites.workloads.calls import Call, Item, Product
from omb_py.suites.workloads.grid import divides, one_and_copies
from omb_py.suites.workloads.routing import Copies, Routing, distinct, draw_copies
from omb_py.suites.workloads.settings import Values

SCALES_OVER = 128
"""Elements of an FP8 vector that share a scale of four bytes (DeepSeek-V3)."""
MOST_AFFINITIES: Final = 1 << 27
"""Numbers that are drawn for a rank, one a token and expert; each takes some 20 bytes."""
Matrix = tuple[tuple[int, ...], ...]


def inline_file(text: str) -> str:
    """`text` itself, or for ``@FILE`` with a row of numbers for each rank the matrix as ``1 2;3 4``."""
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    rows = [body.replace(",", " ").split() for _, body in entries(path, "traffic matrix", "traffic=@FILE")]
    return ";".join(" ".join(row) for row in rows)


def read_traffic(text: str) -> str | Matrix:
    """A pattern, or the matrix in a text of :func:`inline_file`. Raises UsageError."""
    if text in ("balanced", "zipf", "hot"):
        return text
    try:
        rows = tuple(tuple(int(word) for word in row.split()) for row in text.split(";"))
        if any(n < 0 for row in rows for n in row):
            raise ValueError
    except ValueError:
        raise UsageError(f"{text!r}: write balanced, zipf, hot, or @FILE with a row of tokens for each rank") from None
    return rows


def weights(pattern: str, experts: int, skew: float) -> list[float]:
    """How often each expert is wanted.

    Args:
        pattern: ``balanced``: all experts alike; ``zipf``: expert e in proportion to (e + 1) ** -skew;
            ``hot``: the first one gets a share of `skew`, the others alike.
        experts: number of experts.
        skew: the exponent, or the share.
    """
    if pattern == "zipf":
        return [(e + 1) ** -skew for e in range(experts)]
    if pattern == "hot":
        return [skew, *[(1 - skew) / max(1, experts - 1)] * (experts - 1)]
    return [1.0] * experts


def loads(pattern: str, experts: int, ranks: int, skew: float) -> list[float]:
    """The share of the tokens that goes to each rank's experts, equally many on each, in order (:func:`weights`)."""
    wanted = weights(pattern, experts, skew)
    total, each = sum(wanted), experts // ranks
    return [sum(wanted[r * each : (r + 1) * each]) / total for r in range(ranks)]


def apportioned(total: int, shares: Sequence[float], first: int = 0) -> list[int]:
    """`total` in whole parts that come nearest to the shares and add up to it (largest remainders).

    Of equal remainders those from place `first` on come first, around the end.
    """
    parts = [int(total * share) for share in shares]
    by_rest = sorted(range(len(parts)), key=lambda j: (parts[j] - total * shares[j], (j - first) % len(parts)))
    for j in by_rest[: total - sum(parts)]:
        parts[j] += 1
    return parts


@lru_cache(maxsize=64)
def copies(pattern: str, experts: int, ranks: int, skew: float, tokens: int, top: float) -> Matrix:
    """Copies of tokens that rank i sends to rank j; what cannot be divided goes to other ranks from each i."""
    shares = loads(pattern, experts, ranks, skew)
    return tuple(tuple(apportioned(round(tokens * top), shares, i)) for i in range(ranks))


def matrix_of(v: Values, ranks: int) -> Matrix:
    """Copies of tokens from rank i of the group to rank j. Raises UsageError if a matrix has another size."""
    traffic: str | Matrix = v["traffic"]
    if not isinstance(traffic, str):
        widths = {len(row) for row in traffic}
        if len(traffic) != ranks or widths != {ranks}:
            shape = f"{len(traffic)} × {' or '.join(map(str, sorted(widths)))}"
            raise UsageError(
                f"the traffic matrix is {shape}, but {ranks} ranks hold the experts: use {ranks} × {ranks}"
            )
        return traffic
    if v["routing"] == "drawn":
        counted = _draw_copies(v, ranks)
        counts = counted.to_rank if v["copies"] == "ranks" else counted.to_expert
        return tuple(map(tuple, counts.tolist()))
    divides("experts", v["experts"], "ranks", ranks)
    top = distinct(ranks, v["top"], v["experts"]) if v["copies"] == "ranks" else float(v["top"])
    return copies(traffic, v["experts"], ranks, _skew(v), v["tokens"], top)


def _skew(v: Values) -> float:
    skew: float = v["skew"] or (0.5 if v["traffic"] == "hot" else 1.0)
    if v["traffic"] == "hot" and skew > 1:
        raise UsageError(f"skew {skew:g} is no share of the tokens for the hot expert: use 0.5")
    return skew


def _draw_copies(v: Values, ranks: int) -> Copies:
    """The copies of tokens whose experts are drawn. Raises UsageError where experts, nodes and ranks do not fit."""
    divides("experts", v["experts"], "ranks", ranks)
    if v["tokens"] * v["experts"] > MOST_AFFINITIES:
        most = MOST_AFFINITIES // v["experts"]
        raise UsageError(f"tokens {v['tokens']}: of {v['experts']} experts at most {most} tokens are drawn: take fewer")
    if v["top"] > v["experts"]:
        raise UsageError(f"top {v['top']} of {v['experts']} experts: use at most {v['experts']}")
    node = v["node"] or ranks
    nodes = divides("ranks", ranks, "node", node)
    if v["limit"] and v["limit"] < nodes and v["limit"] * (v["experts"] // nodes) < v["top"]:
        each = v["experts"] // nodes
        raise UsageError(
            f"limit {v['limit']} nodes of {each} experts hold no {v['top']}: use limit={-(-v['top'] // each)}"
        )
    routing = Routing(v["experts"], v["top"], v["tokens"], ranks, node, v["limit"], v["seed"])
    return draw_copies(routing, tuple(weights(v["traffic"], v["experts"], _skew(v))))


@dataclass(frozen=True, slots=True)
class Leg:
    """One all-to-all of a dispatch: who sends how many copies to whom, and in which group."""

    label: str
    group: tuple[int, ...]
    out: Sequence[int]
    """Copies to each rank of the group."""
    back: Sequence[int]
    """Copies from each rank of the group."""


def _legs(v: Values, group: tuple[int, ...], me: int) -> list[Leg]:
    """The all-to-alls of a dispatch: one, or with ``node`` between nodes and then within the node.

    Between nodes a copy goes to each node, to the rank with the same place there, which hands it to the ranks of its
    node (DeepSeek-V3, arXiv 2412.19437, section 3.2.2).
    """
    n, node = len(group), v["node"]
    if not node or node >= n:
        matrix = matrix_of(v, n)
        return [Leg("", group, matrix[me], [row[me] for row in matrix])]
    if v["routing"] != "drawn" or not isinstance(v["traffic"], str):
        raise UsageError("node= follows each token to its nodes: add routing=drawn, without a traffic matrix")
    counted, here, place = _draw_copies(v, n), me // node, me % node
    peers = range(place, n, node)  # the ranks with this rank's place on every node
    between = Leg(
        " between nodes",
        tuple(group[peer] for peer in peers),
        [0 if k == here else int(counted.to_node[me, k]) for k in range(n // node)],
        [0 if k == here else int(counted.to_node[peer, here]) for k, peer in enumerate(peers)],
    )
    mine = range(here * node, (here + 1) * node)
    handed = counted.to_rank.reshape(n // node, node, n)[:, :, mine.start : mine.stop].sum(axis=0)
    within = Leg(
        " within the node", tuple(group[rank] for rank in mine), handed[place].tolist(), handed[:, place].tolist()
    )
    return [between, within]


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """What travels with a copy of a token, in bytes, and how copies and their counts are exchanged."""

    dispatch: int
    combine: int
    counts: int = 0
    """Bytes of counts that each rank sends to each; 0: they are known."""


def token_bytes(v: Values, ranks: int) -> TokenBytes:
    """The bytes of a token: as published (``plain``), or with what DeepEP's kernels send besides.

    ``normal``: source index, k indices and weights of experts; a count for each rank and local expert first.
    ``low_latency``: a header of 16 bytes; a count for each local expert beside the tokens.
    """
    hidden, top, local = v["hidden"], v["top"], v["experts"] // ranks
    payload = 2 * hidden if v["dispatch"] == "bf16" else hidden + -(-hidden // SCALES_OVER) * 4
    if v["mode"] == "normal":
        return TokenBytes(payload + 4 + 12 * top, 2 * hidden + 4 + 4 * top, 4 * (1 + local))
    return (
        TokenBytes(payload + 16, 2 * hidden, 4 * local)
        if v["mode"] == "low_latency"
        else TokenBytes(payload, 2 * hidden)
    )


def moe(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each layer sends tokens to their experts in FP8 with scales and the results back in BF16, both by alltoallv.

    With several micro-batches the dispatch of one runs beside the computing of the other, and so does the combine.

    Backward the gradients of the results go to the experts in FP8, and those of the tokens back in BF16 (DeepSeek-V3,
    arXiv 2412.19437, section 3.3.3).
    """
    where = one_and_copies("ep", v["ep"], ranks)
    group, me = where.group(rank, "ep"), where.coordinate(rank, "ep")
    message, micro = token_bytes(v, len(group)), int(v["micro"])
    copied = {"normal": "ranks", "low_latency": "experts"}.get(v["mode"], v["copies"])
    legs = _legs({**v, "copies": copied, "tokens": divides("tokens", v["tokens"], "micro", micro)}, group, me)

    def call(leg: Leg, label: str, each: int, dtype: str, out: Sequence[int], back: Sequence[int], first: bool) -> Call:
        sizes = tuple(n * each for n in out), tuple(n * each for n in back)
        beside = int(micro > 1 and (leg is legs[-1] or label.endswith("combine")))
        return Call(
            "alltoallv",
            0,
            dtype,
            label + leg.label,
            leg.group,
            out=sizes[0],
            back=sizes[1],
            work=float(first),
            until=beside,
        )

    def layer(prefix: str, times: int) -> list[Item]:
        local = max(1, v["experts"] // len(group))
        # as if the copies that come were spread evenly over this rank's experts
        product = Product(3 * v["hidden"] * v["inner"], -(-sum(legs[-1].back) // local), times * local)
        nbytes = message.counts * len(group)
        counts = [Call("alltoall", nbytes, "int32", "counts", group, work=0.0)] if nbytes and not prefix else []
        kind = "uint8" if v["dispatch"] == "fp8" or v["mode"] != "plain" else "bfloat16"
        there = [
            call(leg, f"{prefix}dispatch", message.dispatch, kind, leg.out, leg.back, not number)
            for number, leg in enumerate(legs)
        ]
        kind = "uint8" if v["mode"] == "normal" else "bfloat16"
        again = [
            call(leg, f"{prefix}combine", message.combine, kind, leg.back, leg.out, not number)
            for number, leg in enumerate(legs[::-1])
        ]
        out: list[Item] = [*counts, *there]
        back: list[Item] = [product, *again]
        return out * micro + back * micro

    backward = layer("gradients ", 2) if v["backward"] == "on" else []
    return layer("", 1) * int(v["layers"]) + backward * int(v["layers"])
