"""The content of a report, independent of its written form.

Each report has a function ``document_of`` in its module. The writers (:mod:`omb_py.printing.writers`) turn a
document into text; each does its own escaping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["failure", "error", "skipped"]
Tone = Literal["bad", "good", "open", "lost", "dim"]
TONES: Mapping[str, Tone] = {
    "SLOWER": "bad",
    "FASTER": "good",
    "LIKELY SLOWER": "open",
    "LIKELY FASTER": "open",
    "UNCLEAR": "open",
    "NOT COMPARABLE": "lost",
    "VIOLATED": "bad",
    "WRONG": "bad",
    "FAIL": "bad",
    "ERROR": "lost",
    "PASS": "good",
    "MARGINAL": "open",
    "NO BOUND": "dim",
    "confirmed": "bad",
    "suspect": "open",
    "cleared": "dim",
}
"""Words of verdicts that a writer colours. ``open``: undecided; ``lost``: there is no answer."""
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose cells are texts."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """Each row has a text for each head."""
    left: Collection[str] = ()
    """Heads of the columns that are aligned to the left; the others hold numbers."""
    groups: Sequence[str] = ()
    """The group of each row; a terminal separates groups by a line. Empty: all rows are one group."""
    in_terminal: bool = True
    """Whether a terminal shows it; files always do."""
    spare: Sequence[str] = ()
    """Heads of the columns that a narrow terminal leaves out, the first of them first."""
    folding: Collection[str] = ()
    """Heads of the columns of words, which a terminal folds."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One test case, as build servers show it."""

    group: str
    """JUnit's ``classname``."""
    name: str
    """Stable between runs."""
    outcome: Outcome | None
    """None when the test passed."""
    message: str
    """Shown whether it passed or not."""
    detail: str = ""
    """Further lines."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report that can be written in every form. Texts are plain: the writers escape them."""

    title: str
    headline: str
    """The conclusion, in one line."""
    exit_code: int
    data: Callable[[], Mapping[str, object]]
    """Returns the machine-readable form, for JSON. Called only when it is written, since it may be large."""
    facts: Sequence[str] = ()
    """Lines before the tables: what was measured, and how."""
    tables: Sequence[TextTable] = ()
    picture: str = ""
    """A drawing made of characters, which a terminal shows after the tables."""
    details: Sequence[str] = ()
    """Lines that only files show."""
    problems: Sequence[str] = ()
    """Lines about failures and deviations; a terminal shows them before the headline."""
    notes: Sequence[str] = ()
    """Lines after the headline."""
    cases: Sequence[CaseResult] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    """Facts by name, for JUnit."""
    started_at: str = ""
    """ISO 8601 without a zone, UTC."""
    hostname: str = ""
    seconds: float | None = None
    """Duration."""
    marker: str = ""
    """Name by which a bot finds its earlier comment; Markdown begins with it, and does not show it."""
    simulated: bool = False
    """Whether ranks were simulated, so that nothing was measured; HTML says it."""
    opening: bool = False
    """Whether a terminal begins with the headline, which else stands below the tables."""


def tone(text: str) -> Tone | None:
    """The tone of a cell that begins with the word of a verdict: ``UNCLEAR (about 8)``; None: an ordinary text."""
    return TONES.get(re.split(r",| \(", text, maxsplit=1)[0])


def numbered(lines: Sequence[str]) -> dict[str, str]:
    """Lines as JUnit's properties: ``{"line1": …, "line2": …}``."""
    return {f"line{number}": line for number, line in enumerate(lines, 1)}


def printable(text: str) -> str:
    """Replace control characters and lone surrogates, which XML cannot hold and a terminal would obey, by ``?``."""
    return _UNPRINTABLE.sub("?", text)
