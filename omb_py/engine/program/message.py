"""A message as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """Bytes to or from a rank of the world. Both ends name the same tag."""

    peer: int
    nbytes: int
    tag: int = 1
    answer: bool = False
    """To be received: the sender answers whoever comes first, all with the same bytes."""
