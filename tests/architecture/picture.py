"""Picture and table of packages in docs/architecture.md: ``python -m tests.architecture.picture`` writes both."""

from __future__ import annotations

from html import escape

from tests.architecture.graph import ROOT, packages
from tests.architecture.marked import replaced

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
LAYERS = (
    ("the command line", "omb_py/cli", "#0072b2"),
    ("what omb-py does", "omb_py/orchestrate", "#009e73"),
    ("what people look at", "dashboards", "#a5527f"),
    ("rows and reports in print", "omb_py/printing", "#8a5a44"),
    ("what is measured", "suites", "#b35900"),
    ("what was measured", "results", "#7a6a00"),
    ("what moves bytes", "backends", "#3a7ca5"),
    ("measuring", "omb_py/engine", "#444444"),
    ("what may be asked for", "omb_py/options", "#666666"),
)
"""From the top: a title, the folder of the layer, a colour. Each layer imports from those below it."""
WIDTH, LEFT, GAP, BOX_HEIGHT, CHARACTER = 960, 190, 8, 30, 7.6


def svg() -> str:
    """The layers from top to bottom, a box for each package."""
    parts: list[str] = []
    top = 12.0
    for title, folder, colour in LAYERS:
        x, y = float(LEFT), top + GAP
        boxes: list[str] = []
        for name in packages():
            if name != folder and not name.startswith(f"{folder}/"):
                continue
            label = name.removeprefix(f"{folder}/").rpartition("omb_py/")[2]
            width = max(len(label), 8) * CHARACTER + 18
            if x + width > WIDTH - GAP:
                x, y = float(LEFT), y + BOX_HEIGHT + GAP
            boxes.append(
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="5" fill="#fff" '
                f'stroke="{colour}"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + 20:.0f}" class="package">{escape(label)}</text>'
            )
            x += width + GAP
        bottom = max(y + BOX_HEIGHT, top + 46) + GAP
        parts.append(
            f'<rect x="8" y="{top:.0f}" width="{WIDTH - 16}" height="{bottom - top:.0f}" rx="7" fill="{colour}" '
            f'fill-opacity="0.08"/><text x="20" y="{top + 22:.0f}" class="layer" fill="{colour}">{folder}/</text>'
            f'<text x="20" y="{top + 40:.0f}" class="about">{escape(title)}</text>'
        )
        parts += boxes
        top = bottom + 10
    style = (
        "text{font-family:system-ui,sans-serif}.package{font-size:13px;text-anchor:middle}"
        ".layer{font-size:14px;font-weight:600}.about{font-size:11px;fill:#555}"
    )
    note = f'<text x="20" y="{top + 12:.0f}" class="about">A layer imports only from the layers below it.</text>'
    height = top + 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="The packages of omb-py, layer by layer">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join([*parts, note])
        + "\n</svg>\n"
    )


def page(text: str) -> str:
    """The page with its table of packages made anew."""
    rows = [f"| `{name}/` | {about} |" for name, about in packages().items()]
    lines = ["| folder | what it is for |", "|---|---|", *rows]
    return replaced(text, "packages", "tests.architecture.picture", "\n".join(lines))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(svg(), encoding="utf-8")
