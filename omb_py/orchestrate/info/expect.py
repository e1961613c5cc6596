"""Data of ``omb-py expect``: what the links and the memory of this machine carry at most, and what results reached."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from omb_py.engine.devices.nvml import facts
from omb_py.engine.rank.launch_facts import NodeFacts
from omb_py.engine.rank.system_info import node_facts
from omb_py.results.analysis import peaks
from omb_py.results.analysis.peaks import LinkFinding, Peak
from omb_py.results.store.row import Row
from omb_py.results.units import size_text

COPIED: Final = (64 << 10, 1 << 20, 64 << 20)
"""Bytes of the copies that are measured: within the caches of a core, of a processor, and in memory."""
_APART: Final = 2048
"""Bytes between source and target: where they lie a few bytes apart within their pages, a processor takes stores for
loads of the same address, and copies a tenth as fast."""
_FEWEST_COPIES: Final = 5
_COPY_NS: Final = 50_000_000
"""Time for each size."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The largest share of a link that results of one kind reached."""

    benchmark: str
    library: str
    ranks: int
    size_bytes: int
    gbps: float
    share: float
    link: str


def machine() -> NodeFacts:
    """The facts of this node, with its GPUs where NVIDIA's driver lists them."""
    return {**node_facts(), "gpus": facts()}


def expected(node: NodeFacts, copies: Mapping[int, float]) -> list[LinkFinding]:
    """What a machine should reach.

    Args:
        node: ``node_facts``, with ``gpus``.
        copies: bytes -> GB/s that one core copies.
    """
    findings = list(peaks.links(node))
    if between := peaks.network_peak(node):
        findings.append(LinkFinding("between nodes, each way", between))
    if gpus := peaks.gpu_peak(node):
        findings.append(LinkFinding("between GPUs, each way", gpus))
    names = [str(gpu["name"]) for gpu in (node.get("gpus") or {}).get("gpus") or ()]
    if len(names) == 8 and (entry := peaks.entry_for("busbw", names[0])):
        link = Peak("what others accept", entry["gbps"], entry["source"])
        findings.append(LinkFinding("busbw of allreduce, 8 GPUs", link))
    for size, gbps in copies.items():
        link = Peak("one core", gbps, "measured now; a message through shared memory is copied once or twice")
        findings.append(LinkFinding(f"copy of {size_text(size)} in memory", link))
    return findings


def copy_rates(sizes: Iterable[int] = COPIED) -> dict[int, float]:
    """Bytes -> GB/s at which one core copies so many, the best of some tries; each byte counts once."""
    rates = {}
    for size in sizes:
        both = np.ones(2 * size + _APART, np.uint8)
        source, target = both[:size], both[size + _APART :]
        copies, fastest = 0, math.inf
        until = time.perf_counter_ns() + _COPY_NS
        while copies < _FEWEST_COPIES or time.perf_counter_ns() < until:
            began = time.perf_counter_ns()
            np.copyto(target, source)
            fastest = min(fastest, time.perf_counter_ns() - began)
            copies += 1
        rates[size] = size / fastest
    return rates


def reached(rows: Iterable[Row]) -> list[Reached]:
    """The best rows that hold a peak, one for each benchmark, library, number of ranks and link."""
    best: dict[tuple[object, ...], Reached] = {}
    for row in rows:
        share, rate = peaks.share_of(row), peaks.rate_of(row)
        if share is None or rate is None:
            continue
        key = (row["benchmark"], row["library"], row["ranks"], share[1])
        part = Reached(*key[:3], int(row["size_bytes"]), rate, *share)
        if key not in best or best[key].share < part.share:
            best[key] = part
    return list(best.values())


def as_json(findings: Sequence[LinkFinding], results: Sequence[Reached]) -> dict[str, object]:
    """Both as plain data; ``published`` has every rate that is not of this machine, with source and date."""
    tables = {
        name: [{**entry, "date": entry["date"].isoformat()} for entry in entries]
        for name, entries in peaks.published().items()
    }
    return {
        "expected": [asdict(finding) for finding in findings],
        "reached": [asdict(result) for result in results],
        "published": tables,
    }


def as_text(findings: Sequence[LinkFinding], results: Sequence[Reached], store: Path) -> str:
    """A line for each link with its source, a line below it for what is wrong, then what results reached."""
    width = max((len(finding.what) for finding in findings), default=0)
    lines = []
    for finding in findings:
        peak = finding.peak
        lines.append(f"{finding.what:<{width}}  {peak.gbps:8.2f} GB/s  {peak.name} ({peak.source})")
        if finding.problem:
            lines.append(f"{'':<{width}}  → {finding.problem}")
    if results:
        lines += ["", f"Reached in {store}:"]
    for part in results:
        what = f"{part.benchmark} {part.library} {part.ranks} ranks, {size_text(part.size_bytes)}"
        lines.append(f"{what:<{width}}  {part.gbps:8.2f} GB/s  {part.share:.0%} of {part.link}")
    return "\n".join(lines)
