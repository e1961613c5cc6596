"""Which tool wrote a file: every known format is tried, and a log may hold output of several tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from omb_py.errors import UsageError
from omb_py.results.importers.lines import decode, split
from omb_py.results.importers.model import Context, Line, Parsed, TextReader, WholeReader, shown


@cache
def text_readers() -> tuple[TextReader, ...]:
    """Formats whose tables stand anywhere in a log."""
    from omb_py.results.importers.imb import ImbText
    from omb_py.results.importers.nccl_tests import NcclText
    from omb_py.results.importers.ombpy import OmbPyText
    from omb_py.results.importers.osu import OsuReader

    return OsuReader(), OmbPyText(), NcclText(), ImbText()


@cache
def whole_readers() -> tuple[WholeReader, ...]:
    """Formats that are a whole file."""
    from omb_py.results.importers.nccl_json import NcclJson
    from omb_py.results.importers.rccl import RcclCsv, RcclJson

    return NcclJson(), RcclJson(), RcclCsv()


def names() -> list[str]:
    """Every known format, for a message."""
    return [reader.name for reader in text_readers()] + [reader.name for reader in whole_readers()]


def parse(data: bytes, context: Context) -> Parsed:
    """What a file holds.

    Raises:
        UsageError: it is none of the known formats; says which were tried and the first line that failed.
    """
    text = decode(data)
    if text is None:
        raise UsageError(f"a binary file, not a log; known are {', '.join(names())}")
    for whole in whole_readers():
        if whole.claims(text):
            return whole.read_whole(text, context)
    lines = split(text)
    found = Parsed()
    for reader, part, before in _parts(lines):
        found.add(reader.read(part, replace(context, before=before)))
    if not found.tables and not found.problems and not found.notes:
        raise UsageError(_unknown(lines))
    return found


def _parts(lines: Sequence[Line]) -> list[tuple[TextReader, list[Line], list[Line]]]:
    """(reader, its lines, the lines before) of each stretch of the log that is one tool's."""
    parts: list[tuple[TextReader, list[Line], list[Line]]] = []
    noise: list[Line] = []
    for line in lines:
        starter = next((reader for reader in text_readers() if reader.starts(line.text)), None)
        if starter is not None and (not parts or parts[-1][0] is not starter):
            parts.append((starter, [], noise if not parts else parts[-1][1]))
        (parts[-1][1] if parts else noise).append(line)
    return parts


def _unknown(lines: Sequence[Line]) -> str:
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        return "an empty file"
    where = f"line {first.number}: {shown(first.text, 60)} and no later line begins a table of a known format"
    return f"{where}; tried {', '.join(names())}"
