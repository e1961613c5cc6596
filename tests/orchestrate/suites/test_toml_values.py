"""Values of a TOML file by type: what is of another type is refused with file, line and key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.errors import UsageError
from omb_py.grammar.values import parse_share
from omb_py.orchestrate.suites import toml_values as toml
from omb_py.orchestrate.suites.toml_values import LocatedError, TomlSetting, TomlTable, kind


def setting(value: object, key: str = "width", place: str = "[entry 2]") -> TomlSetting:
    return TomlSetting(key, value, "f.toml", 7, place)


@pytest.mark.parametrize(
    ("reader", "value", "read"),
    [
        (toml.text, " a b ", "a b"),
        (toml.identifier, "v1.2-rc_3", "v1.2-rc_3"),
        (toml.flag, False, False),
        (lambda s: toml.whole(s, 1, 9), 9, 9),
        (lambda s: toml.one_of(s, ("ring", "tree")), "tree", "tree"),
    ],
)
def test_values(reader: Callable[[TomlSetting], object], value: object, read: object) -> None:
    assert reader(setting(value)) == read


@pytest.mark.parametrize(
    ("reader", "value", "says"),
    [
        (toml.text, " ", "expected a text, got ' '"),
        (toml.flag, 1, "expected true or false, got 1"),
        (lambda s: toml.whole(s, 1, 9), True, "expected a whole number from 1 to 9, got true"),
        (lambda s: toml.whole(s, 1, 9), 10, "expected a whole number from 1 to 9, got 10"),
        (lambda s: toml.one_of(s, ("ring", "tree")), "rng", "'rng' is unknown: did you mean ring?"),
    ],
)
def test_bad_values(reader: Callable[[TomlSetting], object], value: object, says: str) -> None:
    with pytest.raises(LocatedError) as caught:
        reader(setting(value))
    assert str(caught.value) == f"f.toml:7: [entry 2] key 'width': {says}"


def test_a_key_at_the_top_of_the_file() -> None:
    assert str(setting(1, "name", "").error("expected a text")) == "f.toml:7: key 'name': expected a text"


def test_keys_of_a_table() -> None:
    table = TomlTable("[accept]", "f.toml", 6, (setting(1), setting(2, "height")))
    assert table.by_key(("height", "width"))["height"].value == 2
    with pytest.raises(LocatedError, match=r"key 'height': there is no such key: did you mean weight\?"):
        table.by_key(("width", "weight"))
    assert str(table.error("no bound")) == "f.toml:6: [accept]: no bound"


def test_a_reader_of_texts_gets_the_line_once() -> None:
    settings = {"width": setting("5 us")}
    assert toml.read({}, "width", toml.text, "usual") == "usual"
    with pytest.raises(LocatedError) as caught:
        toml.read(settings, "width", lambda s: parse_share(toml.text(s)), 0.0)
    assert str(caught.value) == "f.toml:7: [entry 2] key 'width': '5 us' is no share: write it as 5%"
    with pytest.raises(LocatedError) as caught:
        toml.read(settings, "width", toml.flag, False)
    assert str(caught.value).count("f.toml:7") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("true", "true"),
        ("3", "3"),
        ("0.5", "0.5"),
        ("'a'", "'a'"),
        ("{}", "a table"),
        ("[]", "an empty list"),
        ("[1]", "a list"),
        ("2026-01-01", "a date or time"),
        ("10:00:00", "a date or time"),
    ],
)
def test_a_value_in_a_message(value: str, text: str) -> None:
    assert kind(tomllib.loads(f"k = {value}")["k"]) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)
READERS = (toml.text, toml.identifier, toml.flag, lambda s: toml.whole(s, 0, 9), lambda s: toml.one_of(s, ("a", "b")))


@pytest.mark.slow
@given(VALUES, st.sampled_from(READERS))
def test_any_value_is_read_or_refused_in_one_line(value: object, reader: Callable[[TomlSetting], object]) -> None:
    try:
        reader(setting(value))
    except UsageError as error:
        assert str(error).startswith("f.toml:7: ") and "\n" not in str(error)
