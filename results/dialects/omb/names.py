"""The names in OMB's text, versions 5.3 to 8.0: titles, heads of columns, lines above a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from omb_py.engine.devices.registry import GPU_KINDS
from omb_py.engine.program.dtypes import DTYPES
from omb_py.engine.program.rma import SYNCS, WINDOWS
from omb_py.results.dialects.omb.titles import MPI_TYPES, NCCL_SYNCS, NCCL_WINDOWS, TITLED_LIBRARIES, TITLES
from omb_py.results.dialects.reading import BadTable, quote_piece

TITLE = re.compile(r"\s*# OSU (?P<text>.+?)(?: Test)+(?P<tail> Persistent)? v(?P<version>\d[\w.]*)\s*")
"""A title line. Version 8.0 writes ``Latency Test Test`` and ``Latency Test Persistent``."""
OURS = re.compile(r"\s*# omb-py (?P<text>[a-z0-9_]+) Test v(?P<version>\d\S*)\s*")
"""The title of a benchmark that OMB lacks, printed by omb-py in OMB's style."""

ACCELERATORS: Mapping[str, str] = {kind.upper(): kind for kind in (*GPU_KINDS, "openacc", "sycl")}
"""Word in a title -> device."""
_ACCELERATOR = re.compile(rf"-({'|'.join(ACCELERATORS)})( MANAGED)?\b")
_LIBRARY = re.compile(rf"^({'|'.join(word for _, word in TITLED_LIBRARIES.values())})\b")

_MORE_TITLES = {
    "MPI Bandwidth Congestion In": "bw_fan_in",
    "MPI Bandwidth Congestion Out": "bw_fan_out",
    "MPI Neighborhood All-to-Allw Latency": "neighbor_alltoallw",
    "MPI Neighborhood Alltoallv Latency": "neighbor_alltoallv",
    "MPI Non-blocking Neighborhood All-to-All Latency": "ineighbor_alltoall",
    "MPI Non-blocking Neighborhood All-to-Allv Latency": "ineighbor_alltoallv",
    "MPI Non-blocking Neighborhood All-to-Allw Latency": "ineighbor_alltoallw",
    "MPI Non-blocking All-to-All Personalized Exchange Latency": "ialltoall",
}
"""Titles in the spelling of versions other than 7.5."""

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
    r"Bus BW\(GB/s\)": "busbw_gbps",
    r"Step\(us\)": "step",
    r"Exposed\(us\)": "exposed_us",
    r"Serial\(us\)": "serial_us",
    r"In flight\(us\)": "flight_us",
}
_HEAD = re.compile(
    r"P(?P<p>\d+(?:\.\d+)?) Tail (?:Lat\(us\)|BW\(MB/s\))|"
    + "|".join(f"({head})" for head in sorted(_HEADS, key=len, reverse=True))
)
_KEYS = [_HEADS[head] for head in sorted(_HEADS, key=len, reverse=True)]
HEAD_LINE = re.compile(r"\s*#? ?(?:Size\s+(?=[A-Z])|(?:Avg )?Latency ?\(us\)|(?:Overall|Step)\(us\))")
VARIED_HEAD = re.compile(r"\s*#(?:\s+\d{1,6})+(?P<checked>\s+Validation)?\s*")

_TYPES = {mpi: name for name, mpi in MPI_TYPES.items()}
_WINDOWS = {text: name for names in (WINDOWS, NCCL_WINDOWS) for name, text in names.items()}
_SYNCS = {text: name for names in (SYNCS, NCCL_SYNCS) for name, text in names.items()}


@cache
def _titles() -> Mapping[str, tuple[str, ...]]:
    """Benchmarks by title, without accelerator and in lower case; several may share a title."""
    by_title: dict[str, tuple[str, ...]] = {}
    known = [(title.text.format(accel=""), name) for name, title in TITLES.items()]
    for text, name in (*known, *_MORE_TITLES.items()):
        by_title[text.casefold()] = (*by_title.get(text.casefold(), ()), name)
    return by_title


def candidates(text: str) -> tuple[str, ...]:
    """The benchmarks that a title may mean, the likeliest first; empty for an unknown title."""
    plain = _LIBRARY.sub("MPI", _ACCELERATOR.sub("", text, count=1))
    return _titles().get(" ".join(plain.split()).casefold(), ())


def accelerator(text: str) -> tuple[str | None, str]:
    """The accelerator in a title: (device, text in the title), or (None, ``""``) for a host."""
    match = _ACCELERATOR.search(text)
    return (ACCELERATORS[match[1]], match[0]) if match else (None, "")


def collective_library(text: str) -> str | None:
    """The library whose name stands in the place of MPI in a title; None for MPI."""
    match = _LIBRARY.match(text)
    return next((name for name, (_, word) in TITLED_LIBRARIES.items() if match and word == match[1]), None)


def columns(head: str) -> tuple[str, ...]:
    """The columns that a head names, with ``size`` first if it has one. Raises BadTable for an unknown column.

    >>> columns("# Size      Bandwidth (MB/s) P50 Tail BW(MB/s)")
    ('size', 'value', 'tail_p50')
    """
    body = head.strip().removeprefix("#").strip()
    names = ["size"] if body.startswith("Size") else []
    body = body.removeprefix("Size")
    end = 0
    for match in _HEAD.finditer(body):
        if body[end : match.start()].strip():
            break
        end = match.end()
        names.append(f"tail_p{float(match['p']):.12g}" if match["p"] else _KEYS[(match.lastindex or 2) - 2])
    if body[end:].strip():
        raise BadTable(f"unknown column {quote_piece(body[end:])}")
    if len(set(names)) < len(names):
        raise BadTable("a column stands twice in the head")
    return tuple("compute_us" if name == "compute" and "step" in names else name for name in names)


def is_rate(head: str) -> bool:
    """Whether the results below a head are rates in MB/s; else they are times.

    >>> is_rate("# Size      Bandwidth (MB/s)"), is_rate("# Size       Avg Latency(us)")
    (True, False)
    """
    return "MB/s" in head


def dtype_of(text: str) -> str:
    """Convert the type in a ``# Datatype:`` line to omb-py's name. Raises BadTable."""
    name = text.strip().removesuffix(".").strip()
    if all(part in DTYPES for part in name.split("+")):  # of a workload, whose calls may have several
        return name
    if name not in _TYPES:
        raise BadTable(f"unknown datatype {quote_piece(name)}")
    return _TYPES[name]


def window_of(text: str) -> str:
    """Convert OMB's name for the creation of a window to omb-py's. Raises BadTable."""
    return _find_name(text, _WINDOWS, "way to make a window")


def sync_of(text: str) -> str:
    """Convert OMB's name of a synchronisation to omb-py's. Raises BadTable."""
    return _find_name(text, _SYNCS, "synchronisation")


def _find_name(text: str, known: Mapping[str, str], kind: str) -> str:
    if text.strip() not in known:
        raise BadTable(f"unknown {kind} {quote_piece(text)}")
    return known[text.strip()]
