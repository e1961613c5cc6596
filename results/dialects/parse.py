"""Detect the format of a file and read it. A log may hold the output of several tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.errors import UsageError
from omb_py.results.dialects.lines import decode, split
from omb_py.results.dialects.reading import Context, Line, Parsed, TextReader, WholeReader, shown
from omb_py.results.dialects.registry import broken, readers


def parse(data: bytes, context: Context) -> Parsed:
    """Read the tables and problems of a file.

    Raises:
        UsageError: the file has none of the known formats. The message lists them and shows the first line.
    """
    names = ", ".join(reader.name for reader in readers())
    text = decode(data)
    if text is None:
        raise UsageError(f"a binary file, not a log; known are {names}")
    of_text: list[TextReader] = []
    for reader in readers():
        if not isinstance(reader, WholeReader):
            of_text.append(reader)
        elif reader.claims(text):
            return reader.read_whole(text, context)
    lines = split(text)
    parsed = Parsed()
    for reader, part, before in _parts(lines, of_text):
        parsed.add(reader.read(part, replace(context, before=before)))
    if not parsed.tables and not parsed.problems and not parsed.notes:
        raise UsageError(_unknown(lines, names))
    return parsed


def _parts(lines: Sequence[Line], readers: Sequence[TextReader]) -> list[tuple[TextReader, list[Line], list[Line]]]:
    """(reader, its lines, the lines before) for each part of the log that comes from one tool."""
    parts: list[tuple[TextReader, list[Line], list[Line]]] = []
    noise: list[Line] = []
    for line in lines:
        starter = next((reader for reader in readers if reader.starts(line.text)), None)
        if starter is not None and (not parts or parts[-1][0] is not starter):
            parts.append((starter, [], noise if not parts else parts[-1][1]))
        (parts[-1][1] if parts else noise).append(line)
    return parts


def _unknown(lines: Sequence[Line], names: str) -> str:
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        return "an empty file"
    lost = "".join(f"; reader {name} cannot be loaded: {why}" for name, why in broken().items())
    where = f"neither line {first.number}, {shown(first.text, 60)}, nor a later one begins a table that omb-py knows"
    return f"{where}: give a file with {names}{lost}"
