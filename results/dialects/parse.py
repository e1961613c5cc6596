"""Split a file into lines, detect the formats in it and read it. A log may hold the output of several tools."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from omb_py.errors import UsageError
from omb_py.results.dialects.plausible import implausible
from omb_py.results.dialects.reading import Context, LogLine, Parsed, Problem, TextReader, WholeReader, shown
from omb_py.results.dialects.registry import broken, readers


def parse(data: bytes, context: Context, using: Sequence[TextReader | WholeReader] = ()) -> Parsed:
    """Read the tables and problems of a file.

    Args:
        data: content of the file.
        context: what is known of it beside.
        using: the readers to try; empty: all.

    Raises:
        UsageError: the file has none of the known formats. The message lists them and shows the first line.
    """
    tried = using or readers()
    names = ", ".join(reader.name for reader in tried)
    text = decode(data)
    if text is None:
        raise UsageError(f"a binary file, not a log; known are {names}")
    of_text: list[TextReader] = []
    for reader in tried:
        if not isinstance(reader, WholeReader):
            of_text.append(reader)
        elif reader.claims(text):
            return _plausible(reader.read_whole(text, context))
    lines = split(text)
    parsed = Parsed()
    for reader, part, before in _parts(lines, of_text):
        parsed.add(reader.read(part, replace(context, before=before)))
    if not parsed.tables and not parsed.problems and not parsed.notes:
        raise UsageError(_unknown(lines, names))
    return _plausible(parsed)


def _plausible(parsed: Parsed) -> Parsed:
    """Leave out the tables that no tool can have printed, and name them."""
    for table in list(parsed.tables):
        if why := implausible(table.rows):
            parsed.tables.remove(table)
            parsed.problems.append(Problem(table.line, f"table {table.benchmark!r} left out: {why}"))
    return parsed


def _parts(
    lines: Sequence[LogLine], readers: Sequence[TextReader]
) -> list[tuple[TextReader, list[LogLine], list[LogLine]]]:
    """(reader, its lines, the lines before) for each part of the log that comes from one tool."""
    parts: list[tuple[TextReader, list[LogLine], list[LogLine]]] = []
    noise: list[LogLine] = []
    for line in lines:
        starter = next((reader for reader in readers if reader.starts(line.text)), None)
        if starter is not None and (not parts or parts[-1][0] is not starter):
            parts.append((starter, [], noise if not parts else parts[-1][1]))
        (parts[-1][1] if parts else noise).append(line)
    return parts


def _unknown(lines: Sequence[LogLine], names: str) -> str:
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        return "an empty file"
    lost = "".join(f"; reader {name} cannot be loaded: {why}" for name, why in broken().items())
    where = f"neither line {first.number}, {shown(first.text, 60)}, nor a later one begins a table that omb-py knows"
    return f"{where}: give a file with {names}{lost}"


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


def split(text: str) -> list[LogLine]:
    """Split a text into lines, without a launcher's prefix (``[1,0]<stdout>:``) if most lines have it."""
    texts = _COLOUR.sub("", text.replace("\r\n", "\n")).split("\n")
    ended = texts[-1] == ""
    if ended:
        texts.pop()
    tag = _tag_of(texts)
    lines = [LogLine(i, _without(line.rstrip("\r"), tag)) for i, line in enumerate(texts, 1)]
    if lines and not ended:
        lines[-1] = LogLine(lines[-1].number, lines[-1].text, ended=False)
    return lines


def _tag_of(texts: list[str]) -> re.Pattern[str] | None:
    matches = Counter(i for text in texts if text.strip() for i, tag in enumerate(_TAGS) if tag.match(text))
    full = sum(bool(text.strip()) for text in texts)
    return next((_TAGS[i] for i, count in matches.most_common(1) if 2 * count > full), None)


def _without(text: str, tag: re.Pattern[str] | None) -> str:
    match = tag.match(text) if tag else None
    return text[match.end() :] if match else text
