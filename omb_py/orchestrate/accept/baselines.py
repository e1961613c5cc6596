"""The stored launches that an acceptance is compared with: read, and looked at before anything is measured."""

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
    """What a side of ``read_side`` holds, without correctness checks and interference tests.

    Args:
        word: the side.
        store: where it is looked for.
        own_run: a run that is gone on with; its rows are what is judged.
        begun: what that run was begun with: the runs that `word` meant then are what it means.

    Raises:
        UsageError: nothing is meant by the word.
    """
    from omb_py.results.compare.select_launches import read_side

    meant = begun.baseline_runs if begun and begun.baseline == word else ()
    words = meant if word == NEWEST and meant else (word,)
    return [
        row
        for one in words
        for row in read_side(one, store, _MORE).rows
        if dict(row["tags"] or {}).get(PHASE_TAG, PERFORMANCE) == PERFORMANCE
        and row["run_id"] != own_run
        and (not meant or row["run_id"] in meant)
    ]


def check_baseline(cases: Sequence[Case], rows: Sequence[Row], word: str) -> None:
    """Raises UsageError where no case can have a verdict, whatever is measured: no launch or only one of each."""
    asking = [case for case in cases if case.criterion.source == "baseline" and "ranks" in case.facts]
    if not asking:
        return
    launches = [{row["launch_id"] for row in rows if _is(case, row) and not _apart(case, row)} for case in asking]
    if not any(launches):
        told = _nearest(asking, rows)
        raise UsageError(f"the baseline {word} has none of the cells that are to be compared with it: {told}")
    if max(map(len, launches)) == 1:
        raise UsageError(
            f"the baseline {word} is one launch of each cell, which says nothing about the next: measure it with "
            "--launches 5"
        )


def _is(case: Case, row: Row) -> bool:
    return row["benchmark"] == case.facts["benchmark"] and int(row["size_bytes"] or 0) == case.size


def _apart(case: Case, row: Row) -> list[str]:
    return [name for name in _FACTS if row.get(name) != case.facts[name]]


def _nearest(asking: Sequence[Case], rows: Sequence[Row]) -> str:
    """How the likest stored cell differs, else what is stored."""
    pairs = [(case, row) for case in asking for row in rows if _is(case, row)]
    if not pairs:
        known = ", ".join(dict.fromkeys(str(row["benchmark"]) for row in rows)) or "nothing"
        return f"it has {known}, {'of other sizes' if _shared(asking, rows) else 'not ' + asking[0].criterion.measured}"
    case, row = min(pairs, key=lambda pair: len(_apart(*pair)))
    return f"{row['benchmark']}: {fields_text(row, case.facts, _apart(case, row))}"


def _shared(asking: Sequence[Case], rows: Sequence[Row]) -> bool:
    return bool({case.facts["benchmark"] for case in asking} & {row["benchmark"] for row in rows})
