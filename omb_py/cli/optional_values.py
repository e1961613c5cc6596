"""OMB's optional option values, which are glued to the option: ``-z``, ``-z50,99``, ``-clog:DIR``.

Click would take the next word as the value (``-c H H``), so the words are rewritten before it sees them:
``-z50,99`` becomes ``--tail-lat=50,99`` and a bare ``-z`` becomes ``--tail-lat=50,90,99``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glued:
    """An option whose value is optional and glued."""

    long: str
    bare: str
    """The value that the bare option stands for."""
    is_value: Callable[[str], bool]
    """Whether letters glued to the short option are its value, and not more short options, as in ``-cf``."""


def unglue(words: Iterable[str], valued: Collection[str], glued: Mapping[str, Glued]) -> list[str]:
    """Rewrite command-line words.

    Args:
        valued: options that take a value, short and long (``-m``, ``--seed``).
        glued: options with an optional value, by short and long name.

    Returns:
        Words in which every option of `glued` is written ``--long=value``.
    """
    out: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*out, word, *rest]
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in glued:
                out.append(f"{glued[name].long}={value if equals else glued[name].bare}")
                continue
            out.append(word)
            if name in valued and not equals:
                out.extend(_one(rest))
        elif word.startswith("-") and len(word) > 1:
            needs_value = _short(word, valued, glued, out)
            if needs_value:
                out.extend(_one(rest))
        else:
            out.append(word)
    return out


def _one(rest: Iterable[str]) -> list[str]:
    for word in rest:
        return [word]
    return []


def _short(word: str, valued: Collection[str], glued: Mapping[str, Glued], out: list[str]) -> bool:
    """Take a word of short options apart; True when its last one needs the next word as its value."""
    letters = word[1:]
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        if name in valued:
            out.append(name + letters)
            return not letters
        option = glued.get(name)
        if option is None:
            out.append(name)
        elif letters and option.is_value(letters):
            out.append(f"{option.long}={letters}")
            return False
        else:
            out.append(f"{option.long}={option.bare}")
    return False
