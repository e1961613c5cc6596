"""Guidelines that the library violates as it is, and what a tuned one makes of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.results.checks.guidelines import Judged
from omb_py.results.units import size_text

_WORDS = {"HOLDS": "mended", "VIOLATED": "still violated"}


@dataclass(frozen=True, slots=True)
class Mended:
    """A guideline at one size that was VIOLATED by default, and its verdict with the files."""

    ranks: int
    before: Judged
    after: Judged | None
    """None: it could not be measured again."""

    @property
    def word(self) -> str:
        """``mended``, ``still violated`` or ``unclear``."""
        return _WORDS.get(self.after.verdict, "unclear") if self.after else "unclear"

    def __str__(self) -> str:
        pair = self.before.pair
        where = f"{pair.text} at {size_text(pair.size_bytes)} on {self.ranks} ranks ({pair.name})"
        before = f"by default {self.before.verdict}, {self.before.ratio:.2f} of the mock-up's time"
        after = f"with the files {self.after.verdict}, {self.after.ratio:.2f}" if self.after else "not measured again"
        return f"{self.word}: {where}: {before}; {after}"


def pairs(ranks: int, before: Sequence[Judged], after: Sequence[Judged]) -> list[Mended]:
    """The violated ones of the first list, each with its verdict in the second.

    Args:
        ranks: number of ranks of both.
        before: verdicts of the library as it is.
        after: verdicts with the files.
    """
    later = {(each.pair.name, each.pair.size_bytes): each for each in after}
    return [
        Mended(ranks, each, later.get((each.pair.name, each.pair.size_bytes)))
        for each in before
        if each.verdict == "VIOLATED"
    ]


def as_data(mended: Mended) -> dict[str, Any]:
    """One as JSON can hold it."""
    pair, after = mended.before.pair, mended.after
    return {
        "guideline": pair.name,
        "text": pair.text,
        "ranks": mended.ranks,
        "size_bytes": pair.size_bytes,
        "word": mended.word,
        "before": {"verdict": mended.before.verdict, "ratio": mended.before.ratio},
        "after": {"verdict": after.verdict, "ratio": after.ratio} if after else None,
    }
