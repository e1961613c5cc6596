"""Split a file into lines, detect the formats in it and read it. A log may hold the output of several tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omb_py.errors import UsageError
from omb_py.results.dialects.log_lines import LogLine, decode, split, unpack
from omb_py.results.dialects.plausible import implausible, number_empty
from omb_py.results.dialects.reading import Context, Parsed, Problem, TextReader, WholeReader, quote_piece
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
    text = decode(unpack(data))
    if text is None:
        raise UsageError(f"a binary file, not a log; known are {names}")
    of_text: list[TextReader] = []
    for reader in tried:
        if not isinstance(reader, WholeReader):
            of_text.append(reader)
        elif reader.claims(text):
            return _drop_implausible(reader.read_whole(text, context))
    lines = split(text, lambda line: any(reader.starts(line) for reader in of_text))
    parsed = Parsed()
    for reader, part, before in _parts(lines, of_text):
        parsed.add(reader.read(part, replace(context, before=before)))
    if not parsed.tables and not parsed.problems and not parsed.notes:
        raise UsageError(_unknown(lines, names))
    return _drop_implausible(parsed)


def _drop_implausible(parsed: Parsed) -> Parsed:
    """Leave out the tables that no tool can have printed, and name them."""
    for table in list(parsed.tables):
        number_empty(table.rows)
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
    where = (
        f"neither line {first.number}, {quote_piece(first.text, 60)}, nor a later one begins a table that omb-py knows"
    )
    return f"{where}: give a file with {names}{lost}"
