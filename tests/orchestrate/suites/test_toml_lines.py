"""The line of each key: in documents whose every number is the line it stands on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.orchestrate.suites.toml_values import KeyPath, key_lines

NAMES = st.sampled_from(["a", "b-1", "_", "42", '"c d"', "'e.f'", '"g\\"\\u0041"', '"]"', "'#'", '"="'])
FILLERS = st.sampled_from(
    [
        "# a comment = [1]",
        "",
        '"""\n"two" \\""" \nlines"""',
        "'''\n'#' = [\n'''",
        '"a # b [ ] \\" ="',
        "'\\'",
        "1979-05-27 07:32:00",
        "-1.5e3",
        "true",
        '"""four quotes""""',
        "'''four quotes''''",
        '""""x"""',
        '""',
        "''",
        "[\n1, # [\n 2,\n]",
        "{ x = \"}\", y = [1, {z = ']'}] }",
    ]
)
SHAPES = st.recursive(st.just("line"), lambda inner: st.lists(inner, max_size=3), max_leaves=5)


class Writer:
    """Writes a document and keeps every name once in its table."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.text, self.number = draw, "", 0

    @property
    def line(self) -> int:
        return 1 + self.text.count("\n")

    def value(self, shape: Any) -> None:
        if shape == "line":
            self.text += str(self.line)
            return
        self.text += self.draw(st.sampled_from(["[", "[\n", "[ # [\n\n"]))
        for inner in shape:
            self.value(inner)
            self.text += self.draw(st.sampled_from([",", " ,\n", ", # , ]\n"]))
        self.text += "]"

    def table(self) -> None:
        for _ in range(self.draw(st.integers(0, 4))):
            self.number += 1  # a name of its own, so that no key is given twice
            name = self.draw(st.sampled_from(["", "{} . "])).format(f"t{self.number}") + f"k{self.number}"
            quoted = self.draw(NAMES)
            self.text += f"{name}.{quoted} = "
            if self.draw(st.booleans()):
                self.value(self.draw(SHAPES))
            else:
                self.text += f"{{ p = {self.line}, q.r = [{self.line}] }}"
            self.text += "\n"
            self.filler()

    def filler(self) -> None:
        filler = self.draw(FILLERS)
        self.number += 1
        self.text += f"f{self.number} = {filler}\n" if filler and filler[0] != "#" else f"{filler}\n"


@st.composite
def documents(draw: Any) -> str:
    writer = Writer(draw)
    writer.table()
    for _ in range(draw(st.integers(0, 4))):
        writer.number += 1
        kind = draw(st.sampled_from(["[[entry]]", "[[ entry . inner ]]", "[t{}.u]", '["x".y{}] # [z]']))
        if kind == "[[ entry . inner ]]" and "[[entry]]" not in writer.text:
            continue
        writer.text += kind.format(writer.number) + "\n"
        writer.table()
    return writer.text


def leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path, value


def is_filler(path: KeyPath) -> bool:
    return any(isinstance(part, str) and part[0] == "f" and part[1:].isdigit() for part in path)


@pytest.mark.slow
@given(documents())
def test_every_number_is_its_own_line(text: str) -> None:
    lines = key_lines(text)
    found = list(leaves(tomllib.loads(text)))
    assert {path for path, _ in found} <= set(lines), "every key has a line"
    for path, value in found:
        if not is_filler(path):
            assert lines[path] == value, path


def test_tables_and_elements() -> None:
    text = 'name = "x"\n\n[defaults]\na.b = 1\n# [[entry]]\n[[entry]]\nbenchmarks = [\n  "p",\n\n  "q"\n]\n'
    text += "[[entry]]\nr = 1\n"
    assert key_lines(text) == {
        ("name",): 1,
        ("defaults",): 3,
        ("defaults", "a"): 4,
        ("defaults", "a", "b"): 4,
        ("entry", 0): 6,
        ("entry", 0, "benchmarks"): 7,
        ("entry", 0, "benchmarks", 0): 8,
        ("entry", 0, "benchmarks", 1): 10,
        ("entry", 1): 12,
        ("entry", 1, "r"): 13,
    }
