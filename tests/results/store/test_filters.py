"""Filters as people type them."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.results.store.filters import Filter, filters_text, parse_filter, parse_filters


@pytest.mark.parametrize(
    ("text", "read", "typed"),
    [
        ("ranks=4", Filter("ranks", "4"), "ranks=4"),
        ("date=2026-11-01..", Filter("date", "2026-11-01.."), "date=2026-11-01.."),
        ("tag=rack=a3", Filter("tags", "a3", "rack"), "tag=rack=a3"),
        ("tags.rack=a3", Filter("tags", "a3", "rack"), "tag=rack=a3"),
        ("tag=a.b=v=w", Filter("tags", "v=w", "a.b"), "tag=a.b=v=w"),
        ("tags.k=", Filter("tags", "", "k"), "tag=k="),
    ],
)
def test_a_word_names_a_column_or_a_tag(text: str, read: Filter, typed: str) -> None:
    assert parse_filter(text) == read and read.text() == typed
    assert parse_filter(read.text()) == read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ranks", "filter 'ranks' is not COLUMN=VALUE or tag=K=V"),
        ("=4", "is not COLUMN=VALUE or tag=K=V"),
        ("tag=v", "'tag=v' is not tag=K=V, as tag=v=VALUE"),
        ("tag==a", "is not tag=K=V, as tag=cluster=VALUE"),
        ("tags=foo=1", "'tags=foo=1': a tag is tag=K=V, as tag=foo=1"),
        ("tags=foo", "a tag is tag=K=V, as tag=foo=VALUE"),
        ("nccl=2.18", "the store has no column 'nccl': if it is a tag, write tag=nccl=2.18;"),
        ("benchmrk=bw", "the store has no column 'benchmrk': did you mean benchmark?"),
    ],
)
def test_another_word_is_answered_with_what_to_type(text: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_filter(text)
    assert said in str(told.value)


def test_several_words_are_arguments_of_load() -> None:
    wanted = parse_filters(["ranks=4", "tag=v=a", "tags.w=b"])
    assert wanted == {"ranks": "4", "tags": {"v": "a", "w": "b"}}
    assert filters_text(wanted) == "ranks=4, tag=v=a, tag=w=b"
    for twice, name in ((["ranks=4", "ranks=8"], "ranks"), (["tag=v=a", "tags.v=b"], "tag=v")):
        with pytest.raises(UsageError, match=f"filter '{name}' is given twice"):
            parse_filters(twice)
