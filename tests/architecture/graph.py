"""The packages of a checkout, read from its source, and the modules of omb_py that a file imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = ("omb_py", "backends", "suites", "results", "dashboards")
"""The folders of the source, in the order in which a reader meets them."""


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """All Python files of the source, without tests."""
    for top in TOP:
        yield from sorted(path for path in (root / top).rglob("*.py") if "__pycache__" not in path.parts)


def packages(root: Path = ROOT) -> dict[str, str]:
    """The first line of each package's docstring, by its folder: ``results/store``."""
    abouts = {}
    for path in source_files(root):
        if path.name == "__init__.py":
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            abouts[path.parent.relative_to(root).as_posix()] = text.partition("\n")[0]
    return abouts
