"""Import the logs of launches that somebody's own script made in turn, as the two sides of one comparison."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from omb_py.errors import UsageError
from omb_py.results.compare import tags
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context
from omb_py.results.dialects.storing import IMPORTED, ImportOptions, complete_row
from omb_py.results.store.row import Row
from omb_py.results.store.write import check_writable, write_launch

_SIDES = re.compile(r"\{([\w.+-]+)\|([\w.+-]+)\}")
_PAIR = "{pair}"
_FORM = "'{old|new}-{pair}.log': the words of BASE and of NEW, and where the number of the pair stands"


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of one launch."""

    name: str
    data: bytes
    modified: float
    """When it was last written, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """How the name of a file says its side and its pair."""

    text: str
    base: str
    """The word of BASE; the other one is that of NEW."""
    expression: re.Pattern[str]

    def launch(self, name: str) -> tuple[str, str] | None:
        """Side and pair of a file; None where its name is another."""
        match = self.expression.search(name)
        if match is None:
            return None
        return ("BASE" if match["side"] == self.base else "NEW"), str(int(match["pair"]))


def parse_pattern(text: str) -> NamePattern:
    """Read a value of ``--interleaved``.

    >>> parse_pattern("{old|new}-{pair}.log").launch("logs/new-07.log")
    ('NEW', '7')

    Raises:
        UsageError: it has another form.
    """
    sides = _SIDES.search(text)
    if sides is None or text.count(_PAIR) != 1 or len(_SIDES.findall(text)) != 1 or sides[1] == sides[2]:
        raise UsageError(f"--interleaved takes {_FORM}, not {text!r}")
    words = rf"(?P<side>{re.escape(sides[1])}|{re.escape(sides[2])})"
    pieces = [re.escape(piece).replace(re.escape(_PAIR), r"(?P<pair>\d{1,9})") for piece in _SIDES.split(text)[::3]]
    return NamePattern(text, sides[1], re.compile(words.join(pieces) + r"$"))


def store_interleaved(files: Sequence[LogFile], pattern: NamePattern, store: Path, options: ImportOptions) -> str:
    """Import the launches of both sides as one run.

    Args:
        files: one for each launch.
        pattern: how their names say side and pair.
        store: the folder.
        options: facts that the user gives about the files.

    Returns:
        The id of the run: what :func:`omb_py.orchestrate.compare.stored.compare_stored` compares.

    Raises:
        UsageError: a name does not fit, half a pair is missing, or a file is not read wholly. Nothing is written.
        EnvironmentProblem: the store cannot be written. Nothing is left there.
    """
    launches: dict[tuple[str, str], LogFile] = {}
    for file in files:
        launch = pattern.launch(file.name)
        if launch is None:
            raise UsageError(f"{file.name}: its name is not as --interleaved {pattern.text} says")
        if launch in launches:
            raise UsageError(f"{file.name} and {launches[launch].name} are both {launch[0]} of pair {launch[1]}")
        launches[launch] = file
    for side, pair in launches:
        other = "NEW" if side == "BASE" else "BASE"
        if (other, pair) not in launches:
            raise UsageError(f"pair {pair} has no file of {other}, only {launches[side, pair].name}: leave it out")
    digests = sorted(hashlib.sha256(file.data).hexdigest() for file in files)
    run_id = f"{IMPORTED}-{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}"
    in_time = sorted(launches.items(), key=lambda item: (item[1].modified, item[1].name))
    rows = [
        (_rows(file, run_id, number, _tag(options, *launch)), file) for number, (launch, file) in enumerate(in_time)
    ]
    check_writable(store)
    written: list[Path] = []
    try:
        for of_launch, file in rows:
            written.append(write_launch(store, of_launch, {"imported": {"file": file.name, "by": "--interleaved"}}))
    except BaseException:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise
    return run_id


def _tag(options: ImportOptions, side: str, pair: str) -> ImportOptions:
    own = {tags.COMPARE_SIDE: side, tags.COMPARE_PAIR: pair, tags.COMPARE_ROUND: "1", tags.COMPARE_ROUNDS: "1"}
    return replace(options, tags={**(options.tags or {}), **own})


def _rows(file: LogFile, run_id: str, number: int, options: ImportOptions) -> list[Row]:
    """The rows of a launch. Raises UsageError where the file is not read wholly."""
    try:
        parsed = parse(file.data, Context(file.name, options.benchmark))
    except UsageError as error:
        raise UsageError(f"{file.name}: {error}") from None
    if parsed.problems or not parsed.tables:
        raise UsageError(f"{file.name}: {parsed.problems[0] if parsed.problems else 'no table'}; nothing was imported")
    started = options.started_at or datetime.fromtimestamp(file.modified, UTC).isoformat()
    return [complete_row(row, table, run_id, number, started, options) for table in parsed.tables for row in table.rows]
