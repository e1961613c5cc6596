"""Write imported tables into the store. Each start of a tool is a launch; the hash of the file identifies the run."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from omb_py import __version__
from omb_py.errors import UsageError, nearest
from omb_py.results.dialects.imb.names import FORMS, benchmark_of
from omb_py.results.dialects.nccl.rows import collective_of
from omb_py.results.dialects.nccl.text import BENCHMARKS
from omb_py.results.dialects.omb.titles import TITLES
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, ImportedRow, ImportedTable, Parsed, Problem
from omb_py.results.store import schema
from omb_py.results.store.keys import comparability_key
from omb_py.results.store.provenance import MERGED
from omb_py.results.store.read import files, load_table, typed
from omb_py.results.store.row import Row
from omb_py.results.store.write import check_writable, to_table, write_launch

IMPORTED = "import"
"""Ids of imported runs start with it."""
_FIXED = frozenset(
    "run_id launch_id launch_index started_at schema_version source comparability_key environment_key".split()
)
_MEASURED = frozenset("value ess sync_limited algbw_gbps busbw_gbps bw_formula validated wrong_bytes".split())


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Facts that the user gives about a file."""

    benchmark: str | None = None
    """The benchmark of tables without a title."""
    values: ImportedRow | None = None
    """Values for columns that the file leaves null."""
    tags: Mapping[str, str] | None = None
    started_at: str | None = None
    """ISO time of the launches; by default the one in the file, or the time at which the file was last written."""
    again: bool = False
    """Whether to replace an earlier import of the same file."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The outcome for one file."""

    name: str
    run_id: str
    tables: Sequence[ImportedTable]
    problems: Sequence[Problem]
    notes: Sequence[Problem] = ()
    known: bool = False
    """Whether the same content had been imported before, so that nothing was written."""

    @property
    def cells(self) -> int:
        """Number of rows that were read."""
        return sum(len(table.rows) for table in self.tables)


def columns_of(assignments: Mapping[str, str]) -> ImportedRow:
    """Convert ``COLUMN=VALUE`` to the columns' types. Raises UsageError when a column or value is wrong."""
    known = [name for name in schema.SCALARS if name not in _FIXED | _MEASURED and not name.endswith("_us")]
    for name in assignments:
        if name == "started_at":
            raise UsageError("--set started_at=TIME: say --started-at TIME")
        if name not in known:
            raise UsageError(f"--set takes a column that describes a launch, not {name!r}: {nearest(name, known)}")
    return {name: typed(schema.BY_NAME[name], value) for name, value in assignments.items()}


def check_benchmark(name: str, ours: Iterable[str]) -> str:
    """Our name of a benchmark, of which OMB's, nccl-tests' and IMB's are taken too. Raises UsageError for another.

    >>> check_benchmark("osu_bw", ()), check_benchmark("all_gather_perf", ()), check_benchmark("PingPong", ())
    ('bw', 'allgather', 'latency')
    """
    plain = name.strip().lower().removeprefix("osu_")
    known = {*ours, *TITLES}
    if plain in known:
        return plain
    if collective := collective_of(plain):
        return BENCHMARKS[collective]
    if benchmark := benchmark_of(plain):
        return benchmark
    choices = (*known, *BENCHMARKS, *(form.name for form in FORMS.values()))
    raise UsageError(f"--benchmark {name!r} is unknown: {nearest(plain, choices)}")


