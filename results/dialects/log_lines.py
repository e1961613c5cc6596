"""A log as lines, without what launchers, collectors of logs and other threads put around them and between them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omb_py.errors import UsageError

_PACKED: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", gzip.decompress),
    (b"\xfd7zXZ\x00", lzma.decompress),
    (b"BZh", bz2.decompress),
)
_MOST_BINARY = 0.1
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = (
    re.compile(r"\[\d+,\d+\]<std(?:out|err)>:\s?"),  # mpirun --tag-output
    re.compile(r"\[prterun-[^\s\]]+@\d+,\d+\]<std(?:out|err)>: ?"),  # that of Open MPI 5
    re.compile(r"<std(?:out|err)>:\s?"),
    re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[|<)"),  # mpirun --timestamp-output
    re.compile(rf"(?:[^\t]*\t[^\t]*\t)?{_TIME}(?: |$)"),  # kubectl logs --timestamps; GitHub Actions, gh run view
    re.compile(rf"\[{_TIME}\] "),  # Jenkins
    re.compile(r"\[pod/[^\s\]]+\] "),  # kubectl logs --prefix
)
"""What stands before a line for one reason alone."""
_DOUBTFUL = (
    re.compile(r"\[\d+\] "),  # mpiexec -prepend-rank
    re.compile(r"\s{0,4}\d+: "),  # srun -l
    re.compile(r"[\w.-]+\s*\| "),  # docker compose
    re.compile(r"[A-Za-z][\w.-]*: "),  # pdsh, clush
    re.compile(r"(?:> ?)+"),  # a quoted mail
)
"""What may also be the line itself. It is a prefix where some line of a benchmark's output begins behind the same."""
_MOST_PREFIXES = 4
"""Prefixes before a line: a collector's before a launcher's before a container's."""

_MESSAGE = re.compile(
    r"(?:\[[\d :.-]{8,30}\] )?[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] (?:\S+:\d+ )?(?:NCCL|RCCL) (?:INFO|WARN|TRACE|ABORT)\b.*"
)
_FRAME = re.compile(r"\s*#?\d{1,3}:?\s+(?:0x[0-9a-fA-F]{6,}\b|/\S+\(\S*\)?\s*\[0x|/\S+\.so)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log, without its line end and without what a launcher put before it."""

    number: int
    text: str
    ended: bool = True
    """False for a last line without a line end, which may be cut off."""

    @property
    def is_noise(self) -> bool:
        """Whether it is a message of a communication library, or a frame of a backtrace."""
        return _MESSAGE.match(self.text) is not None or _FRAME.match(self.text) is not None


def unpack(data: bytes) -> bytes:
    """The content of a file that gzip, xz or bzip2 may have packed. Raises UsageError where it is damaged."""
    for magic, open_packed in _PACKED:
        if data.startswith(magic):
            try:
                return open_packed(data)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
                raise UsageError(f"a packed file that cannot be unpacked ({error}): copy it again") from None
    return data


def decode(data: bytes) -> str | None:
    """The text of a file; None for a binary file. Invalid bytes become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    if data.count(b"\0") > _MOST_BINARY * len(data) or data.startswith(b"PAR1"):
        return None
    return data.decode("utf-8-sig", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def split(text: str, starts: Callable[[str], bool]) -> list[LogLine]:
    """Split a text into lines.

    Prefixes are taken away, line by line; of a message of NCCL that stands within a line only what was before it stays.

    Args:
        text: the whole log.
        starts: whether a line begins some benchmark's output.
    """
    texts = [line.rstrip("\r") for line in _COLOUR.sub("", text.replace("\r\n", "\n")).split("\n")]
    ended = texts[-1] == ""
    if ended:
        texts.pop()
    for _ in range(_MOST_PREFIXES):
        shorter = _without_doubtful([_without(line) for line in texts], starts)
        if shorter == texts:
            break
        texts = shorter
    last = len(texts)
    return [LogLine(i, _without_message(line), ended or i < last) for i, line in enumerate(texts, 1)]


def _without(text: str) -> str:
    match = next(filter(None, (pattern.match(text) for pattern in _PREFIXES)), None)
    return text[match.end() :] if match else text


def _without_doubtful(texts: Sequence[str], starts: Callable[[str], bool]) -> list[str]:
    found = [_doubtful(text) for text in texts]
    prefixes = {p for text, p in zip(texts, found, strict=True) if p and starts(_without(text[len(p) :]))}
    return [
        text[len(prefix) :] if prefix in prefixes else _blank_quoted(text, prefixes)
        for text, prefix in zip(texts, found, strict=True)
    ]


def _doubtful(text: str) -> str:
    match = next(filter(None, (pattern.match(text) for pattern in _DOUBTFUL)), None)
    return match[0] if match else ""


def _blank_quoted(text: str, prefixes: Iterable[str]) -> str:
    """An empty line loses the blank behind its prefix too, as editors take blanks at the end of lines away."""
    return "" if text and any(text == prefix.rstrip() for prefix in prefixes) else text


def _without_message(text: str) -> str:
    match = _MESSAGE.search(text)
    return text[: match.start()] if match and text[: match.start()].strip() else text
