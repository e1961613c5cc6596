"""Read the baseline of an acceptance, and check before measuring that it can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omb_py.errors import UsageError
from omb_py.orchestrate.accept.progress_log import PERFORMANCE, PHASE_TAG, Begun
from omb_py.orchestrate.running.resume import NEWEST
from omb_py.results.accept.criteria import Case
from omb_py.results.compare.report import fields_text

_MORE = ("min_us", "p999_us", "algbw_gbps", "busbw_gbps", "metrics", "dtype", "op")
_FACTS = ("ranks", "backend", "binding", "dtype", "op")
Row = Mapping[str, Any]


def baseline_rows(word: str, store: Path, own_run: str | None, begun: Begun | None) -> list[Row]:
    """Read the rows of a side of ``read_side``, without correctness checks and interference tests.

    Args:
        word: the side.
        store: folder in which it is looked for.
        own_run: the run that is resumed; its rows are left out, because they are what is judged.
        begun: what that run began with: `word` still means the runs that it meant then.

    Raises:
        UsageError: the word names no stored launches.
    """
    from omb_py.results.compare.select_launches import read_side

    meant = begun.baseline_runs if begun and begun.baseline == word else ()
    words = meant if word == NEWEST and meant else (word,)
    return [
        row
        for side in words
        for row in read_side(side, store, _MORE).rows
        if dict(row["tags"] or {}).get(PHASE_TAG, PERFORMANCE) == PERFORMANCE
        and row["run_id"] != own_run
        and (not meant or row["run_id"] in meant)
    ]


def check_baseline(cases: Sequence[Case], rows: Sequence[Row], word: str) -> None:
    """Raises UsageError where no case can have a verdict, because the baseline has no launch of it, or only one."""
    asking = [case for case in cases if case.criterion.source == "baseline" and "ranks" in case.facts]
    if not asking:
        return
    launches = [{row["launch_id"] for row in rows if _is(case, row) and not _apart(case, row)} for case in asking]
    if not any(launches):
        nearest = _nearest(asking, rows)
        raise UsageError(f"the baseline {word} has none of the cells that are to be compared with it: {nearest}")
    if max(map(len, launches)) == 1:
        raise UsageError(
            f"the baseline {word} is only one launch of each cell; at least two are needed: measure it with "
            "--launches 5"
        )


def _is(case: Case, row: Row) -> bool:
    return row["benchmark"] == case.facts["benchmark"] and int(row["size_bytes"] or 0) == case.size


def _apart(case: Case, row: Row) -> list[str]:
    return [name for name in _FACTS if row.get(name) != case.facts[name]]


def _nearest(asking: Sequence[Case], rows: Sequence[Row]) -> str:
    """Say how the most similar stored cell differs, or else what is stored."""
    pairs = [(case, row) for case in asking for row in rows if _is(case, row)]
    if not pairs:
        known = ", ".join(dict.fromkeys(str(row["benchmark"]) for row in rows)) or "nothing"
        return f"it has {known}, {'of other sizes' if _shared(asking, rows) else 'not ' + asking[0].criterion.measured}"
    case, row = min(pairs, key=lambda pair: len(_apart(*pair)))
    return f"{row['benchmark']}: {fields_text(row, case.facts, _apart(case, row))}"


def _shared(asking: Sequence[Case], rows: Sequence[Row]) -> bool:
    return bool({case.facts["benchmark"] for case in asking} & {row["benchmark"] for row in rows})
