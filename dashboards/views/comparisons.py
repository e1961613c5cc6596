"""The comparisons that the store keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import Shown, View, plural, table
from omb_py.dashboards.figures import comparison
from omb_py.dashboards.views.cells import Cells
from omb_py.results.compare.cell_names import namer
from omb_py.results.compare.false_alarm_rate import read_kept, site_rate
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import COMPARE
from omb_py.results.store.paths import OnSkip
from omb_py.results.units import listed

MOST_NAMED = 3
"""Differences named in a title."""
MOST_COMPARISONS = 3
"""Comparisons in a report: what is left out is counted in it."""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """A stored comparison, with the cells that are looked at."""

    record: Facts
    """The report (:func:`omb_py.results.compare.report.as_dict`)."""
    verdicts: pd.DataFrame
    """A verdict table (:mod:`omb_py.dashboards.figures.comparison`); at least one row."""

    @property
    def run(self) -> str:
        """The run that measured it."""
        return str(self.record.get("run_id"))

    @property
    def sides(self) -> tuple[str, str]:
        """Names of BASE and NEW: their libraries where those differ, else the words by which a user named them."""
        names = [listed(side["libraries"]) for side in (self.record["sides"][s] for s in SIDES)]
        if names[0] == names[1]:
            words = {side: str(self.record["sides"][side].get("word") or side) for side in SIDES}
            names = [side if word.startswith(self.run) else word for side, word in words.items()]
        return (names[0], names[1]) if names[0] != names[1] else SIDES

    @property
    def name(self) -> str:
        """``Open MPI 5.0.11 against MPICH 5.0.2``."""
        return f"{self.sides[1]} against {self.sides[0]}"

    @property
    def commands(self) -> tuple[str, ...]:
        """The command that judges the same launches again."""
        return (f"omb-py compare {self.run}  # the same launches, judged again",)


def verdict_table(record: Facts, keys: Collection[str] | None = None) -> pd.DataFrame:
    """A row a cell of a report: its verdict, and the ratio of the question (median or tail) that decided it."""
    cells = [cell for cell in record["cells"] if keys is None or cell.get("comparability_key") in keys]
    named = namer(cells)
    return pd.DataFrame([_row(cell, named(cell)) for cell in cells], columns=[*_COLUMNS])


_COLUMNS = tuple(
    ("cell verdict ratio low high base_us new_us launches_base launches_new detectable comparability_key").split()
)


def _row(cell: Facts, name: str) -> dict[str, Any]:
    answer, question = cell.get("median") or {}, "median"
    tail = cell.get("tail") or {}
    if tail.get("verdict") == cell["verdict"] != answer.get("verdict"):  # the verdict rests on the tail
        answer, question = tail, str(tail.get("statistic", "tail"))
    launches = answer.get("launches") or (None, None)
    detectable = answer.get("detectable")
    return {
        "cell": name + (f", {question}" if question != "median" else "") + ("*" if cell.get("sync_limited") else ""),
        "verdict": cell["verdict"],
        **{column: answer.get(column) for column in ("ratio", "low", "high", "base_us", "new_us")},
        "launches_base": launches[0],
        "launches_new": launches[1],
        "detectable": None if detectable is None else detectable - 1,
        "comparability_key": cell.get("comparability_key"),
    }


def views(compared: StoredComparison, store: Path) -> list[View]:
    """The board, and what differed between the sides."""
    delta = float((compared.record.get("rules") or {}).get("delta", comparison.DELTA))
    board = comparison.board(compared.verdicts, delta, site_rate(store).sentence(), compared.name)
    if compared.verdicts["cell"].str.endswith("*").any():
        board = board.noted(("* mostly the skew of the synchronisation was measured.",))
    return [view.with_commands(compared.commands) for view in (board, difference(compared))]


def difference(compared: StoredComparison) -> View:
    """The facts in which the sides of a comparison differ; only a table."""
    facts: Sequence[Facts] = compared.record.get("differences") or ()
    named = "; ".join(f"{fact['what']}: {fact['base']} → {fact['new']}" for fact in facts[:MOST_NAMED])
    left = len(facts) - MOST_NAMED
    more = f"; and {left} more" if left > 0 else ", and nothing else"
    return View(
        "environment",
        f"{compared.name}: {named}{more}" if facts else f"{compared.name}: nothing that is recorded differs",
        f"{plural(len(facts), 'difference')} between the sides of {compared.run}",
        None,
        **table(("fact", *compared.sides), [(fact["what"], fact["base"], fact["new"]) for fact in facts]),
    )


def verdicts(cells: Cells) -> Iterator[Shown]:
    """The stored comparisons of the cells."""
    return (Shown(view, cells.rows) for compared in read_stored(cells) for view in views(compared, cells.store))


def read_stored(cells: Cells, on_skip: OnSkip | None = None) -> list[StoredComparison]:
    """The comparisons of the cells that each store keeps, those with something SLOWER first, then the newest. `on_skip`
    gets the path and the reason for each file that is no report; by default that of the cells does."""
    keys = None if cells.whole else set(cells.rows["comparability_key"].dropna().unique())
    judged: list[StoredComparison] = []
    for store in cells.stores:
        records = [record for record in read_kept(store, on_skip or cells.on_skip) if record["kind"] == COMPARE]
        every = [StoredComparison(record, verdict_table(record, keys)) for record in reversed(records)]
        known = [compared for compared in every if len(compared.verdicts)]
        judged += sorted(known, key=lambda compared: not (compared.verdicts["verdict"] == "SLOWER").any())
    return judged


def verdicts_in_report(cells: Cells) -> Iterator[Shown]:
    """The first comparisons."""
    every = read_stored(cells)
    for compared in every[:MOST_COMPARISONS]:
        yield from map(Shown, views(compared, cells.store))
    if (left := len(every) - MOST_COMPARISONS) > 0:
        yield Shown(None, text=f"{plural(left, 'comparison')} more left out: omb-py compare RUN shows one.")
