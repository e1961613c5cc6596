"""A grid of parallel dimensions: the ranks that work together along each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from omb_py.errors import UsageError


@dataclass(frozen=True, slots=True)
class RankGrid:
    """Ranks with a place along each dimension; ranks that are neighbors along the first have neighboring numbers."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def size(self, name: str) -> int:
        """Number of ranks along a dimension."""
        return self.sizes[self.names.index(name)]

    def coordinate(self, rank: int, name: str) -> int:
        """The place of a rank along a dimension."""
        return rank // self._step(name) % self.size(name)

    def group(self, rank: int, name: str) -> tuple[int, ...]:
        """The ranks whose place differs from that of `rank` at most along a dimension, in order."""
        step = self._step(name)
        first = rank - self.coordinate(rank, name) * step
        return tuple(range(first, first + self.size(name) * step, step))

    def shifted(self, rank: int, name: str, by: int, around: bool = False) -> int | None:
        """The rank `by` places further along a dimension; None beyond the ends, unless it goes `around`."""
        at = self.coordinate(rank, name) + by
        if not around and not 0 <= at < self.size(name):
            return None
        return rank + (at % self.size(name) - self.coordinate(rank, name)) * self._step(name)

    def _step(self, name: str) -> int:
        return prod(self.sizes[: self.names.index(name)])


def grid(ranks: int, given: Mapping[str, int], rest: str, order: Sequence[str] = ()) -> RankGrid:
    """The grid of all ranks with these dimensions.

    Args:
        ranks: number of ranks in all.
        given: dimension -> ranks along it; 0: not given.
        rest: the dimension that, if it is not given, takes the ranks that the others leave.
        order: names of the dimensions, the one whose neighbors are nearest first; empty: as in `given`.

    Raises:
        UsageError: the dimensions do not multiply to the ranks.
    """
    sizes = {name: size or 1 for name, size in given.items()}
    words = " × ".join(f"{name} {size}" for name, size in sizes.items() if given[name] or name != rest)
    if not given[rest]:
        taken = prod(size for name, size in sizes.items() if name != rest)
        if ranks % taken:
            raise UsageError(f"{words} = {taken} does not divide {ranks} ranks: use -n {_next(ranks, taken)}")
        sizes[rest] = ranks // taken
    if prod(sizes.values()) != ranks:
        raise UsageError(f"{words} = {prod(sizes.values())} ranks, not {ranks}: use -n {prod(sizes.values())}")
    names = tuple(order) or tuple(sizes)
    if sorted(names) != sorted(sizes):
        raise UsageError(f"order {'-'.join(names)} must name {', '.join(sizes)} once each")
    return RankGrid(names, tuple(sizes[name] for name in names))


def one_and_copies(name: str, size: int, ranks: int) -> RankGrid:
    """A dimension of `size` ranks (0: all) and copies of it. Raises UsageError if `size` does not divide the ranks."""
    return grid(ranks, {name: size, "copies": 0}, "copies") if size else grid(ranks, {name: 0}, name)


def _next(ranks: int, unit: int) -> int:
    return max(1, round(ranks / unit)) * unit


def divides(name: str, number: int, by: str, parts: int) -> int:
    """``number // parts``. Raises UsageError, which names both, if there is a remainder."""
    if number % parts:
        near = next(n for n in range(parts, 0, -1) if number % n == 0)
        raise UsageError(f"{name} {number} cannot be divided by {by} {parts}: use {near}")
    return number // parts
