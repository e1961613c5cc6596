"""What a run leaves out, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skip:
    """Part of a run that could not be measured here."""

    what: str
    """Benchmark, with the options that distinguish it from others."""
    reason: str
    failed: bool = False
    """True when it began and ranks died or hung; else nothing was started."""


_REASONS = 2
"""Most reasons that a line gives."""


def most_reasons(skips: Iterable[Skip]) -> str:
    """The most frequent reasons in one line, each with how many parts it holds for and the first of them.

    >>> most_reasons([Skip("bw", "too few"), Skip("bcast", "no type"), Skip("latency", "too few")])
    'too few (bw and 1 more); no type (bcast)'
    """
    parts: dict[str, dict[str, None]] = {}
    for skip in skips:
        parts.setdefault(skip.reason, {})[skip.what] = None
    ordered = sorted(parts.items(), key=lambda each: -len(each[1]))
    texts = []
    for reason, names in ordered[:_REASONS]:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        texts.append(f"{reason} ({next(iter(names))}{more})")
    left = sum(len(names) for _, names in ordered[_REASONS:])
    return "; ".join([*texts, *([f"{left} more for other reasons"] if left else [])])
