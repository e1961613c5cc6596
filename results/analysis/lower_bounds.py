"""Lower bounds of collectives: without offload, no algorithm over one full-duplex port a rank is faster."""

from __future__ import annotations

import math

from omb_py.results.statistics.bandwidth import FORMULAS, formula_name

BARRIER = "barrier"


def lower_bound_us(
    formula: str | None, benchmark: str, bytes_total: int, ranks: int, alpha_us: float, beta_us: float
) -> float | None:
    """Compute the larger of two bounds: ceil(log2 p) alpha, and beta times the bytes that each port must carry.

    Args:
        formula: value of the column ``bw_formula``, or its name alone. Its bus factor is the share of `bytes_total`
            that crosses each port.
        benchmark: name of the benchmark. A barrier moves no bytes and has the first bound only.
        bytes_total: bytes of the whole operation, as nccl-tests counts (the vector of an allreduce, else all blocks).
        ranks: number of ranks of the operation.
        alpha_us: latency of a message between two ranks in µs.
        beta_us: time of a byte between two ranks in µs.

    Returns:
        The bound in µs; None where none is known: the operation is no collective, or has one rank.
    """
    name = formula_name(formula)
    is_barrier = benchmark.removeprefix("i").removesuffix("_persistent") == BARRIER
    if ranks < 2 or (name not in FORMULAS and not is_barrier) or name == "sendrecv":
        return None
    rounds = math.ceil(math.log2(ranks)) * alpha_us
    if is_barrier:
        return rounds
    return max(rounds, FORMULAS[name].bus(ranks) * FORMULAS[name].algorithm(ranks) * bytes_total * beta_us)
