"""The picture and the table of docs/architecture.md, made from the import graph.

``python -m tests.architecture.picture`` writes both; test_architecture.py fails when they are out of date.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from tests.architecture.graph import ROOT, Room, rooms
from tests.architecture.marked import replaced

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
FLOORS = (
    ("the command line", ("omb_py/cli",), "#0072b2"),
    ("what omb-py does", ("omb_py/orchestrate",), "#009e73"),
    ("what people look at", ("dashboards",), "#a5527f"),
    ("what is measured", ("suites",), "#b35900"),
    ("what was measured", ("results",), "#7a6a00"),
    ("what moves bytes", ("backends",), "#3a7ca5"),
    ("measuring", ("omb_py/engine",), "#444444"),
    ("what may be asked for", ("omb_py/options",), "#666666"),
)
"""From the top: a title, the folders that stand on the floor, a colour. Each floor imports from those below it."""
WIDTH, LEFT, GAP, BOX_HEIGHT, CHARACTER = 960, 190, 8, 40, 7.6


def floor_of(room: Room) -> int | None:
    """The number of the floor that a room stands on; None for rooms beside the house, as omb_py/testing."""
    for number, (_, folders, _) in enumerate(FLOORS):
        if any(room.name == folder or room.name.startswith(f"{folder}/") for folder in folders):
            return number
    return None


def short(room: Room) -> str:
    """``statistics`` of results/statistics; a layer's own folder has the layer's name."""
    folders = next(folders for _, folders, _ in FLOORS if room.name.startswith(folders))
    folder = next(folder for folder in folders if room.name.startswith(folder))
    return room.name.removeprefix(f"{folder}/") if room.name != folder else folder.rpartition("/")[2]


def svg(house: Iterable[Room]) -> str:
    """The floors from top to bottom, a box a room: its name and its number of files."""
    house = list(house)
    parts: list[str] = []
    top = 12.0
    for number, (title, folders, colour) in enumerate(FLOORS):
        # a folder that only groups others has nothing to show
        mine = [room for room in house if floor_of(room) == number and len(room.files) > 1]
        x, y = float(LEFT), top + GAP
        boxes: list[str] = []
        for room in mine:
            label = short(room)
            width = max(len(label), 8) * CHARACTER + 18
            if x + width > WIDTH - GAP:
                x, y = float(LEFT), y + BOX_HEIGHT + GAP
            boxes.append(
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="5" fill="#fff" '
                f'stroke="{colour}"/><text x="{x + width / 2:.0f}" y="{y + 17:.0f}" class="room">{escape(label)}</text>'
                f'<text x="{x + width / 2:.0f}" y="{y + 32:.0f}" class="count">{len(room.files)} files</text>'
            )
            x += width + GAP
        bottom = y + BOX_HEIGHT + GAP
        parts.append(
            f'<rect x="8" y="{top:.0f}" width="{WIDTH - 16}" height="{bottom - top:.0f}" rx="7" fill="{colour}" '
            f'fill-opacity="0.08"/><text x="20" y="{top + 24:.0f}" class="floor" fill="{colour}">'
            f'{escape("/".join(folders))}/</text><text x="20" y="{top + 42:.0f}" class="about">{escape(title)}</text>'
        )
        parts += boxes
        top = bottom + 10
    style = (
        "text{font-family:system-ui,sans-serif}.room{font-size:13px;text-anchor:middle}.floor{font-size:14px;"
        "font-weight:600}.count,.about{font-size:11px;fill:#555}.count{text-anchor:middle}"
    )
    note = f'<text x="20" y="{top + 12:.0f}" class="about">A floor imports only from the floors below it.</text>'
    height = top + 26
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="The rooms of omb-py, floor by floor">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n{note}\n</svg>\n'
    )


def table(house: Iterable[Room]) -> str:
    """A Markdown table: each room, its number of files, and what it is for."""
    lines = ["| folder | files | what it is for |", "|---|--:|---|"]
    lines += [f"| `{room.name}/` | {len(room.files)} | {room.about} |" for room in house]
    return "\n".join(lines)


def page(text: str, house: Iterable[Room]) -> str:
    """The page with its table made anew."""
    return replaced(text, "rooms", "tests.architecture.picture", table(house))


def outdated() -> list[Path]:
    """The files that no longer agree with the source."""
    house = list(rooms().values())
    current = PAGE.read_text(encoding="utf-8")
    stale = [PAGE] if page(current, house) != current else []
    return stale + ([PICTURE] if not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != svg(house) else [])


if __name__ == "__main__":
    house = list(rooms().values())
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), house), encoding="utf-8")
    PICTURE.write_text(svg(house), encoding="utf-8")
