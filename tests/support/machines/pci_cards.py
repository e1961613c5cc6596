"""Cards in a made-up sys file system, laid out as Linux does: ``bus/pci/devices`` links into the tree of ports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def card(
    system: Path,
    address: str,
    code: str,
    speed: str,
    width: int,
    most: tuple[str, int] | None = None,
    slot: int | None = None,
    names: Mapping[str, str] | None = None,
) -> None:
    """Put in a card below a port of its own; `most` and `slot` are as fast and as wide as the link where not given."""
    port = system / "devices" / f"port-{address}"
    folder = port / address
    for part, name in (names or {}).items():
        (folder / part / name).mkdir(parents=True)
    folder.mkdir(parents=True, exist_ok=True)
    fastest, widest = most or (speed, width)
    facts = {"class": code, "current_link_speed": speed, "current_link_width": width}
    for name, value in {**facts, "max_link_speed": fastest, "max_link_width": widest}.items():
        (folder / name).write_text(f"{value}\n")
    (port / "max_link_width").write_text(f"{slot or width}\n")
    (system / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
    (system / "bus/pci/devices" / address).symlink_to(folder)
