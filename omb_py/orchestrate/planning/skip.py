"""What is left out of a run, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that cannot be measured here."""

    what: str
    """Benchmark, and what else tells it from others."""
    reason: str
    failed: bool = False
    """It began, and ranks died or hung."""
