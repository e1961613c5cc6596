"""Groups of ranks: ``--groups 4x2`` (four of two consecutive ranks), ``mod:2`` (by rank modulo 2), ``node``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.errors import UsageError

Groups = tuple[tuple[int, ...], ...]
NODE = "node"
_BLOCKS, _MODULO = re.compile(r"(\d{1,6})x(\d{1,6})"), re.compile(r"mod:(\d{1,6})")


def parse_groups(text: str) -> str:
    """Read the value of ``--groups``. Raises UsageError."""
    word = text.strip().lower()
    numbers = [int(n) for match in (_BLOCKS.fullmatch(word), _MODULO.fullmatch(word)) if match for n in match.groups()]
    if word == NODE or (numbers and min(numbers) > 0):
        return word
    raise UsageError(f"groups {text!r}: 4x2 (four groups of two ranks), mod:2 (by rank modulo 2), or node")


def by_group(values: Sequence[float], groups: Groups) -> list[list[float]]:
    """The values of each group's timed ranks: the first ones of each group, equally many.

    Args:
        values: one for each timed rank, in the order of their numbers.
        groups: the ranks of each group.
    """
    share = len(values) // len(groups)
    timed = sorted(rank for group in groups for rank in group[:share])
    of_rank = dict(zip(timed, values, strict=True))
    return [[of_rank[rank] for rank in group[:share]] for group in groups]


def groups_of_ranks(text: str, ranks: int, hosts: Sequence[str] = ()) -> Groups:
    """The ranks of each group, all of one size; one group of all ranks where `text` is empty.

    Args:
        text: from :func:`parse_groups`.
        ranks: their number.
        hosts: the host of each rank, for ``node``.

    Raises:
        UsageError: the groups do not have as many ranks as there are, or not all as many.
    """
    if not text:
        return (tuple(range(ranks)),)
    if blocks := _BLOCKS.fullmatch(text):
        count, size = int(blocks[1]), int(blocks[2])
        if count * size != ranks:
            raise UsageError(f"--groups {text} has {count * size} ranks, not {ranks}: use -n {count * size}")
        return tuple(tuple(range(k * size, (k + 1) * size)) for k in range(count))
    colors: dict[object, list[int]] = {}
    modulo = _MODULO.fullmatch(text)
    for rank in range(ranks):
        colors.setdefault(rank % int(modulo[1]) if modulo else hosts[rank], []).append(rank)
    sizes = {len(group) for group in colors.values()}
    if len(sizes) > 1:
        raise UsageError(
            f"--groups {text} makes groups of {min(sizes)} and {max(sizes)} of {ranks} ranks: all must have as many"
        )
    return tuple(map(tuple, colors.values()))


def groups_of_row(row: Mapping[str, Any]) -> Groups:
    """The groups that ran at once, of a row; empty: all ranks were one, or the row was imported."""
    text = str((row.get("parameters") or {}).get("groups", ""))
    return groups_of_ranks(text, int(row["ranks"]), row.get("hosts") or ()) if text and not text.isdecimal() else ()
