"""What all oracles share: how an input is damaged, and what judges it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.results.dialects.test_fuzz import mutated

Judge = Callable[[random.Random], tuple[int, list[str]]]
"""Makes one input and reads it: how many values came through, and which of them the input does not have.

Raises OmbError where the input is refused.
"""


def changed(rng: random.Random, seeds: Sequence[bytes], words: Sequence[bytes], letters: bytes) -> bytes:
    """One of the texts, with one byte changed, added or removed as often as damaged in some larger way."""
    if rng.random() < 0.5:
        return mutated(rng, seeds, words)
    data = bytearray(rng.choice(seeds))
    at = rng.randrange(len(data))
    data[at : at + rng.randrange(2)] = bytes([rng.choice(letters)] * rng.randrange(2))
    return bytes(data)
