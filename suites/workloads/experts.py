"""Mixtures of experts: tokens travel to the ranks of their experts and back (docs/workloads/experts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.grammar.line_file import entries
from omb_py.suites.workloads.calls import Call, Item, Product
from omb_py.suites.workloads.grid import divides, one_and_copies
from omb_py.suites.workloads.settings import Values

SCALES_OVER = 128
"""Elements of an FP8 vector that share a scale of four bytes (DeepSeek-V3)."""
Matrix = tuple[tuple[int, ...], ...]


def travelling(text: str) -> str:
    """`text` itself, or for ``@FILE`` with a row of numbers for each rank the matrix as ``1 2;3 4``."""
    if not text.startswith("@"):
        return text
    path = Path(text[1:])
    rows = [body.replace(",", " ").split() for _, body in entries(path, "traffic matrix", "traffic=@FILE")]
    return ";".join(" ".join(row) for row in rows)


def read_traffic(text: str) -> str | Matrix:
    """A pattern, or the matrix in a text of :func:`travelling`. Raises UsageError."""
    if text in ("balanced", "zipf", "hot"):
        return text
    try:
        rows = tuple(tuple(int(word) for word in row.split()) for row in text.split(";"))
        if any(n < 0 for row in rows for n in row):
            raise ValueError
    except ValueError:
        raise UsageError(f"{text!r}: write balanced, zipf, hot, or @FILE with a row of tokens for each rank") from None
    return rows


def loads(pattern: str, experts: int, ranks: int, skew: float) -> list[float]:
    """The share of the tokens that goes to each rank's experts.

    Args:
        pattern: ``balanced``: all experts alike; ``zipf``: expert e in proportion to (e + 1) ** -skew;
            ``hot``: the first one gets a share of `skew`, the others alike.
        experts: number of experts, equally many on each rank, in order.
        ranks: number of ranks in the group.
        skew: the exponent, or the share.
    """
    if pattern == "zipf":
        weights = [(e + 1) ** -skew for e in range(experts)]
    elif pattern == "hot":
        weights = [skew, *[(1 - skew) / max(1, experts - 1)] * (experts - 1)]
    else:
        weights = [1.0] * experts
    total, each = sum(weights), experts // ranks
    return [sum(weights[r * each : (r + 1) * each]) / total for r in range(ranks)]


def apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """`total` in whole parts that come nearest to the shares and add up to it (largest remainders)."""
    parts = [int(total * share) for share in shares]
    by_rest = sorted(range(len(parts)), key=lambda j: (parts[j] - total * shares[j], j))
    for j in by_rest[: total - sum(parts)]:
        parts[j] += 1
    return parts


@lru_cache(maxsize=64)
def copies(pattern: str, experts: int, ranks: int, skew: float, tokens: int, top: float) -> Matrix:
    """Copies of tokens that rank i sends to rank j, the same for every i."""
    row = tuple(apportioned(round(tokens * top), loads(pattern, experts, ranks, skew)))
    return (row,) * ranks


def distinct(ranks: int, top: int) -> float:
    """Ranks that a token goes to when its `top` experts are drawn at random: n·(1 − (1 − 1/n)^k)."""
    return ranks * (1 - (1 - 1 / ranks) ** top)


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
    divides("experts", v["experts"], "ranks", ranks)
    skew = v["skew"] or (0.5 if traffic == "hot" else 1.0)
    if traffic == "hot" and skew > 1:
        raise UsageError(f"skew {skew:g} is no share of the tokens for the hot expert: use 0.5")
    top = distinct(ranks, v["top"]) if v["copies"] == "ranks" else float(v["top"])
    return copies(traffic, v["experts"], ranks, skew, v["tokens"], top)


def moe(v: Values, rank: int, ranks: int) -> list[Item]:
    """Each layer sends tokens to their experts in FP8 with scales and the results back in BF16, both by alltoallv."""
    where = one_and_copies("ep", v["ep"], ranks)
    group, me = where.group(rank, "ep"), where.place(rank, "ep")
    matrix, hidden = matrix_of(v, len(group)), v["hidden"]
    dispatch_bytes, combine_bytes = hidden + -(-hidden // SCALES_OVER) * 4, 2 * hidden  # of a copy of a token
    outgoing, incoming = matrix[me], [row[me] for row in matrix]

    def call(label: str, each: int, out: Sequence[int], back: Sequence[int], work: float) -> Call:
        sizes = tuple(n * each for n in out), tuple(n * each for n in back)
        return Call("alltoallv", 0, "uint8", label, group, out=sizes[0], back=sizes[1], work=work)

    local = max(1, v["experts"] // len(group))
    # as if the copies that come were spread evenly over this rank's experts
    product = Product(3 * hidden * v["inner"], -(-sum(incoming) // local), local)
    dispatch = call("dispatch", dispatch_bytes, outgoing, incoming, 1.0)
    layer: list[Item] = [dispatch, product, call("combine", combine_bytes, incoming, outgoing, 1.0)]
    return layer * int(v["layers"])
