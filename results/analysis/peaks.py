"""What the links of a machine can carry at most, and the share of it that a row reached.

Peaks follow from what the machine declares (``node_facts`` of a launch) and from published rates
(``results/analysis/published.toml``, each with source and date). Nothing is guessed: where a link is unknown there is
no peak. GB = 10^9 bytes; all peaks are of one direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, TypedDict

from omb_py.results.caveats import caveats
from omb_py.results.statistics.bandwidth import formula_name
from omb_py.results.store.row import Row

if TYPE_CHECKING:
    import datetime

    from omb_py.engine.rank.launch_facts import NodeFacts, PcieCard


class PublishedRate(TypedDict, total=False):
    """An entry of published.toml: what a link carries."""

    source: str
    date: datetime.date
    gts: float
    """Of a PCI Express lane."""
    generation: int
    payload: float
    gpu: str
    """Pattern of a GPU's name."""
    gbps: float


"""What a machine declares of itself: JSON."""
PREFIX: Final = "peak."
"""Begins the name of a peak in the ``metrics`` of a row; the link's name follows. The value is GB/s."""
RING: Final = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
"""Formulas whose busbw is the traffic on each link of a ring (nccl-tests, doc/PERFORMANCE.md)."""
_BITS = 8


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that a link carries in one direction."""

    name: str
    """The link as people call it: ``PCIe 4 x16``, ``200 Gbit/s mlx5_0``, ``NVLink 18 links``."""
    gbps: float
    source: str


@dataclass(frozen=True, slots=True)
class LinkFinding:
    """A link of a machine, and what is wrong with it."""

    what: str
    peak: Peak
    problem: str = ""
    narrow: bool = False
    """It has fewer lanes than its card."""


@cache
def published() -> Mapping[str, Sequence[PublishedRate]]:
    """The published rates: table -> entries."""
    import tomllib  # a row of a CPU needs none
    from importlib.resources import files

    return tomllib.loads(files("omb_py.results.analysis").joinpath("published.toml").read_text())


def pcie_peak(gts: float, width: int) -> Peak | None:
    """The peak of a PCI Express link; None for a speed without a published encoding.

    Packets' heads, some 5 to 15 % by their size, are not taken off.
    """
    for entry in published()["pcie"]:
        if entry["gts"] == gts:
            return Peak(f"PCIe {entry['generation']} x{width}", gts * entry["payload"] * width / _BITS, entry["source"])
    return None


def links(node: NodeFacts) -> Iterator[LinkFinding]:
    """The links of a node: its PCI Express cards, then its network ports."""
    for card in node.get("pcie") or ():
        peak = pcie_peak(card["gts"], card["width"])
        if peak is not None:
            name = " ".join([card["kind"], card["address"], *card["names"]])
            yield LinkFinding(name, peak, _problem(card), card["width"] < card["most_width"])
    for name, peak in _ports(node):
        yield LinkFinding(f"port {name}", peak)


def _problem(card: PcieCard) -> str:
    most, slot = card["most_width"], card.get("slot_width")
    if card["width"] < most:
        if slot == card["width"]:
            return f"a card of x{most} in a slot of x{slot}: move it to a slot of x{most}"
        where = f"in a slot of x{slot}" if slot else "of its slot"
        return f"x{card['width']} of a card of x{most} {where}: reseat the card, clean its contacts, look at the riser"
    if card["gts"] < card["most_gts"]:
        return f"{card['gts']:g} GT/s of {card['most_gts']:g}: usual while idle; under load the slot or riser is slow"
    return ""


def _ports(node: NodeFacts) -> Iterator[tuple[str, Peak]]:
    """(device, peak) of each port that is up: those of InfiniBand and RoCE, or where there is none, of Ethernet."""
    fast = False
    for port in node.get("infiniband") or ():
        rate = re.match(r"([\d.]+) Gb/sec", str(port.get("rate") or ""))
        if rate is not None and "ACTIVE" in str(port.get("state") or ""):
            fast = True
            yield port["device"], _port(port["device"], float(rate[1]), f"/sys/class/infiniband: {port['rate']}")
    for name, facts in ({} if fast else node.get("network") or {}).items():
        mbit = str(facts.get("speed_mbit") or "")
        if mbit.isdigit() and int(mbit) > 0:
            yield name, _port(name, int(mbit) / 1000, f"/sys/class/net/{name}/speed")


def _port(name: str, gbit: float, source: str) -> Peak:
    return Peak(f"{gbit:g} Gbit/s {name}", gbit / _BITS, source)


def network_peak(node: NodeFacts) -> Peak | None:
    """What all ports of a node carry together, each at most as much as the PCI Express link of its card; or None."""
    parts = []
    for name, port in _ports(node):
        card = next((card for card in node.get("pcie") or () if name in card["names"]), None)
        behind = pcie_peak(card["gts"], card["width"]) if card else None
        parts.append(behind if behind and behind.gbps < port.gbps else port)
    if len(parts) < 2:
        return parts[0] if parts else None
    return Peak(f"{len(parts)} ports", sum(part.gbps for part in parts), "; ".join(part.source for part in parts))


def gpu_peak(node: NodeFacts) -> Peak | None:
    """What a GPU of a node exchanges with the others: by NVLink where all pairs have it, else by PCI Express."""
    inventory = node.get("gpus") or {}
    gpus = inventory.get("gpus") or ()
    ways = [re.fullmatch(r"NV(\d+)", str(pair["path"])) for pair in inventory.get("pairs") or ()]
    if gpus and ways and all(ways):
        count = min(int(way[1]) for way in ways if way)
        entry = entry_for("nvlink", str(gpus[0]["name"]))
        return Peak(f"NVLink {count} links", count * entry["gbps"], entry["source"]) if entry else None
    cards = [card for card in node.get("pcie") or () if card["kind"] in ("GPU", "accelerator")]
    slowest = [peak for card in cards if (peak := pcie_peak(card["most_gts"], card["width"]))]
    return min(slowest, key=lambda peak: peak.gbps, default=None)


def entry_for(table: str, gpu: str) -> PublishedRate | None:
    """The published rate of a GPU by its name, as ``NVIDIA H100 80GB HBM3``; None where there is none."""
    return next((e for e in published()[table] if re.search(rf"\b({e['gpu']})\b", gpu)), None)


def peak_of(row: Row, nodes: Sequence[NodeFacts]) -> Peak | None:
    """The link that bounds a row: the network between nodes, or what joins the GPUs of a node.

    Between nodes a ring passes each boundary once in a direction, so its busbw is at most what a node's ports carry.
    An alltoall sends (n - m) of a rank's (n - 1) blocks to other nodes, for m ranks of n on each.

    Args:
        nodes: ``node_facts`` of its launch.

    Returns:
        None for rows without a rate, on one node in host memory, on a device that they do not use directly, or where
        the machine declares nothing.
    """
    if rate_of(row) is None or caveats(row) or not nodes:
        return None
    several = int(row.get("nodes") or 1) > 1
    if not several and row.get("device") == "cpu":
        return None
    each = [network_peak(node) if several else gpu_peak(node) for node in nodes]
    known = [peak for peak in each if peak is not None]
    if len(known) < len(each):
        return None
    slowest = min(known, key=lambda peak: peak.gbps)
    formula = formula_name(row.get("bw_formula"))
    if not several or row.get("unit") == "MB/s" or formula in RING:
        return slowest
    ranks, on_node = int(row["ranks"]), row.get("ranks_per_node")
    if formula != "alltoall" or not on_node:
        return None
    return Peak(slowest.name, slowest.gbps * (ranks - 1) / ((ranks - on_node) * on_node), slowest.source)


def rate_of(row: Row) -> float | None:
    """The rate of a row on its links in one direction, in GB/s; None where it has none."""
    if row.get("unit") == "MB/s" and row.get("value") is not None:
        return float(row["value"]) / 1000 / (2 if "bibw" in str(row["benchmark"]) else 1)
    bus = row.get("busbw_gbps")
    return None if bus is None else float(bus)


def peak_metric(row: Row, nodes: Sequence[NodeFacts]) -> dict[str, float]:
    """The entry of ``metrics`` that holds the peak of a row; empty where there is none."""
    peak = peak_of(row, nodes)
    return {} if peak is None else {f"{PREFIX}{peak.name}": peak.gbps}


def share_of(row: Row) -> tuple[float, str] | None:
    """(rate over peak, name of the link) of a row that holds its peak; None for others."""
    rate = rate_of(row)
    for name, gbps in dict(row.get("metrics") or {}).items():
        if name.startswith(PREFIX) and rate is not None and gbps > 0:
            return rate / gbps, name.removeprefix(PREFIX)
    return None
