"""Communicators of some ranks: ``ncclCommSplit`` of the one of all ranks (nccl.h, since NCCL 2.18).

Every rank takes part in every split, also those that get no communicator from it. Groups without a common rank come out
of one split, so the groups of ``--groups`` cost one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from omb_py.backends.nccl.library import Library
from omb_py.engine.program.groups import Group

NO_COLOR: Final = -1
"""``NCCL_SPLIT_NOCOLOR``: this rank gets no communicator."""


def splits(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups in as few splits as they need in this order: those of a split have no rank in common."""
    in_splits: list[list[Group]] = []
    for group in groups:
        free = next((split for split in in_splits if not any(set(group) & set(other) for other in split)), None)
        if free is None:
            in_splits.append([group])
        else:
            free.append(group)
    return in_splits


def communicators(library: Library, world: int, rank: int, groups: Sequence[Group]) -> Iterator[tuple[Group, int]]:
    """Make the communicators of some groups, together with all ranks, which name the same groups in the same order.

    Args:
        library: NCCL or RCCL.
        world: handle of the communicator of all ranks, whose configuration they inherit.
        rank: this one.
        groups: ranks, in the order that they have in their communicator.

    Yields:
        The groups of this rank, each with its handle.

    Raises:
        EnvironmentProblem: the library refused, or has no ncclCommSplit.
    """
    for split in splits(groups):
        color, mine = next(((c, group) for c, group in enumerate(split) if rank in group), (NO_COLOR, ()))
        handle = library.split(world, color, mine.index(rank) if mine else 0)
        if mine:
            yield mine, handle


def everybodys(groups_of_ranks: Sequence[Sequence[Group]]) -> list[Group]:
    """The groups of all ranks, each once, in an order that is the same everywhere."""
    return sorted({group for groups in groups_of_ranks for group in groups})
