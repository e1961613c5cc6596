"""A log as lines, without what launchers, collectors of logs and other threads put around them and between them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omb_py.errors import UsageError

_PACKED: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", gzip.decompress),
    (b"\xfd7zXZ\x00", lzma.decompress),
    (b"BZh", bz2.decompress),
)
_MOST_BINARY = 0.1
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PROGRAM = r"[\w.-]+ [\w./-]+\[\d+\]: "
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|SUCCESS|TRACE)\s*"


def _match_any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_TIME = _match_any(
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[|<)",  # mpirun --timestamp-output
    rf"{_ISO}(?: - [\w.]+ - {_LEVEL}- | \| {_LEVEL}\| [\w.:<>]+ - )",  # Python's logging, loguru
    # GitHub Actions and gh run view; GitLab; a node's /var/log/pods; journalctl -o short-iso; kubectl logs --timestamps
    rf"(?:[^\t]*\t[^\t]*\t)?{_ISO}(?: \d\d[OE][ +]| std(?:out|err) [FP] | {_PROGRAM}| |$)",
    rf"\[{_ISO}\] ",  # Jenkins
    rf"\[\d{{4}}-\d\d-\d\d, \d\d:\d\d:\d\d [A-Z]{{3,4}}\] \{{[^}}\s]+\}} {_LEVEL}- ",  # Airflow
    rf"(?:<\d{{1,3}}>)?[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?:{_PROGRAM})?",  # syslog, journalctl, ts
    r"\[\d\d:\d\d:\d\d(?:\.\d{1,9})?\] |\d\d:\d\d:\d\d(?:\.\d{1,9})? ",  # ts '%H:%M:%S'
)
"""When a line was printed."""
_LABEL = _match_any(
    r"\[\d+,\d+\](?:\[[^\]\s]+\])?<std(?:out|err)>:\s?",  # mpirun --tag-output
    r"\[prterun-[^\s\]]+@\d+,\d+\](?:\[[^\]\s]+\])?<std(?:out|err)>: ?",  # that of Open MPI 5
    r"<std(?:out|err)>:\s?",
    r"\[default\d+\]:\s?",  # torchrun --tee
    r"\[pod/[^\s\]]+\] ",  # kubectl logs --prefix
    r"\((?:[\w.]+ )?pid=\d+(?:, ip=[^\s)]+)?\) ",  # Ray
)
"""Who printed a line; it stands there for this reason alone."""
_DOUBTFUL = _match_any(
    r"\[\d+\] ",  # mpiexec -prepend-rank
    r"\s{0,4}\d+: ",  # srun -l
    r"(?:[\w.-]+|\[[\w.-]+\])\s*\| ",  # docker compose, podman-compose
    r"[A-Za-z][\w.-]*: |\d{1,3}(?:\.\d{1,3}){3}: ",  # pdsh, clush
    r"\[rank\d+\]:? ",
    r"\[[A-Za-z][\w.-]*:\d+\] ",  # mpiexec -prepend-pattern
    r"[a-z0-9][\w.]*-[\w.-]+ [a-z0-9][\w.-]* ",  # stern
    r"(?:> ?)+",  # a quoted mail
)
"""What may also be the line itself. It is a prefix where some line of a benchmark's output begins behind the same."""
_MOST_PREFIXES = 4
"""Prefixes before a line: a collector's before a launcher's before a container's."""

_MESSAGE = _match_any(
    r"(?:\[[\d :.-]{8,30}\] )?[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] (?:\S+:\d+ )?(?:NCCL|RCCL) (?:INFO|WARN|TRACE|ABORT)\b.*",
    r"\[\d{1,12}\.\d{1,9}\] \[[A-Za-z][\w.-]*:\d+:\d+\] +\S+:\d+ +UCX +[A-Z]+ .*",
)
_OF_DOCKER = re.compile(r'\{"log":".*","stream":"std(?:out|err)".*\}')
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
    Lines of several programs that printed at once stand together, each program's, where prefixes tell them apart.

    Args:
        text: the whole log.
        starts: whether a line begins some benchmark's output.
    """
    texts = [line.rstrip("\r") for line in text.replace("\r\n", "\n").split("\n")]
    texts = [_COLOUR.sub("", _read_docker(line) if line.startswith("{") else line) for line in texts]
    ended = texts[-1] == ""
    if ended:
        texts.pop()
    labels = [""] * len(texts)
    for _ in range(_MOST_PREFIXES):
        certain = [_split_prefix(line) for line in texts]
        prefixes = _prefixes([line for _, line in certain], starts)
        shorter = [_split_doubtful(line, prefixes) for _, line in certain]
        if [line for _, line in shorter] == texts:
            break
        texts = [line for _, line in shorter]
        found = zip(labels, certain, shorter, strict=True)
        labels = [before + own.strip() + other.strip() for before, (own, _), (other, _) in found]
    last = len(texts)
    lines = [LogLine(i, _strip_message(line), ended or i < last) for i, line in enumerate(texts, 1)]
    return _untangle(lines, labels, starts)


def _read_docker(text: str) -> str:
    """What a container printed, of a line of the file that Docker keeps of it."""
    if not _OF_DOCKER.fullmatch(text):
        return text
    try:
        return str(json.loads(text)["log"]).rstrip("\r\n")
    except ValueError:
        return text


def _split_prefix(text: str) -> tuple[str, str]:
    """Who printed a line, as its prefix says, and the line without the prefix; a time says nobody."""
    if match := _TIME.match(text):
        return "", text[match.end() :]
    if match := _LABEL.match(text):
        return match[0], text[match.end() :]
    return "", text


def _prefixes(texts: Sequence[str], starts: Callable[[str], bool]) -> frozenset[str]:
    """The doubtful prefixes behind which some benchmark's output begins."""
    found = ((text, match) for text in texts if (match := _DOUBTFUL.match(text)))
    return frozenset(match[0] for text, match in found if starts(_split_prefix(text[match.end() :])[1]))


def _split_doubtful(text: str, prefixes: frozenset[str]) -> tuple[str, str]:
    """The prefix of a line, and the line without it.

    An empty line loses the blank behind its prefix too, as editors take blanks at the end of lines away.
    """
    match = _DOUBTFUL.match(text)
    if match and match[0] in prefixes:
        return match[0], text[match.end() :]
    whole = next((prefix for prefix in prefixes if text and text == prefix.rstrip()), "")
    return (whole, "") if whole else ("", text)


def _untangle(lines: Sequence[LogLine], labels: Sequence[str], starts: Callable[[str], bool]) -> list[LogLine]:
    """The lines of each program together, where several printed at once.

    A line that names no program stays with the output that begins behind it, as its command, else with that before.
    """
    begins = [bool(label) and starts(line.text) for line, label in zip(lines, labels, strict=True)]
    programs: dict[str, list[LogLine]] = {label: [] for label, begin in zip(labels, begins, strict=True) if begin}
    others: list[LogLine] = []
    current, returns = "", False
    for line, label, begin in zip(lines, labels, begins, strict=True):
        if label not in programs:
            others.append(line)
            continue
        returns = returns or (label != current and bool(programs[label]))
        programs.setdefault(label if begin else current, []).extend(others)
        programs[label].append(line)
        others, current = [], label
    programs.setdefault(current, []).extend(others)
    return [line for own in programs.values() for line in own] if returns else list(lines)


def _strip_message(text: str) -> str:
    match = _MESSAGE.search(text)
    return text[: match.start()] if match and text[: match.start()].strip() else text
