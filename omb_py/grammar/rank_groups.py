"""Groups of ranks: ``--groups 4x2`` (four of two consecutive ranks), ``node``, ``gpu``, or the color of each rank.

Colors are as in ``NCCL_TESTS_SPLIT`` of nccl-tests (its README, "Running multiple operations in parallel"): ``AND``,
``OR``, ``MOD`` or ``DIV`` on the rank, also ``& | % /``, and a decimal, hexadecimal or binary number.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from omb_py.errors import UsageError

if TYPE_CHECKING:
    from omb_py.results.store.row import Row

Groups = tuple[tuple[int, ...], ...]
NODE, GPU, COLOR = "node", "gpu", "color:"
_UNEVEN = "uneven:"
"""As :data:`COLOR`, of groups that may differ in size: what is one group's may not be given for all."""
_BLOCKS = r"(\d{1,6})x(\d{1,6})"
_OPERATION = r"(and|or|mod|div|[&|%/])[ :]?(0x[\da-f]{1,8}|0b[01]{1,32}|0|[1-9]\d{0,8})"
_OPERATIONS = {"and": operator.and_, "or": operator.or_, "mod": operator.mod, "div": operator.floordiv}
_SIGNS = {"&": "and", "|": "or", "%": "mod", "/": "div"}


def parse_groups(text: str) -> str:
    """Read the value of ``--groups``; operations become ``mod:8``, with a decimal number. Raises UsageError."""
    word = text.strip().lower()
    if word in (NODE, GPU) or (word.startswith(COLOR) and all(_colors(word))):
        return word
    if (blocks := re.fullmatch(_BLOCKS, word)) and int(blocks[1]) and int(blocks[2]):
        return word
    if match := re.fullmatch(_OPERATION, word):
        name, number = _SIGNS.get(match[1], match[1]), int(match[2], 0)
        if number or name in ("and", "or"):
            return f"{name}:{number}"
    raise UsageError(
        f"groups {text!r}: write 4x2 (four groups of two ranks), mod:8, div:8, and:0x7, or:0x7, node, gpu, "
        "or the color of each rank, as color:0,0,1,1"
    )


def needs_hosts(text: str) -> bool:
    """Whether ranks alone know their groups, since these depend on nodes."""
    return text in (NODE, GPU)


def _colors(text: str) -> list[str]:
    return [color.strip() for color in text.removeprefix(COLOR).split(",")]


def _color_of_each(text: str, ranks: int, hosts: Sequence[str]) -> Sequence[object]:
    if text == NODE:
        return hosts
    if text == GPU:
        return [hosts[:rank].count(hosts[rank]) for rank in range(ranks)]
    if text.startswith(COLOR):
        colors = _colors(text)
        if len(colors) != ranks:
            raise UsageError(f"--groups {text} has colors for {len(colors)} ranks, not {ranks}: give each rank one")
        return colors
    name, _, number = text.partition(":")
    return [_OPERATIONS[name](rank, int(number)) for rank in range(ranks)]


def uneven(groups: Groups, ranks: int) -> str:
    """The text of groups that may differ in size; every rank is in one of them."""
    color_of = {rank: str(color) for color, group in enumerate(groups) for rank in group}
    return _UNEVEN + ",".join(color_of[rank] for rank in range(ranks))


def by_group(values: Sequence[float], groups: Groups) -> list[list[float]]:
    """The values of each group's timed ranks: all of them, or the first ones of each group, equally many.

    Args:
        values: one for each timed rank, in the order of their numbers.
        groups: the ranks of each group.
    """
    if len(values) == sum(map(len, groups)):
        return [[values[rank] for rank in group] for group in groups]
    share = len(values) // len(groups)
    timed = sorted(rank for group in groups for rank in group[:share])
    of_rank = dict(zip(timed, values, strict=True))
    return [[of_rank[rank] for rank in group[:share]] for group in groups]


def groups_of_ranks(text: str, ranks: int, hosts: Sequence[str] = ()) -> Groups:
    """The ranks of each group, in the order of their first ranks, of one size unless they are :func:`uneven`.

    They are one group of all ranks where `text` is empty.

    Args:
        text: from :func:`parse_groups` or :func:`uneven`.
        ranks: their number.
        hosts: the host of each rank, for ``node`` (those of one host) and ``gpu`` (the first of each host, the second,
            …: where each rank has a GPU of its own, those with the same number).

    Raises:
        UsageError: the groups do not have as many ranks as there are, or not all as many.
    """
    return _groups(text, ranks, tuple(hosts) if needs_hosts(text) else ())


@lru_cache(maxsize=16)
def _groups(text: str, ranks: int, hosts: tuple[str, ...]) -> Groups:
    """The groups, made once: a process that holds many ranks asks for those of each."""
    if not text:
        return (tuple(range(ranks)),)
    if blocks := re.fullmatch(_BLOCKS, text):
        count, size = int(blocks[1]), int(blocks[2])
        if count * size != ranks:
            raise UsageError(f"--groups {text} has {count * size} ranks, not {ranks}: use -n {count * size}")
        return tuple(tuple(range(k * size, (k + 1) * size)) for k in range(count))
    colors: dict[object, list[int]] = {}
    may_differ = text.startswith(_UNEVEN)
    colored = COLOR + text.removeprefix(_UNEVEN) if may_differ else text
    for rank, color in enumerate(_color_of_each(colored, ranks, hosts)):
        colors.setdefault(color, []).append(rank)
    sizes = {len(group) for group in colors.values()}
    if len(sizes) > 1 and not may_differ:
        raise UsageError(
            f"--groups {text} makes groups of {min(sizes)} and {max(sizes)} of {ranks} ranks: all must have as many"
        )
    return tuple(map(tuple, colors.values()))


def groups_of_row(row: Row) -> Groups:
    """The groups that ran at once, of a row; empty: all ranks were one, or the row was imported."""
    text = str((row.get("parameters") or {}).get("groups", ""))
    return groups_of_ranks(text, int(row["ranks"]), row.get("hosts") or ()) if text and not text.isdecimal() else ()
