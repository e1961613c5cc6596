"""From a program's output to rows: which reader reads it, and what of it is no measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omb_py.errors import NoVerdict, UsageError, nearest
from omb_py.orchestrate.programs.execution import Execution
from omb_py.results.dialects.named_metrics import MetricReader, NamedMetric
from omb_py.results.dialects.parse import parse
from omb_py.results.dialects.reading import Context, ImportedRow, ImportedTable, TextReader, WholeReader
from omb_py.results.dialects.registry import DIALECTS
from omb_py.results.dialects.storing import ImportOptions, complete_row
from omb_py.results.store.row import Row


@dataclass(frozen=True, slots=True)
class OutputReading:
    """How outputs are read: by all readers that are known, by some, or by the numbers that the user names."""

    readers: Sequence[TextReader | WholeReader] = ()
    """Empty: all, found by the content."""

    def tables(self, ended: Execution) -> list[ImportedTable]:
        """The tables of an output.

        Raises:
            NoVerdict: it is empty, cut or damaged.
            UsageError: no reader knows any of it.
        """
        if not ended.output.strip():
            said = f" (stderr: {ended.last_line})" if ended.last_line else ""
            raise NoVerdict(f"printed nothing{said}")
        try:
            parsed = parse(ended.output, Context(), self.readers)
        except UsageError as error:
            said = f"; stderr: {ended.last_line}" if ended.errors.strip() else ""
            raise UsageError(
                f"prints nothing that omb-py reads: {error}, or name the number: "
                f"--metric 'NAME UNIT lower|higher REGEX'{said}"
            ) from None
        if parsed.problems:
            raise NoVerdict(f"printed what is cut or damaged: {parsed.problems[0]}")
        if not any(table.rows for table in parsed.tables):
            raise NoVerdict(f"measured nothing: {parsed.notes[0] if parsed.notes else 'its tables are empty'}")
        return parsed.tables


def reading_of(name: str, metrics: Sequence[NamedMetric]) -> OutputReading:
    """The reading of ``--read`` and ``--metric``.

    Raises:
        UsageError: there is no such tool, both are given, or two numbers have one name.
    """
    if metrics and name:
        raise UsageError("--read names a tool whose text is known, and --metric a number in any text: give one of them")
    if twice := next((name for name, times in Counter(m.name for m in metrics).items() if times > 1), ""):
        raise UsageError(f"--metric {twice} is given twice: each number needs a name of its own")
    if metrics:
        return OutputReading((MetricReader(metrics),))
    if not name:
        return OutputReading()
    names = {word: dialect for dialect in DIALECTS if dialect.readers() for word in _names(dialect.title, dialect.name)}
    if name.lower() not in names:
        raise UsageError(f"--read {name}: {nearest(name.lower(), names)}")
    return OutputReading(tuple(names[name.lower()].readers()))


def _names(title: str, name: str) -> set[str]:
    return {word.strip().lower() for word in (*title.split(","), name) if word.strip()}


def rows_of(
    tables: Sequence[ImportedTable], run_id: str, launch: int, started: str, tags: Mapping[str, str], ranks: int | None
) -> dict[str, Row]:
    """The rows of a launch by their comparability key; of a cell that stands there several times, the first.

    Args:
        tables: what was read.
        run_id: the comparison.
        launch: number of the launch.
        started: ISO time.
        tags: of every row.
        ranks: what the launcher was asked for; it stands where the output says nothing.
    """
    rows: dict[str, Row] = {}
    options = ImportOptions(tags=tags)
    for table in tables:
        for imported in table.rows:
            filled: ImportedRow = dict(imported)
            if ranks is not None and filled.get("ranks") is None:
                filled["ranks"] = ranks
            row = complete_row(filled, table, run_id, launch, started, options)
            rows.setdefault(str(row["comparability_key"]), row)
    return rows
