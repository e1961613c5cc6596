"""``KEY=VALUE,…`` texts: what they say is read back, and what is wrong is named in one line."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.backends.mock.config import parse
from omb_py.backends.nccl.options import settings_of
from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import parse_whole, parse_word
from omb_py.suites.training.settings import parse_training
from omb_py.suites.workloads.families import FAMILIES, parse_workload

KEYS = {
    "width": Key(parse_whole, "3", "how wide it is"),
    "shape": Key(lambda text: parse_word(text, ("round", "square")), form="round|square"),
    "mark": Key(str, repeats=True),
    "file": Key(str, normalize=lambda text: text.removeprefix("@")),
}
GRAMMAR = KeyValues(KEYS, prefix="drawing: ")
NAMES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
TEXTS = st.text(st.characters(blacklist_characters=",", blacklist_categories=("Cs", "Z", "Cc")), min_size=1)


def refusal(grammar: KeyValues, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        grammar.read(text)
    return str(caught.value)


@given(st.dictionaries(NAMES, TEXTS))
def test_texts_of_any_keys_are_read_back(values: Mapping[str, str]) -> None:
    grammar = KeyValues({name: Key(str) for name in values})
    assert grammar.read(" , ".join(f"{name} = {value}" for name, value in values.items())) == values


@given(st.integers(0, 10**15), st.sampled_from(["round", "square"]), st.lists(TEXTS, min_size=1))
def test_every_value_goes_through_its_reader(width: int, shape: str, marks: list[str]) -> None:
    text = ",".join([f"shape={shape}", *(f"mark={mark}" for mark in marks), f"width={width}", "file=@a"])
    expected = {"width": width, "shape": shape, "mark": tuple(marks), "file": "a"}
    values = GRAMMAR.read(text)
    assert values == expected
    assert list(values) == list(KEYS), "in the order of the keys, however the text orders them"


def test_keys_that_are_not_given() -> None:
    assert GRAMMAR.read("") == GRAMMAR.read(" , ,") == {"width": 3}
    assert GRAMMAR.texts("shape=round") == {"shape": ("round",)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("widht=3", "drawing: unknown setting 'widht': did you mean width?"),
        ("=3", "drawing: unknown setting '': valid: file, mark, shape, width"),
        ("width", "drawing: width needs a value, as width=3"),
        ("shape=", "drawing: shape needs a value, as shape=round|square"),
        ("mark=", "drawing: mark needs a value, as mark=…"),
        ("width=1, width=2", "drawing: width is given twice"),
        ("width=-1", "drawing: width: '-1' is not a whole number from 0 on"),
        ("shape=squre", "drawing: shape: 'squre': did you mean square?"),
    ],
)
def test_what_is_wrong(text: str, says: str) -> None:
    assert refusal(GRAMMAR, text) == says


def test_a_grammar_words_its_messages_itself() -> None:
    grammar = KeyValues(
        {"width": Key(parse_whole, form="NUMBER, as 3")},
        unknown="no {key!r} here: {nearest}",
        missing="{key} of nothing: {form}",
        repeated="{key} again",
        malformed="{key}={value!r} is not {form}: {error}",
    )
    assert refusal(grammar, "wdth=1") == "no 'wdth' here: did you mean width?"
    assert refusal(grammar, "width") == "width of nothing: NUMBER, as 3"
    assert refusal(grammar, "width=1,width=1") == "width again"
    assert refusal(grammar, "width={x}").startswith("width='{x}' is not NUMBER, as 3: '{x}' is not a whole number")


@given(st.lists(NAMES, min_size=1, unique=True), st.text("abcdefghijklmnopqrstuvwxyz=_{}", max_size=9))
def test_an_unknown_key_has_the_nearest(names: list[str], word: str) -> None:
    grammar = KeyValues({name: Key(str) for name in names})
    key = word.partition("=")[0]
    if word and key not in names:
        assert refusal(grammar, word) == f"unknown setting {key!r}: {nearest(key, names)}"


GRAMMARS = {
    "": GRAMMAR.read,
    "mock": parse,
    "nccl": settings_of,
    "training": lambda text: parse_training(f"gpt2-124m:{text}"),
    **{name: lambda text, name=name: parse_workload(f"{name}:{text}") for name in FAMILIES},
}
WORDS = st.sampled_from(
    ["alpha", "hang", "scale", "min_ctas", "seq", "trace", "=", ",", ":", "/", "-", "1us", "2", "@x"]
)


@given(st.sampled_from(sorted(GRAMMARS)), st.lists(WORDS | st.text(max_size=5), max_size=12).map("".join))
def test_any_text_is_read_or_refused_in_one_line(name: str, text: str) -> None:
    try:
        GRAMMARS[name](text)
    except UsageError as error:
        assert str(error) and "\n" not in str(error)
