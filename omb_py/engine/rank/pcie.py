"""PCI Express links of network cards and accelerators, as Linux reports them (Documentation/ABI/testing/sysfs-bus-pci).

A link trains to what the card, its slot and the wires between them can do. A card that stands in a slot with fewer
lanes, or whose contacts are dirty, gets a narrower link and says so here only.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from omb_py.grammar.json_values import JsonValue

KINDS: Final = {"02": "network", "03": "GPU", "12": "accelerator"}
"""First two digits of a PCI class code (PCI Code and ID Assignment Specification) -> our word."""


def pcie_links(system: Path | None = None) -> list[dict[str, JsonValue]]:
    """The links of network cards, GPUs and accelerators.

    Args:
        system: the mounted sys file system; None: ``/sys``.

    Returns:
        For each card that has a link: ``address``, ``kind`` (a value of :data:`KINDS`), ``names`` (of its network
        interfaces and InfiniBand devices), ``gts`` and ``width`` as they are, ``most_gts`` and ``most_width`` of the
        card, ``slot_width`` of the port above it, None where that says nothing. Speeds are gigatransfers per second
        on a lane.
    """
    links: list[dict[str, JsonValue]] = []
    for card in sorted(((system or Path("/sys")) / "bus/pci/devices").glob("*")):
        kind = KINDS.get(_read(card / "class").removeprefix("0x")[:2])
        gts, width = _number(card / "current_link_speed"), _number(card / "current_link_width")
        if kind is None or not gts or not width:
            continue
        port = card.resolve().parent
        links.append(
            {
                "address": card.name,
                "kind": kind,
                "names": sorted(
                    entry.name
                    for part in ("net", "infiniband")
                    if (card / part).is_dir()
                    for entry in (card / part).iterdir()
                ),
                "gts": gts,
                "width": int(width),
                "most_gts": _number(card / "max_link_speed") or gts,
                "most_width": int(_number(card / "max_link_width") or width),
                "slot_width": int(_number(port / "max_link_width") or 0) or None,
            }
        )
    return links


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _number(path: Path) -> float | None:
    """The first word, as of ``16.0 GT/s PCIe``; None where it is no number, as in ``Unknown``."""
    with suppress(ValueError, IndexError):
        return float(_read(path).split()[0])
    return None
