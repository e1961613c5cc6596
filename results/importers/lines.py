"""A file's bytes as lines: decoded, without colours, line ends and what launchers put in front of every line."""

from __future__ import annotations

import codecs
import re
from collections import Counter

from omb_py.results.importers.model import Line

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TAGS = (
    re.compile(r"\[\d+,\d+\]<std(?:out|err)>:\s?"),  # mpirun --tag-output
    re.compile(r"<std(?:out|err)>:\s?"),
    re.compile(r"\[\d+\] "),  # mpiexec -prepend-rank
    re.compile(r"\s{0,4}\d+: "),  # srun -l
)
_MOST_BINARY = 0.1


def decode(data: bytes) -> str | None:
    """The text of a file; None when it is none. Wrong bytes become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    if data.count(b"\0") > _MOST_BINARY * len(data) or data.startswith(b"PAR1"):
        return None
    return data.decode("utf-8-sig", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def split(text: str) -> list[Line]:
    """The lines of a text. A prefix that most lines have (``[1,0]<stdout>:``) is taken away from all."""
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
    found = Counter(i for text in texts if text.strip() for i, tag in enumerate(_TAGS) if tag.match(text))
    full = sum(bool(text.strip()) for text in texts)
    return next((_TAGS[i] for i, n in found.most_common(1) if 2 * n > full), None)


def _without(text: str, tag: re.Pattern[str] | None) -> str:
    found = tag.match(text) if tag else None
    return text[found.end() :] if found else text
