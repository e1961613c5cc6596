"""The title and the table layout of every benchmark of OMB 7.5, and how the texts of other versions differ.

The odd spellings are OMB's own. Both the writer and the reader of OMB's text need them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from omb_py.engine.program.dtypes import DTYPES

Layout = Literal[
    "latency",
    "bandwidth",
    "barrier",
    "overlap",
    "overlap_barrier",
    "one_sided",
    "one_sided_bandwidth",
    "rate",
    "partitioned",
    "init",
    "hello",
    "step",
]
"""``latency``: size, Avg; ``bandwidth``: size, MB/s; ``barrier``: Avg without a size; ``overlap``: the columns of
non-blocking collectives; ``one_sided``: size, ``Latency (us)``; ``rate``: MB/s and Messages/s;
``step``: omb-py's own, for a workload."""


TITLED_LIBRARIES: Mapping[str, tuple[str, str]] = {
    "NCCL": ("nccl", "NCCL"),
    "RCCL": ("nccl", "RCCL"),
    "torch gloo": ("gloo", "Gloo"),
    "oneCCL": ("oneccl", "oneCCL"),
    "UCC": ("ucc", "UCC"),
}
"""Libraries that are no MPI -> their backend, and the word in the place of MPI in a title. OMB has the first two."""
MPI_TYPES = {name: dtype.mpi for name, dtype in DTYPES.items()} | {"byte": "MPI_BYTE"}
"""Our type -> MPI's name of it; that of bytes only other tools have."""
NCCL_WINDOWS: Mapping[str, str] = {"allocate": "ncclCommWindowRegister"}
NCCL_SYNCS: Mapping[str, str] = {"pscw": "ncclSignal/ncclWaitSignal"}
"""Window kind and synchronisation -> NCCL's functions for it, in the place of MPI's."""


@dataclass(frozen=True, slots=True)
class Title:
    """The title of a benchmark and the layout of its table."""

    text: str
    """The words between ``# OSU `` and `` Test v7.5``; ``{accel}`` is the place of ``-CUDA`` and the like."""
    layout: Layout
    reduces: bool = False
    """Whether the benchmark reduces; MPI_CHAR then becomes MPI_SIGNED_CHAR."""
    typed: bool = True
    """Whether the datatype is printed, where the layout has it."""
    atomic: bool = False
    """Whether validation prints ``passed`` instead of ``Pass``, and the result of each rank at the end."""

    @property
    def blank_first(self) -> bool:
        """Whether a blank line comes before the title."""
        return self.layout in ("latency", "bandwidth", "barrier", "overlap", "overlap_barrier", "partitioned")

    @property
    def datatype_line(self) -> bool:
        """Whether a ``# Datatype:`` line comes before the head of the table."""
        return self.typed and self.layout not in ("barrier", "overlap_barrier", "init", "hello")

    def line(self, accel: str = "", version: str = "7.5") -> str:
        """The title line without its line end; `accel` is ``""``, ``"-CUDA"``, …"""
        return f"# OSU {self.text.format(accel=accel)} Test v{version}"


_SPOKEN = {
    "allgather": "Allgather",
    "allgatherv": "Allgatherv",
    "allreduce": "Allreduce",
    "barrier": "Barrier",
    "bcast": "Broadcast",
    "gather": "Gather",
    "gatherv": "Gatherv",
    "reduce": "Reduce",
    "reduce_scatter": "Reduce_scatter",
    "reduce_scatter_block": "Reduce_scatter_block",
    "scatter": "Scatter",
    "scatterv": "Scatterv",
}

_EXCHANGE = {"alltoall": "All-to-All", "alltoallv": "All-to-Allv", "alltoallw": "All-to-Allw"}

_REDUCTIONS = frozenset({"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"})

_NEIGHBORHOOD = {
    "neighbor_allgather": "Neighborhood Allgather",
    "neighbor_allgatherv": "Neighborhood Allgatherv",
    "neighbor_alltoall": "Neighborhood Alltoall",
    "neighbor_alltoallv": "Neighborhood All-to-Allv",
    "neighbor_alltoallw": "All-to-Allw Personalized Exchange",
    "ineighbor_allgather": "Non-blocking Neighborhood Allgather",
    "ineighbor_allgatherv": "Non-blocking Neighborhood Allgatherv",
    "ineighbor_alltoall": "Non-blocking Neighborhood Alltoall",
    "ineighbor_alltoallv": "Non-blocking Neighborhood Alltoallv",
    "ineighbor_alltoallw": "Non-blocking Neighborhood Alltoallw",
}

_POINT_TO_POINT = {
    "latency": Title("MPI{accel} Latency", "latency"),
    "latency_mt": Title("MPI{accel} Multi-threaded Latency", "latency"),
    "latency_mp": Title("MPI{accel} Multi-process Latency", "latency"),
    "multi_lat": Title("MPI Multi Latency", "latency"),
    "bw": Title("MPI{accel} Bandwidth", "bandwidth"),
    "bibw": Title("MPI{accel} Bi-Directional Bandwidth", "bandwidth"),
    "mbw_mr": Title("MPI Multiple Bandwidth / Message Rate", "rate"),
    "partitioned_latency": Title("MPI{accel} Partitioned Latency", "partitioned"),
    "latency_persistent": Title("MPI{accel} Latency Persistent", "latency"),
    "bw_persistent": Title("MPI{accel} Bandwidth Persistent", "bandwidth"),
    "bibw_persistent": Title("MPI{accel} Bi-Directional Bandwidth Persistent", "bandwidth"),
    "bw_fan_in": Title("MPI{accel} Bandwidth", "bandwidth"),
    "bw_fan_out": Title("MPI{accel} Bandwidth", "bandwidth"),
}

