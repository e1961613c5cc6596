"""Parts of a run that are left out, with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skip:
    """Part of a run that could not be measured here."""

    what: str
    """Benchmark, with the options that distinguish it from others."""
    reason: str
    failed: bool = False
    """True when it began and ranks died or hung; else nothing was started."""
