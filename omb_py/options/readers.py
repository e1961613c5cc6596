"""Readers of option values: text to value, by pure functions that raise UsageError."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omb_py.errors import EnvironmentProblem, UsageError, nearest
from omb_py.grammar.values import parse_count
from omb_py.launchers.launcher import expand_hosts
from omb_py.options.request import DEFAULT_STORE

VALIDATION_LOG = "validation_output"
"""Folder of a bare ``-clog``, as in OMB."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the text of one value, and knows which values a request may hold."""

    what: str
    """Noun for errors: ``window size``."""
    parse: Callable[[str], Any]
    """Raises UsageError."""
    choices: Sequence[str] = ()
    """Words that shell completion offers."""
    closed: bool = False
    """Whether a value must be one of `choices`."""
    smallest: int | None = None
    """Smallest number that is admitted; None: no number, or no such bound."""

    @property
    def kind(self) -> str:
        """The type of the values, as `parse` is annotated."""
        function = self.parse.func if isinstance(self.parse, partial) else self.parse
        return str(getattr(function, "__annotations__", {}).get("return", "str"))


def word(what: str, choices: Sequence[str], strict: bool = True, closed: bool = True) -> Reader:
    """One of `choices`, in lower case.

    Args:
        what: noun for errors.
        choices: the words.
        strict: refuse other words when the text is read; else the planner does.
        closed: no request holds another word; else a backend may bring more.
    """

    def parse(text: str) -> str:
        chosen = text.strip().lower()
        if strict and chosen not in choices:
            raise UsageError(f"unknown {what} {text!r}: {nearest(chosen, choices)}")
        return chosen

    return Reader(what, parse, choices, closed)


def comma_list(
    what: str, choices: Sequence[str] = (), keep_case: bool = False, closed: bool = False, blanks: bool = False
) -> Reader:
    """Words separated by commas, as a tuple; empty places are refused, and where `closed` other words than `choices`;
    else the planner checks them. With `blanks` a name may hold some, as ``Open MPI``."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(part.strip() for part in text.split(","))
        if not all(words):
            raise UsageError(f"{what} list {text!r} has an empty place")
        if not blanks and (blank := next((word for word in words if len(word.split()) > 1), "")):
            raise UsageError(f"{what} {blank!r}: commas stand between names: {','.join(blank.split())}")
        chosen = words if keep_case else tuple(part.lower() for part in words)
        if closed and (unknown := next((word for word in chosen if word not in choices), "")):
            raise UsageError(f"unknown {what} {unknown!r}: {nearest(unknown, choices)}")
        return chosen

    return Reader(what, parse, choices, closed)


def parse_hosts(text: str) -> tuple[str, ...]:
    """Hosts with commas, or compressed as Slurm and Flux write them, each with its slots if any. Raises UsageError.

    >>> parse_hosts("n[01-02]:4, login")
    ('n01:4', 'n02:4', 'login')
    """
    words = ",".join(comma_list("host", keep_case=True).parse(text))
    try:
        hosts = tuple(expand_hosts(words, "--hosts"))
    except EnvironmentProblem:
        hosts = (words,)
    for host in hosts:
        _, colon, slots = host.partition(":")
        numbered = not colon or ":" in slots or re.fullmatch("0*[1-9][0-9]*", slots)  # an address of IPv6 has no slots
        if not numbered or re.search(r"[^\w.:%@+-]", host):
            raise UsageError(f"host {host!r}: hosts are written as n1,n2 or n[1-4], with slots as n1:2 or n[1-4]:2")
    return hosts


def join_list(what: str, choices: Sequence[str]) -> Reader:
    """Read as :func:`comma_list` does, and join the words to one text."""
    words = comma_list(what, choices)

    def parse(text: str) -> str:
        return ",".join(words.parse(text))

    return Reader(what, parse, choices)


def whole(what: str, smallest: int) -> Reader:
    """A whole number of at least `smallest`."""
    return Reader(what, partial(parse_count, what=what, least=smallest), smallest=smallest)


def parse_switch(text: str) -> int:
    """0 or 1. Raises UsageError."""
    if text.strip() not in ("0", "1"):
        raise UsageError(f"-R/--print-rate takes 0 or 1, not {text!r}")
    return int(text)


def parse_workload(text: str) -> str:
    """A workload with all its settings, in one spelling. Raises UsageError."""
    from omb_py.suites.workloads import families  # slow to import, and one benchmark has it

    return families.parse_workload(text).text


def parse_validation(text: str) -> Path | bool:
    """True for a bare ``-c``, else the folder of ``log`` or ``log:DIR``. Raises UsageError."""
    if text == "on":
        return True
    kind, colon, folder = text.partition(":")
    if kind != "log" or (colon and not folder):
        raise UsageError(f"-c{text}: write -c, -clog or -clog:DIR")
    path = Path(folder or VALIDATION_LOG)
    if path.exists():
        raise UsageError(f"-c{text}: folder {path} exists already: choose another with -clog:DIR")
    return path


def parse_folder(text: str) -> Path:
    """The folder of a store. Raises UsageError where it has no name."""
    if not text.strip():
        raise UsageError(f"--store needs a folder, as ./{DEFAULT_STORE}; to store nothing, --no-store")
    if text.startswith("-"):
        raise UsageError(f"--store needs a folder, not the option {text}: a folder of this name is ./{text}")
    return Path(text).expanduser()


def parse_launcher_words(text: str) -> tuple[str, ...]:
    """Words for the launcher, split as a shell does. Raises UsageError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"launcher arguments {text!r}: {error}") from None


def human(size: int) -> str:
    """A size as the size grammar reads it: ``8``, ``4K``, ``1M``."""
    for letter, power in (("G", 30), ("M", 20), ("K", 10)):
        if size and size % (1 << power) == 0:
            return f"{size >> power}{letter}"
    return str(size)
