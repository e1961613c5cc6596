"""Memory that a layout needs on a device: states of the model and activations, by published formulas.

With Adam in mixed precision a parameter needs 16 bytes: 2 + 2 for itself and its gradient, 12 for a float32 copy,
momentum and variance (ZeRO, arXiv 1910.02054, section 3.1); in float32 4 + 4 and 8 for momentum and variance. A layer
keeps s·b·h·34 bytes of 16-bit activations for the backward pass where attention is recomputed, as flash attention does
(Korthikanti et al., arXiv 2205.05198, equations 1 to 6). What frameworks use besides, as buffers, is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from omb_py.engine.program.dtypes import DTYPES
from omb_py.suites.workloads.data_parallel import rows
from omb_py.suites.workloads.families import Workload
from omb_py.suites.workloads.grid import grid, one_and_copies
from omb_py.suites.workloads.model_parallel import layers, tokens
from omb_py.suites.workloads.settings import Values

GRADIENT_AND_COPY: Final = 16
"""Bytes of a parameter that is trained, in either precision."""
ZERO_SOURCE: Final = "ZeRO, arXiv 1910.02054, section 3.1"
ACTIVATION_SOURCE: Final = "arXiv 2205.05198, equations 1 to 6"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that the fullest rank needs."""

    states: float
    """Parameters, gradients and the optimiser's states; in inference parameters alone."""
    formula: str
    activations: float = 0.0
    """Activations for the backward pass; in inference keys and values."""
    kept: str = ""
    """Formula of `activations`; empty: unknown, as of convolutions."""

    @property
    def total(self) -> float:
        """All of it, bytes."""
        return self.states + self.activations


def needed(workload: Workload, ranks: int) -> Memory | None:
    """The memory of the fullest rank at full size, whatever `scale` says; None where no formula is known.

    Raises UsageError where the ranks do not fit.
    """
    find = _FORMULAS.get(workload.family.name)
    if find is None:
        return None
    workload.calls(0, ranks)
    return find(workload.values, ranks)


def _kept(v: Values, count: float, positions: float, share: str = "34", factor: float = 34.0) -> tuple[float, str]:
    """Bytes that `count` layers keep of so many tokens, and the formula."""
    wide = DTYPES[v["dtype"]].itemsize / 2
    return count * positions * v["model"].shape.hidden * factor * wide, f"L·b·s·h·({share})"


def _replicated(v: Values, ranks: int) -> Memory:
    clients = v.get("clients", 1)
    shape, parameters = v["model"].shape, v["model"].parameters
    kept = _kept(v, shape.layers, rows(v)) if shape else (0.0, "")
    times = f"·{clients} clients" if clients > 1 else ""
    return Memory(
        clients * GRADIENT_AND_COPY * parameters, f"16·P{times}", clients * kept[0], kept[1] and kept[1] + times
    )


def _server(v: Values, ranks: int) -> Memory:
    parameters = v["model"].parameters
    worker, server = 2.0 * DTYPES[v["dtype"]].itemsize * parameters, GRADIENT_AND_COPY * parameters / v["servers"]
    return Memory(worker, "2·e·P, of a worker") if worker > server else Memory(server, "16·P/servers, of a server")


def _zero(v: Values, ranks: int) -> Memory:
    if v["stage"] == 3:
        item = DTYPES[v["dtype"]].itemsize
        return Memory((item + GRADIENT_AND_COPY / ranks) * v["model"].parameters, "(e + 16/n)·P, gathered and divided")
    whole = 4 if v["stage"] == 1 else 2
    states = (whole + (GRADIENT_AND_COPY - whole) / ranks) * v["model"].parameters
    return Memory(states, f"({whole} + {GRADIENT_AND_COPY - whole}/n)·P")


def _fsdp(v: Values, ranks: int) -> Memory:
    shard = grid(ranks, {"shard": v["shard"], "replica": v["replica"]}, "shard").size("shard")
    largest = max(count for _, count in v["model"].units)
    gathered = (2 if v["prefetch"] == "on" else 1) * DTYPES[v["dtype"]].itemsize * largest
    states = GRADIENT_AND_COPY * v["model"].parameters / shard + (gathered if shard > 1 else 0)
    shape = v["model"].shape
    kept = _kept(v, shape.layers, rows(v)) if shape else (0.0, "")
    return Memory(states, "16·P/shard, and gathered units of P_u·e", *kept)


def _tensor(v: Values, ranks: int) -> Memory:
    n = one_and_copies("tp", v["tp"], ranks).size("tp")
    return Memory(GRADIENT_AND_COPY * v["model"].parameters / n, "16·P/tp", *_divided(v, n, layers(v)))


