"""``omb-py results import``: other tools' files into the store."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from omb_py.cli.help import tool_option
from omb_py.errors import OK, UsageError
from omb_py.grammar.values import parse_tags
from omb_py.options.request import DEFAULT_STORE
from omb_py.results.dialects.interleaved_logs import LogFile, NamePattern, parse_pattern, store_interleaved
from omb_py.results.dialects.log_files import STDIN, logs_in, read_log, without_files
from omb_py.results.dialects.storing import Imported, ImportOptions, check_benchmark, columns_of, store_bytes
from omb_py.results.repro_command import storing
from omb_py.results.units import counted

IMPORT_HELP = (
    "Files of other tools into the store: text of OMB 5.3 to 8.0, OMB-Py, nccl-tests, rccl-tests and Intel MPI "
    "Benchmarks, JSON of nccl-tests and rccl-tests, CSV of rccl-tests. A log may hold several tables, lines of "
    "anything else between them, and before each line what a launcher or a collector of logs puts there. FILE may be "
    "a folder, or packed by gzip, xz or bzip2. A damaged row is left out and named. What a file does not say stays "
    "null. Files with the same content in one command are launches with the same result."
)
IMPORT_EXAMPLES = (
    "omb-py results import osu_*.log --store DIR",
    "omb-py results import old-*.log new-*.log --interleaved '{old|new}-{pair}.log'",
    'omb-py results import old.log --set "library=Open MPI" --set library_version=5.0.7 --set ranks=64',
)


def import_params() -> list[click.Parameter]:
    option = partial(tool_option, "What is known")
    return [
        click.Argument(["sources"], nargs=-1, required=True, metavar="FILE..."),
        option(
            "--benchmark NAME",
            "What a table measures that does not say it. (default: from the title, the command line in the "
            "log, the file's name)",
            str,
        ),
        option(
            "--set values COLUMN=VALUE",
            "A column that the file leaves null, as library, library_version, ranks; repeat it. (default: none)",
            str,
            multiple=True,
        ),
        option("--tag tags K=V", "Stored with every row; repeat it. (default: none)", str, multiple=True),
        option(
            "--started-at TIME",
            "When it was measured, as 2026-11-21T12:00. (default: what the file says, else when it was last written)",
            _moment,
        ),
        option(
            "--interleaved PATTERN",
            "The files are interleaved launches of two sides, one comparison, and their names say which, as "
            "'{old|new}-{pair}.log' with the word of BASE first. (default: each file is a night)",
            parse_pattern,
        ),
        tool_option("Storage", "--again", "Replace an earlier import of the same content. (default: leave it)"),
    ]


def run_import(
    sources: tuple[str, ...],
    benchmark: str | None,
    values: tuple[str, ...],
    tags: tuple[str, ...],
    started_at: str | None,
    interleaved: NamePattern | None,
    again: bool,
    store: Path | None,
) -> int:
    """Import each file. Raises UsageError after the last one where some could not be read wholly."""
    try:
        assignments = parse_tags(values, "column", "COLUMN=VALUE", "--set")
    except UsageError as error:
        raise UsageError(f"--set takes COLUMN=VALUE: {error}") from None
    options = ImportOptions(
        _resolve_name(benchmark) if benchmark else None, columns_of(assignments), parse_tags(tags), started_at, again
    )
    place = store or DEFAULT_STORE
    contents: Counter[bytes] = Counter()
    files = [name for source in sources for name in _files_of(source)]
    if interleaved is not None:
        return _import_pairs(files, interleaved, place, options)
    refused = [reason for name in files if (reason := _import(name, place, options, contents)) is not None]
    if len(files) == 1 and refused:
        raise UsageError(refused[0])
    for reason in refused:
        click.echo(f"omb-py: {reason}", err=True)
    if refused:
        raise UsageError(f"{len(refused)} of {len(files)} files could not be imported wholly: see above")
    return OK


def _resolve_name(benchmark: str) -> str:
    from omb_py.suites.registry import names  # loads every benchmark

    return check_benchmark(benchmark, names())


def _files_of(source: str) -> list[str]:
    """The files of a folder in the order of their names, or the file itself. Raises UsageError for an empty folder."""
    if source == STDIN or not os.path.isdir(source):
        return [source]
    files = logs_in(source)
    if not files:
        raise UsageError(without_files(source))
    return files


def _import_pairs(files: Sequence[str], pattern: NamePattern, store: Path, options: ImportOptions) -> int:
    """Import launches that were made in turn, as one run. Raises UsageError."""
    logs = []
    for name in files:
        try:
            logs.append(LogFile(name, *read_log(name)))
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
    run_id = store_interleaved(logs, pattern, store, options)
    judge = storing(f"omb-py compare {run_id}", store)
    click.echo(f"{len(logs)} launches in {len(logs) // 2} pairs, as {run_id} in {store}: {judge}")
    return OK


def _import(source: str, store: Path, options: ImportOptions, contents: Counter[bytes]) -> str | None:
    """Import a file and print what was read; returns why when a part of it was not.

    Files of one command with the same content are launches with the same result: short output is often equal.
    """
    try:
        data, modified = read_log(source)
        digest = hashlib.sha256(data).digest()
        name = "stdin" if source == STDIN else Path(source).name
        imported = store_bytes(data, name, modified, store, options, contents[digest])
        contents[digest] += 1
    except UsageError as error:
        return f"{source}: {error}"
    if stored := bool(imported.tables) or imported.known:
        click.echo(_line(source, imported, store))
    for note in imported.notes:
        click.echo(f"omb-py: {source}: {note}", err=True)
    if not imported.problems:
        return None if stored else f"{source}: no row to import"
    if len(imported.problems) > 1:
        for problem in imported.problems:
            click.echo(f"omb-py: {source}: {problem}", err=True)
        return f"{source}: {len(imported.problems)} lines or tables left out, {_read(imported)}"
    rest = f"; {_read(imported)}" if imported.tables else ""
    return f"{source}: {imported.problems[0]}{rest}"


def _line(source: str, imported: Imported, store: Path) -> str:
    if imported.known:
        return f"{source}: imported before as {imported.run_id}, nothing written; --again replaces it"
    tools = Counter(" ".join(filter(None, (table.source, table.version))) for table in imported.tables)
    read = f"{counted(len(imported.tables), 'table')} of {', '.join(tools)}, {counted(imported.cells, 'cell')}"
    return f"{source}: {read}, as {imported.run_id} in {store}"


def _read(imported: Imported) -> str:
    return f"{counted(len(imported.tables), 'table')} read, {counted(imported.cells, 'cell')}"


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise UsageError(f"--started-at {text!r} is not a time: write it as 2026-11-21T12:00") from None