def store_bytes(
    data: bytes, name: str, modified: float, store: str | Path, options: ImportOptions, copy: int = 0
) -> Imported:
    """Import one file.

    Args:
        data: content of the file.
        name: name of the file, for the provenance; it may also name the benchmark.
        modified: time of the last change, in seconds since 1970. It is the start of launches without another time.
        store: the folder.
        options: facts that the user gives about the file.
        copy: how many files with the same content were imported before by the same command: each is another launch.

    Raises:
        UsageError: the file has none of the known formats, or states another value for a column that the user sets.
            Nothing is written.
        EnvironmentProblem: the store cannot be written. No part of the file is left there.
    """
    digest = hashlib.sha256(data + b"\0copy %d" % copy if copy else data).hexdigest()
    run_id = f"{IMPORTED}-{digest[:16]}"
    parsed = parse(data, Context(name, options.benchmark))
    before = _launches(store, run_id)
    if before and not options.again:
        return Imported(name, run_id, parsed.tables, parsed.problems, parsed.notes, known=True)
    moment = datetime.fromtimestamp(modified, UTC).isoformat()
    if Path(store) in before:
        raise UsageError(f"run {run_id} lies in a merged file of the store: remove it there before you import it again")
    launches = _complete(parsed, run_id, moment, options)
    if not launches:
        return Imported(name, run_id, (), parsed.problems, parsed.notes)
    check_writable(store)
    written: list[Path] = []
    try:
        for rows, facts in launches:
            written.append(write_launch(store, rows, {"imported": {"file": name, "sha256": digest, **facts}}))
    except BaseException:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise
    for path in before:
        if path not in written:
            with contextlib.suppress(OSError):
                path.unlink()
    return Imported(name, run_id, parsed.tables, parsed.problems, parsed.notes)


def _launches(store: str | Path, run_id: str) -> list[Path]:
    """Files of an earlier import; the store's folder itself stands for rows in merged files."""
    if not Path(store).is_dir():
        return []
    stored = files(store)
    own = [path for path in stored if path.name.startswith(f"{run_id}-")]
    if own or not any(path.name.startswith(MERGED) for path in stored):
        return own
    merged = load_table(store, columns=["run_id"], run_id=run_id, on_skip=lambda path, why: None)
    return [Path(store)] if merged.num_rows else []


def _complete(
    parsed: Parsed, run_id: str, moment: str, options: ImportOptions
) -> list[tuple[list[Row], dict[str, object]]]:
    """The (rows, facts) of each launch; a table with numbers that the store cannot hold becomes a problem."""
    launches: dict[int, tuple[list[Row], dict[str, object]]] = {}
    good: list[ImportedTable] = []
    for table in parsed.tables:
        started = options.started_at or table.started_at or moment
        rows = [complete_row(row, table, run_id, table.launch, started, options) for row in table.rows]
        try:
            to_table(rows, {})
        except ValueError:
            parsed.problems.append(Problem(table.line, f"table {table.benchmark!r} left out: a number is out of range"))
            continue
        good.append(table)
        facts = {
            "tool": table.source,
            "tool_version": table.version,
            "line": table.line,
            "by": f"omb-py {__version__}",
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **table.facts,
            "started_at": "given" if options.started_at else "in the file" if table.started_at else "file last written",
        }
        launches.setdefault(table.launch, ([], facts))[0].extend(rows)
    parsed.tables[:] = good
    return [launches[number] for number in sorted(launches)]


def complete_row(
    row: ImportedRow, table: ImportedTable, run_id: str, launch: int, started: str, options: ImportOptions
) -> Row:
    """The row of the store that a reader's row becomes.

    Args:
        row: a row of `table`.
        run_id: the run that it belongs to.
        launch: number of the launch within the run.
        started: ISO time of the launch.
        options: what is known beside.

    Raises:
        UsageError: the options state another value than the row.
    """
    out: ImportedRow = {**schema.blank_row(), **row}
    for name, value in (options.values or {}).items():
        if out[name] is not None and out[name] != value:
            raise UsageError(f"--set {name}={value}: line {table.line} says {out[name]}")
        out[name] = value
    out.update(
        run_id=run_id,
        launch_id=f"{run_id}-{launch}",
        launch_index=launch,
        started_at=started,
        schema_version=schema.SCHEMA_VERSION,
        tags=dict(options.tags or {}) or None,
    )
    parameters = {k: v for k, v in (out["parameters"] or {}).items() if k != "program"}
    method = ":".join((table.source, table.version or "", *(f"{k}={v}" for k, v in sorted(parameters.items()))))
    whole = cast(Row, out)
    whole["comparability_key"] = comparability_key(whole, method)
    return whole
