"""Decode a file's bytes into lines without colours, line ends and the prefixes of launchers."""

from __future__ import annotations

import codecs
import re
from collections import Counter

from omb_py.results.dialects.reading import Line

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TAGS = (
    re.compile(r"\[\d+,\d+\]<std(?:out|err)>:\s?"),  # mpirun --tag-output
    re.compile(r"<std(?:out|err)>:\s?"),
    re.compile(r"\[\d+\] "),  # mpiexec -prepend-rank
    re.compile(r"\s{0,4}\d+: "),  # srun -l
)
_MOST_BINARY = 0.1


def decode(data: bytes) -> str | None:
    """The text of a file; None for a binary file. Invalid bytes become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    if data.count(b"\0") > _MOST_BINARY * len(data) or data.startswith(b"PAR1"):
        return None
    return data.decode("utf-8-sig", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def split(text: str) -> list[Line]:
    """Split a text into lines, without a launcher's prefix (``[1,0]<stdout>:``) if most lines have it."""
    texts = _COLOUR.sub("", text.replace("\r\n", "\n")).split("\n")
    ended = texts[-1] == ""
    if ended:
        texts.pop()
    tag = _tag_of(texts)
    lines = [Line(i, _without(line.rstrip("\r"), tag)) for i, line in enumerate(texts, 1)]
    if lines and not ended:
        lines[-1] = Line(lines[-1].number, lines[-1].text, ended=False)
    return lines


def _tag_of(texts: list[str]) -> re.Pattern[str] | None:
    matches = Counter(i for text in texts if text.strip() for i, tag in enumerate(_TAGS) if tag.match(text))
    full = sum(bool(text.strip()) for text in texts)
    return next((_TAGS[i] for i, count in matches.most_common(1) if 2 * count > full), None)


def _without(text: str, tag: re.Pattern[str] | None) -> str:
    match = tag.match(text) if tag else None
    return text[match.end() :] if match else text
