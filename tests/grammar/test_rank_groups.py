"""Groups of ranks: how they are written, and who is in them."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.grammar.rank_groups import by_group, groups_of_ranks, parse_groups, uneven


@pytest.mark.parametrize(
    ("text", "hosts", "groups"),
    [
        ("", (), ((0, 1, 2, 3),)),
        ("2x2", (), ((0, 1), (2, 3))),
        ("1x4", (), ((0, 1, 2, 3),)),
        ("4x1", (), ((0,), (1,), (2,), (3,))),
        ("mod:2", (), ((0, 2), (1, 3))),
        ("MOD 2", (), ((0, 2), (1, 3))),
        ("%2", (), ((0, 2), (1, 3))),
        ("div:2", (), ((0, 1), (2, 3))),
        ("/2", (), ((0, 1), (2, 3))),
        ("AND 0x1", (), ((0, 2), (1, 3))),
        ("&0b10", (), ((0, 1), (2, 3))),
        ("OR 0x1", (), ((0, 1), (2, 3))),
        ("|2", (), ((0, 2), (1, 3))),
        ("and:0", (), ((0, 1, 2, 3),)),
        ("node", ("b", "a", "b", "a"), ((0, 2), (1, 3))),
        ("gpu", ("a", "a", "b", "b"), ((0, 2), (1, 3))),
        ("gpu", ("b", "a", "b", "a"), ((0, 1), (2, 3))),
        ("color:0,1,1,0", (), ((0, 3), (1, 2))),
        ("color:left, right, left, right", (), ((0, 2), (1, 3))),
    ],
)
def test_every_rank_is_in_one_group(text: str, hosts: tuple[str, ...], groups: tuple[tuple[int, ...], ...]) -> None:
    assert groups_of_ranks(parse_groups(text) if text else "", 4, hosts) == groups


@pytest.mark.parametrize(
    "text", ["", "2", "2x", "0x2", "mod:0", "mod", "nodes", "-1x2", "2x2x2", "div:0", "xor:1", "color:", "color:0,,1"]
)
def test_what_is_no_group_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"4x2 \(four groups of two ranks\), mod:8, div:8, and:0x7"):
        parse_groups(text)


def test_words_may_be_in_capitals() -> None:
    assert (parse_groups(" 2X2 "), parse_groups("NODE")) == ("2x2", "node")


@pytest.mark.parametrize("text", ["AND 0x7", "and:7", "&7", "& 0b111"])
def test_one_operation_has_one_name(text: str) -> None:
    """So that rows of the same groups are one cell, however the groups were written."""
    assert parse_groups(text) == "and:7"


@pytest.mark.parametrize(
    ("text", "ranks", "error"),
    [
        ("3x2", 4, "--groups 3x2 has 6 ranks, not 4: use -n 6"),
        ("color:0,0,1", 4, "--groups color:0,0,1 has colors for 3 ranks, not 4: give each rank one"),
        ("and:2", 6, "--groups and:2 makes groups of 2 and 4 of 6 ranks: all must have as many"),
        ("mod:2", 5, "--groups mod:2 makes groups of 2 and 3 of 5 ranks: all must have as many"),
    ],
)
def test_groups_are_of_one_size_and_hold_all_ranks(text: str, ranks: int, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        groups_of_ranks(text, ranks)
    assert str(caught.value) == error


def test_groups_of_several_sizes_are_of_launches_that_nobody_words() -> None:
    text = uneven(((4, 1), (0,), (3, 2)), 5)
    assert groups_of_ranks(text, 5) == ((0,), (1, 4), (2, 3))
    assert by_group([0.0, 10.0, 20.0, 30.0, 40.0], groups_of_ranks(text, 5)) == [[0.0], [10.0, 40.0], [20.0, 30.0]]
    with pytest.raises(UsageError, match="write 4x2"):
        parse_groups(text)