_ONE_SIDED = {
    "put_latency": Title("MPI_Put{accel} Latency", "one_sided"),
    "get_latency": Title("MPI_Get{accel} latency", "one_sided"),
    "acc_latency": Title("MPI_Accumulate{accel} latency", "one_sided", atomic=True),
    "get_acc_latency": Title("MPI_Get_accumulate latency", "one_sided", typed=False),
    "cas_latency": Title("MPI_Compare_and_swap{accel} latency", "one_sided", atomic=True),
    "fop_latency": Title("MPI_Fetch_and_op{accel} latency", "one_sided", atomic=True),
    "put_bw": Title("MPI_Put{accel} Bandwidth", "one_sided_bandwidth"),
    "get_bw": Title("MPI_Get{accel} Bandwidth", "one_sided_bandwidth"),
    "put_bibw": Title("MPI_Put{accel} Bi-directional Bandwidth", "one_sided_bandwidth"),
}

_STARTUP = {"init": Title("MPI Init", "init"), "hello": Title("MPI Hello World", "hello")}


def _collectives() -> Iterator[tuple[str, Title]]:
    for name in (*_SPOKEN, *_EXCHANGE):
        blocking = _SPOKEN.get(name) or f"{_EXCHANGE[name]} Personalized Exchange"
        # osu_ialltoall alone has no "Personalized Exchange"; osu_ibcast alone has a capital B
        later = "All-to-All" if name == "alltoall" else blocking
        non = "Non-Blocking" if name == "bcast" else "Non-blocking"
        barrier, reduces = name == "barrier", name in _REDUCTIONS
        yield name, Title(f"MPI{{accel}} {blocking} Latency", "barrier" if barrier else "latency", reduces)
        yield (
            f"i{name}",
            Title(f"MPI{{accel}} {non} {later} Latency", "overlap_barrier" if barrier else "overlap", reduces),
        )
        yield (
            f"{name}_persistent",
            Title(f"MPI{{accel}} {blocking} Persistent Latency", "barrier" if barrier else "latency", reduces),
        )
    for name, spoken in _NEIGHBORHOOD.items():
        yield name, Title(f"MPI{{accel}} {spoken} Latency", "overlap" if name.startswith("i") else "latency")


TITLES: Mapping[str, Title] = MappingProxyType({**_POINT_TO_POINT, **dict(_collectives()), **_ONE_SIDED, **_STARTUP})
"""The title of each benchmark, by name without ``osu_``."""


def family(name: str) -> str | None:
    """The family of a benchmark of OMB; None of another."""
    if name in _POINT_TO_POINT:
        return "pt2pt"
    if name in _ONE_SIDED:
        return "one-sided"
    if name in _STARTUP:
        return "startup"
    if name in _NEIGHBORHOOD:
        return "neighborhood"
    if name not in TITLES:
        return None
    if name.endswith("_persistent"):
        return "persistent"
    return "collective" if name in _SPOKEN or name in _EXCHANGE else "non-blocking"


def origin(name: str) -> str:
    """The origin of a benchmark, in words: OMB or omb-py."""
    if name == "reduce_scatter_block_persistent":
        return f"OMB's osu_{name} since 8.0, which 7.5 has not"
    return f"OMB's osu_{name}" if name in TITLES else "not in OMB"


VERSION = "7.5"
DIALECT = f"omb-{VERSION}"

_NAME = r"omb-(\d+)\.(\d+)"


@dataclass(frozen=True, slots=True)
class OmbVersion:
    """The text style of one version of OMB."""

    text: str = VERSION
    """The version as titles state it, such as ``8.0b``."""
    number: tuple[int, int] = (7, 5)

    def blank_first(self, title: Title, pt2pt: bool) -> bool:
        """Whether a blank line precedes a title; point to point has it since 7.4, one-sided and rates since 8.0."""
        if title.layout in ("one_sided", "one_sided_bandwidth", "rate"):
            return self.number >= (8, 0)
        return title.blank_first and not (pt2pt and self.number < (7, 4))

    def latency_head(self, pt2pt: bool) -> str:
        """The head of a latency column; it has Avg for point to point since 7.4."""
        return "Latency (us)" if pt2pt and self.number < (7, 4) else "Avg Latency(us)"

    def datatype_last(self, pt2pt: bool) -> bool:
        """Whether the datatype stands below the head, as for point to point before 7.4."""
        return pt2pt and self.number < (7, 4)

    @property
    def rate_head(self) -> str:
        """The head of mbw_mr's bandwidth column."""
        return "MB/s" if self.number < (8, 0) else "Bandwidth (MB/s)"

    @property
    def titled_init(self) -> bool:
        """Whether osu_init prints a title and its unit."""
        return self.number > (5, 3)


OWN = OmbVersion()
"""The version whose text omb-py's own results have."""


def version_of(name: object) -> OmbVersion:
    """The version for a value of the column ``text_dialect``; version 7.5 when it is not one of OMB's."""
    match = re.match(_NAME, str(name))
    return OmbVersion(str(name).removeprefix("omb-"), (int(match[1]), int(match[2]))) if match else OWN
