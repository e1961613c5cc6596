"""Names of the source: one class for each public name, and functions that say what they do."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.architecture.graph import ROOT, source_files

SAYS_NOTHING = frozenset(
    "words known part place places whose alike telling travelling found one made told said".split()
)
"""Names that do not say what a function does or a class stands for."""
NO_VERB = frozenset(
    "of by at on in over above below inside with without within between behind beside beyond apart together alone into "
    "here near left kept own other same several each every once again both more missing no about".split()
)
"""A preposition or adverb says what a function does only behind its object, as in ``region.at(k)``."""


class Definition(NamedTuple):
    """A class or a function of the source."""

    path: Path
    name: str
    is_class: bool
    is_phrase: bool
    """Whether it is read behind its object: a public method, or a property."""


_DEFINED = re.compile(r"^( *)(@property\n *)?(?:async )?(class|def) (\w+)", re.M)


@cache
def definitions() -> list[Definition]:
    return [
        Definition(path.relative_to(ROOT), name, kind == "class", bool(prop or (indent and not name.startswith("_"))))
        for path in source_files()
        for indent, prop, kind, name in _DEFINED.findall(path.read_text(encoding="utf-8"))
    ]


def test_a_public_class_name_stands_for_one_thing() -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, name, is_class, _ in definitions():
        if is_class and not name.startswith("_"):
            files[name].append(str(path))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}


def test_every_function_and_class_has_a_name_that_says_something() -> None:
    vague = [
        f"{path}: {name}"
        for path, name, is_class, is_phrase in definitions()
        if name.strip("_").lower() in (SAYS_NOTHING if is_class or is_phrase else SAYS_NOTHING | NO_VERB)
    ]
    assert vague == [], "take a verb for what a function does, a noun for what a class stands for"