def _divided(v: Values, n: int, count: float) -> tuple[float, str]:
    """What layers keep that are divided among `n` ranks, with and without sequence parallel."""
    if v["sequence"] == "on":
        return _kept(v, count, v["batch"] * tokens(v), "34/tp", 34 / n)
    return _kept(v, count, v["batch"] * tokens(v), "10 + 24/tp", 10 + 24 / n)


def _by_sequence(name: str) -> Callable[[Values, int], Memory]:
    def find(v: Values, ranks: int) -> Memory:
        n = one_and_copies(name, v[name], ranks).size(name)
        kept, formula = _kept(v, layers(v), v["batch"] * tokens(v) / n)
        return Memory(GRADIENT_AND_COPY * v["model"].parameters, "16·P", kept, f"{formula}/{name}")

    return find


def _stages(v: Values, p: int, kept: tuple[float, str]) -> tuple[float, str]:
    """What the first stage keeps: of as many micro-batches as are on their way."""
    flying = v["micro"] if v.get("schedule") == "gpipe" else min(p, v["micro"])
    return kept[0] * flying, f"{kept[1]}·{flying} micro-batches, L = {layers(v)}/{p} layers of a stage"


def _pipeline(v: Values, ranks: int) -> Memory:
    p = one_and_copies("pp", v["pp"], ranks).size("pp")
    kept = _stages(v, p, _kept(v, layers(v) / p, v["batch"] * tokens(v)))
    return Memory(GRADIENT_AND_COPY * v["model"].parameters / p, "16·P/pp", *kept)


def _gems(v: Values, ranks: int) -> Memory:
    p = one_and_copies("pp", v["pp"], ranks).size("pp")
    kept, formula = _kept(v, layers(v) / p, v["batch"] * tokens(v))
    return Memory(
        2 * GRADIENT_AND_COPY * v["model"].parameters / p, "2·16·P/pp, of two models", 2 * kept, f"2·{formula}"
    )


def _three_d(v: Values, ranks: int) -> Memory:
    where = grid(ranks, {"tp": v["tp"], "pp": v["pp"], "dp": v["dp"]}, "dp", v["order"])
    tp, pp = where.size("tp"), where.size("pp")
    kept = _stages(v, pp, _divided(v, tp, layers(v) / pp))
    return Memory(GRADIENT_AND_COPY * v["model"].parameters / (tp * pp), "16·P/(tp·pp)", *kept)


def _decode(v: Values, ranks: int) -> Memory:
    n, kept = one_and_copies("tp", v["tp"], ranks).size("tp"), v["model"].shape.sequence * v["batch"] * v["requests"]
    return _inference(v, n, kept, "2·L·s·h_kv·e/tp keys and values of each sequence")


def _prefill(v: Values, ranks: int) -> Memory:
    n = one_and_copies("tp", v["tp"], ranks).size("tp")
    return _inference(v, n, tokens(v) * v["batch"], "2·L·s·h_kv·e/tp keys and values of each sequence")


def _kv_transfer(v: Values, ranks: int) -> Memory:
    n = min(v["prefill_tp"], v["decode_tp"])
    return _inference(v, n, v["prompt"] * v["requests"], "2·L·s·h_kv·e/tp of each request")


def _serving(v: Values, ranks: int) -> Memory:
    n = one_and_copies("tp", v["tp"], ranks).size("tp")
    arrivals = v["arrivals"] or ((0, v["tokens"]),) * v["requests"]
    places, longest = min(v["slots"], len(arrivals)), v["prompt"] + max(tokens for _, tokens in arrivals)
    formula = f"2·L·{longest}·h_kv·e/tp keys and values of each of {places} requests at once"
    return _inference(v, n, longest * places, formula)


def _inference(v: Values, n: int, kept: int, formula: str) -> Memory:
    """Parameters, and keys and values of so many tokens, divided among `n` ranks."""
    item, model = DTYPES[v["dtype"]].itemsize, v["model"]
    cached = 2 * layers(v) * model.shape.kv_hidden * item * kept / n
    return Memory(item * model.parameters / n, "P·e/tp", cached, formula)


_FORMULAS: Final[Mapping[str, Callable[[Values, int], Memory]]] = MappingProxyType(
    {
        "ddp": _replicated,
        "horovod": _replicated,
        "ring": _replicated,
        "parameter_server": _server,
        "zero": _zero,
        "fsdp": _fsdp,
        "tensor": _tensor,
        "ulysses": _by_sequence("sp"),
        "context": _by_sequence("cp"),
        "pipeline": _pipeline,
        "gems": _gems,
        "three_d": _three_d,
        "prefill": _prefill,
        "decode": _decode,
        "kv_transfer": _kv_transfer,
        "serving": _serving,
    }
)
"""Family -> its memory. The others hold no model."""
