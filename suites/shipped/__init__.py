"""The suites that come with omb-py: TOML files in this folder (docs/suites.md)."""

from __future__ import annotations

from pathlib import Path


def shipped() -> dict[str, Path]:
    """The suites: name -> file, sorted by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}
