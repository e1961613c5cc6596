"""Print the oldest version of each dependency that pyproject.toml allows, as pip reads it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def oldest_versions(requirements: list[str]) -> list[str]:
    """``numpy>=1.26`` becomes ``numpy==1.26``. Raises ValueError for a requirement without a lower bound."""
    pinned = []
    for requirement in requirements:
        match = re.match(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound")
        pinned.append("==".join(match.groups()))
    return pinned


def dependencies() -> list[str]:
    """The dependencies that pyproject.toml declares."""
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    declared: list[str] = tomllib.loads(text)["project"]["dependencies"]
    return declared


if __name__ == "__main__":
    print(*oldest_versions(dependencies()))
