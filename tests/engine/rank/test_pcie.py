"""Links of cards, read from a made-up sys file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.engine.rank.system_info import pcie_links
from tests.support.machines.pci_cards import card


def test_a_network_card_has_the_names_of_its_interfaces(tmp_path: Path) -> None:
    card(tmp_path, "0000:18:00.0", "0x020700", "16.0 GT/s PCIe", 16, names={"net": "ib0", "infiniband": "mlx5_0"})
    (link,) = pcie_links(tmp_path)
    assert link == {
        "address": "0000:18:00.0",
        "kind": "network",
        "names": ["ib0", "mlx5_0"],
        "gts": 16.0,
        "width": 16,
        "most_gts": 16.0,
        "most_width": 16,
        "slot_width": 16,
    }


def test_the_width_of_card_and_slot_are_told_apart(tmp_path: Path) -> None:
    card(tmp_path, "0000:3b:00.0", "0x030200", "8.0 GT/s PCIe", 8, most=("16.0 GT/s PCIe", 16), slot=8)
    (link,) = pcie_links(tmp_path)
    assert (link["kind"], link["width"], link["most_width"], link["slot_width"]) == ("GPU", 8, 16, 8)
    assert (link["gts"], link["most_gts"]) == (8.0, 16.0)


@pytest.mark.parametrize(
    ("code", "speed", "width"),
    [("0x010802", "16.0 GT/s PCIe", 4), ("0x020000", "Unknown", 0), ("0x020000", "Unknown speed", 255)],
)
def test_disks_and_cards_without_a_link_are_left_out(tmp_path: Path, code: str, speed: str, width: int) -> None:
    card(tmp_path, "0000:01:00.0", code, speed, width)
    assert pcie_links(tmp_path) == []


def test_a_machine_without_pci_has_none(tmp_path: Path) -> None:
    assert pcie_links(tmp_path) == []
