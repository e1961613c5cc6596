"""IMB's benchmarks and ours: name, program, table layout and the messages that a figure in MB/s counts.

IMB = Intel MPI Benchmarks 2021.11. The counts are the User Guide's ("Sendrecv": 2 messages, "Exchange": 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Part = Literal["MPI-1", "MPI-NBC", "MPI-RMA", "IMB-P2P", "MT"]
Layout = Literal[
    "time", "range_rate", "range", "rate", "overlap", "sync", "sync_overlap", "messages", "passive", "mean_rate"
]


@dataclass(frozen=True, slots=True)
class Form:
    """The place of a benchmark in IMB."""

    name: str
    part: Part
    layout: Layout
    scale: int = 1
    """Messages of a sample that count for MB/s."""
    mode: str = ""
    """``NON-AGGREGATE`` or ``AGGREGATE``, of IMB-RMA."""


_COLLECTIVES = (
    "bcast allgather allgatherv alltoall alltoallv gather gatherv scatter scatterv allreduce reduce reduce_scatter "
    "reduce_scatter_block reduce_local"
).split()
_NON_BLOCKING = (
    "ibcast iallgather iallgatherv ialltoall ialltoallv igather igatherv iscatter iscatterv iallreduce ireduce "
    "ireduce_scatter"
).split()
_OF_BLOCKS: Final = frozenset({"reduce_scatter", "reduce_scatter_block", "ireduce_scatter"})
_SINCE: Final = 2019
_ATOMIC: Final = {
    "acc_latency": "Accumulate",
    "get_acc_latency": "Get_accumulate",
    "fop_latency": "Fetch_and_op",
    "cas_latency": "Compare_and_swap",
}
_SYNCS: Final = {"put_latency": "put", "get_latency": "get", "put_bw": "put", "get_bw": "get"}

GROUP_RANKS: Final = "group_ranks"
"""Parameter of an imported row: the ranks of each group that IMB listed, as ``0,1;2,3``."""
FORMS: Final[Mapping[str, Form]] = {
    "latency": Form("PingPong", "MPI-1", "time"),
    "pingpong_any_source": Form("PingPongAnySource", "MPI-1", "time"),
    "pingping": Form("PingPing", "MPI-1", "time"),
    "pingping_any_source": Form("PingPingAnySource", "MPI-1", "time"),
    "sendrecv_call": Form("Sendrecv", "MPI-1", "range_rate", 2),
    "exchange": Form("Exchange", "MPI-1", "range_rate", 4),
    "uniband": Form("Uniband", "MPI-1", "rate"),
    "bw": Form("Uniband", "MPI-1", "rate"),
    "biband": Form("Biband", "MPI-1", "rate", 2),
    "bibw": Form("Biband", "MPI-1", "rate", 2),
    "barrier": Form("Barrier", "MPI-1", "sync"),
    **{name: Form(name.capitalize(), "MPI-1", "range") for name in _COLLECTIVES},
    **{name: Form(name.capitalize(), "MPI-NBC", "overlap") for name in _NON_BLOCKING},
    "ibarrier": Form("Ibarrier", "MPI-NBC", "sync_overlap"),
    "unirandom": Form("Unirandom", "IMB-P2P", "messages"),
    "birandom": Form("Birandom", "IMB-P2P", "messages"),
    "corandom": Form("Corandom", "IMB-P2P", "messages"),
    "stencil2d": Form("Stencil2D", "IMB-P2P", "messages"),
    "stencil3d": Form("Stencil3D", "IMB-P2P", "messages"),
    "sendrecv_replace": Form("SendRecv_Replace", "IMB-P2P", "messages"),
    **{name: Form(f"Unidir_{way}", "MPI-RMA", "time", 1, "NON-AGGREGATE") for name, way in _SYNCS.items()},
    **{name: Form(title, "MPI-RMA", "time", 1, "NON-AGGREGATE") for name, title in _ATOMIC.items()},
    "bidir_put": Form("Bidir_put", "MPI-RMA", "time", 1, "NON-AGGREGATE"),
    "bidir_get": Form("Bidir_get", "MPI-RMA", "time", 1, "NON-AGGREGATE"),
    **{name: Form(name.capitalize(), "MPI-RMA", "time") for name in ("one_put_all", "one_get_all")},
    **{name: Form(name.capitalize(), "MPI-RMA", "time") for name in ("put_all_local", "get_all_local")},
    **{name: Form(name.capitalize(), "MPI-RMA", "range") for name in ("all_put_all", "all_get_all")},
    **{name: Form(name.capitalize(), "MPI-RMA", "range") for name in ("exchange_put", "exchange_get")},
    "pingpong_mt": Form("PingPongMT", "MT", "range_rate"),
    "pingping_mt": Form("PingPingMT", "MT", "range_rate"),
    "sendrecv_mt": Form("SendRecvMT", "MT", "range_rate", 2),
    "exchange_mt": Form("ExchangeMT", "MT", "range_rate", 4),
    "uniband_mt": Form("UniBandMT", "MT", "mean_rate"),
    "biband_mt": Form("BiBandMT", "MT", "mean_rate"),
    "barrier_mt": Form("BarrierMT", "MT", "sync"),
    "bcast_mt": Form("BcastMT", "MT", "range"),
    "reduce_mt": Form("ReduceMT", "MT", "range"),
    "allreduce_mt": Form("AllReduceMT", "MT", "range"),
    "passive_put": Form("Truly_passive_put", "MPI-RMA", "passive"),
}
"""Our benchmark -> its form in IMB."""


_NAMES: Final[Mapping[str, str]] = {
    **{form.name.lower(): benchmark for benchmark, form in reversed(list(FORMS.items()))},
    "pingpongspecificsource": "latency",
    "pingpingspecificsource": "pingping",
    "put_local": "put_latency",
    "get_local": "get_latency",
}
"""IMB's name in lower case -> our benchmark, the first where there are several."""


def benchmark_of(name: str) -> str | None:
    """Our benchmark of IMB's name in any case, the first where there are several; None where it is no such name.

    >>> benchmark_of("pingpong"), benchmark_of("ping")
    ('latency', None)
    """
    return _NAMES.get(name.lower())


def reduces(name: str) -> bool:
    """Whether IMB's benchmark combines elements, so that its type is that for reductions."""
    return any(word in name.lower() for word in ("reduce", "accumulate", "fetch_and_op"))


def counts_a_block(benchmark: str, version: str | None = None) -> bool:
    """Whether IMB's ``#bytes`` are those of the block that each rank receives, where ours are those of the vector.

    It is so for reduce-scatters since IMB 2019 (``IMB_reduce_scatter.c``; before, and in its mode ``IMB2018``, the
    vector was divided).

    Args:
        benchmark: our name.
        version: the version of IMB that measured, as ``2021.11`` or ``2018 Update 1``; None for our own rows.
    """
    year = re.match(r"\d+", version or "")
    return benchmark in _OF_BLOCKS and (year is None or int(year[0]) >= _SINCE)
