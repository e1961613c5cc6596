"""What a run leaves out, with the reason."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skip:
    """Part of a run that could not be measured here."""

    what: str
    """Benchmark, with the options that distinguish it from others."""
    reason: str
    failed: bool = False
    """True when it began and ranks died or hung; else nothing was started."""


def print_skipped(skips: Sequence[Skip]) -> None:
    """Print which parts were skipped or failed, with the reasons; on stderr, also with --quiet."""
    reasons: dict[tuple[bool, str], dict[str, None]] = {}
    for skip in skips:
        reasons.setdefault((skip.failed, skip.reason), {})[skip.what] = None
    for (failed, reason), names in reasons.items():
        word = "failed" if failed else "skipped"
        print(f"omb-py: {word}: {', '.join(names)}: {' '.join(reason.split())}", file=sys.stderr, flush=True)


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
