"""What OMB calls things, in every version from 5.3 to 8.0: titles, heads of columns, lines above a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.results.formats.osu_titles import TITLES
from omb_py.results.importers.model import BadTable, shown

TITLE = re.compile(r"\s*# OSU (?P<text>.+?)(?: Test)+(?P<tail> Persistent)? v(?P<version>\d[\w.]*)\s*")
"""8.0 writes ``Latency Test Test`` and ``Latency Test Persistent``."""
OURS = re.compile(r"\s*# omb-py (?P<text>[a-z0-9_]+) Test v(?P<version>\d\S*)\s*")
"""A benchmark that OMB lacks, printed by omb-py in OMB's manner."""

ACCELERATORS: Mapping[str, str] = {"CUDA": "cuda", "ROCM": "rocm", "OPENACC": "openacc", "SYCL": "sycl"}
_ACCELERATOR = re.compile(r"-(CUDA|OPENACC|ROCM|SYCL)( MANAGED)?\b")
_XCCL = re.compile(r"^(NCCL|RCCL)\b")

_MORE_TITLES = {
    "MPI Bandwidth Congestion In": "bw_fan_in",
    "MPI Bandwidth Congestion Out": "bw_fan_out",
    "MPI Neighborhood All-to-Allw Latency": "neighbor_alltoallw",
    "MPI Neighborhood Alltoallv Latency": "neighbor_alltoallv",
    "MPI Non-blocking Neighborhood Allgatherv Latency": "ineighbor_allgatherv",
    "MPI Non-blocking All-to-All Personalized Exchange Latency": "ialltoall",
}
"""Spellings of other versions than 7.5."""

_HEADS: Mapping[str, str] = {
    r"Avg Latency ?\(us\)": "value",
    r"Latency ?\(us\)": "value",
    r"Bandwidth \(MB/s\)": "value",
    r"MB/s": "value",
    r"Messages/s": "message_rate",
    r"Min Latency ?\(us\)": "rank_min_us",
    r"Max Latency ?\(us\)": "rank_max_us",
    r"Iterations": "iterations",
    r"Validation": "validated",
    r"Transmit Size": "transmit_size",
    r"Overall\(us\)": "overall",
    r"Compute\(us\)": "compute",
    r"Coll\. Init\(us\)": "init",
    r"MPI_Test\(us\)": "test",
    r"MPI_Wait\(us\)": "wait",
    r"Pure Comm\.\(us\)": "pure",
    r"Min Comm\.\(us\)": "min_comm",
    r"Max Comm\.\(us\)": "max_comm",
    r"Overlap\(%\)": "overlap_pct",
}
_HEAD = re.compile(
    r"P(?P<p>\d+(?:\.\d+)?) Tail (?:Lat\(us\)|BW\(MB/s\))|"
    + "|".join(f"({head})" for head in sorted(_HEADS, key=len, reverse=True))
)
_KEYS = [_HEADS[head] for head in sorted(_HEADS, key=len, reverse=True)]
HEAD_LINE = re.compile(r"\s*#? ?(?:Size\s+(?=[A-Z])|(?:Avg )?Latency ?\(us\)|Overall\(us\))")
VARIED_HEAD = re.compile(r"\s*#(?:\s+\d{1,6})+(?P<checked>\s+Validation)?\s*")

_TYPES = {dtype.mpi: name for name, dtype in DTYPES.items()}
_WINDOWS = {said: name for name, said in WINDOWS.items()}
_SYNCS = {said: name for name, said in SYNCS.items()}


@cache
def _titles() -> Mapping[str, tuple[str, ...]]:
    """Benchmarks by their title, without accelerator and case: two may share one."""
    found: dict[str, tuple[str, ...]] = {}
    known = [(title.text.format(accel=""), name) for name, title in TITLES.items()]
    for text, name in (*known, *_MORE_TITLES.items()):
        found[text.casefold()] = (*found.get(text.casefold(), ()), name)
    return found


def candidates(text: str) -> tuple[str, ...]:
    """The benchmarks that a title may mean, the likeliest first; empty when OMB's is not one that omb-py knows."""
    plain = _XCCL.sub("MPI", _ACCELERATOR.sub("", text, count=1))
    return _titles().get(" ".join(plain.split()).casefold(), ())


def accelerator(text: str) -> tuple[str | None, str]:
    """(device, what stands in the title for it, ``""`` on a host)."""
    found = _ACCELERATOR.search(text)
    return (ACCELERATORS[found[1]], found[0]) if found else (None, "")


def collective_library(text: str) -> str | None:
    """``NCCL`` or ``RCCL`` of a title of xccl."""
    found = _XCCL.match(text)
    return found[1] if found else None


def columns(head: str) -> tuple[str, ...]:
    """The columns that a head names: ``size`` first where there is one. Raises BadTable on one that is not known.

    >>> columns("# Size      Bandwidth (MB/s) P50 Tail BW(MB/s)")
    ('size', 'value', 'tail_p50')
    """
    body = head.strip().removeprefix("#").strip()
    found = ["size"] if body.startswith("Size") else []
    body = body.removeprefix("Size")
    end = 0
    for match in _HEAD.finditer(body):
        if body[end : match.start()].strip():
            break
        end = match.end()
        found.append(f"tail_p{float(match['p']):g}" if match["p"] else _KEYS[(match.lastindex or 2) - 2])
    if body[end:].strip():
        raise BadTable(f"unknown column {shown(body[end:])}")
    if len(set(found)) < len(found):
        raise BadTable("a column stands twice in the head")
    return tuple(found)


def dtype_of(said: str) -> str:
    """Our name of a ``# Datatype:``. Raises BadTable."""
    name = said.strip().removesuffix(".").strip()
    if name not in _TYPES:
        raise BadTable(f"unknown datatype {shown(name)}")
    return _TYPES[name]


def window_of(said: str) -> str:
    """Our name of how a window is made. Raises BadTable."""
    return _named(said, _WINDOWS, "way to make a window")


def sync_of(said: str) -> str:
    """Our name of a synchronisation. Raises BadTable."""
    return _named(said, _SYNCS, "synchronisation")


def _named(said: str, known: Mapping[str, str], what: str) -> str:
    if said.strip() not in known:
        raise BadTable(f"unknown {what} {shown(said)}")
    return known[said.strip()]
