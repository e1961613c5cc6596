"""Stored comparisons as views: reports of ``STORE/reports`` into verdict tables, and what differed between sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.dashboards.base.view import View, listed, plural, table
from omb_py.dashboards.figures import comparison
from omb_py.results.compare.cell_names import namer
from omb_py.results.compare.false_alarm_rate import kept, site_rate
from omb_py.results.compare.match import SIDES
from omb_py.results.compare.report import COMPARE
from omb_py.results.store.paths import OnSkip

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 3
"""Differences named in a title."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stored comparison, with the cells that are looked at."""

    told: Mapping[str, Any]
    """As :func:`omb_py.results.compare.report.as_dict` made it."""
    verdicts: pd.DataFrame
    """A verdict table (:mod:`omb_py.dashboards.figures.comparison`); at least one row."""

    @property
    def run(self) -> str:
        """The run that measured it."""
        return str(self.told.get("run_id"))

    @property
    def sides(self) -> tuple[str, str]:
        """What BASE and NEW are: their libraries where those differ, else the words by which they were named."""
        made = [listed(side["libraries"]) for side in (self.told["sides"][s] for s in SIDES)]
        if made[0] == made[1]:
            words = {side: str(self.told["sides"][side].get("word") or side) for side in SIDES}
            made = [side if word.startswith(self.run) else word for side, word in words.items()]
        return (made[0], made[1]) if made[0] != made[1] else SIDES

    @property
    def name(self) -> str:
        """``Open MPI 5.0.11 against MPICH 5.0.2``."""
        return f"{self.sides[1]} against {self.sides[0]}"

    @property
    def commands(self) -> tuple[str, ...]:
        """What shows it again, and what tells how often this site cries wolf."""
        return (f"omb-py compare {self.run}  # the same launches, judged again",)


def comparisons(store: Path, keys: Collection[str] | None = None, on_skip: OnSkip | None = None) -> list[Comparison]:
    """The comparisons that a store keeps, those with something SLOWER first, then the newest.

    Args:
        store: its folder.
        keys: comparability keys of the cells that are looked at; all when None.
        on_skip: called with the path and the reason for each file that is no report.
    """
    found = []
    for told in kept(store, on_skip):
        if told["kind"] == COMPARE:
            verdicts = verdict_table(told, keys)
            if len(verdicts):
                found.append(Comparison(told, verdicts))
    found.reverse()
    return sorted(found, key=lambda one: not (one.verdicts["verdict"] == "SLOWER").any())


def verdict_table(told: Mapping[str, Any], keys: Collection[str] | None = None) -> pd.DataFrame:
    """A row a cell of a report: its verdict, and the ratio of the question (median or tail) that decided it."""
    import pandas as pd

    cells = [cell for cell in told["cells"] if keys is None or cell.get("comparability_key") in keys]
    named = namer(cells)
    return pd.DataFrame([_row(cell, named(cell)) for cell in cells], columns=[*_COLUMNS])


_COLUMNS = tuple(
    (
        "cell verdict ratio low high size_bytes series base_us new_us launches_base launches_new detectable "
        "comparability_key tail"
    ).split()
)


def _row(cell: Mapping[str, Any], name: str) -> dict[str, Any]:
    answer, question = _deciding(cell)
    launches = answer.get("launches") or (None, None)
    detectable = answer.get("detectable")
    tail = cell.get("tail") or {}
    return {
        "cell": name + (f", {question}" if question != "median" else "") + ("*" if cell.get("sync_limited") else ""),
        "verdict": cell["verdict"],
        "ratio": answer.get("ratio"),
        "low": answer.get("low"),
        "high": answer.get("high"),
        "size_bytes": cell.get("size_bytes") or None,
        "series": ", ".join([cell["benchmark"], *name.split(", ")[1:]]),
        "base_us": answer.get("base_us"),
        "new_us": answer.get("new_us"),
        "launches_base": launches[0],
        "launches_new": launches[1],
        "detectable": None if detectable is None else detectable - 1,
        "comparability_key": cell.get("comparability_key"),
        "tail": tail.get("verdict"),
    }


def _deciding(cell: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The answer that the cell's verdict rests on, and what it is of."""
    median, tail = cell.get("median") or {}, cell.get("tail") or {}
    if tail.get("verdict") == cell["verdict"] != median.get("verdict"):
        return tail, str(tail.get("statistic", "tail"))
    return median, "median"


def views(one: Comparison, store: Path) -> list[View]:
    """The board, the ratio over message size where there are sizes, and what differed between the sides."""
    delta = float((one.told.get("rules") or {}).get("delta", comparison.DELTA))
    rate = site_rate(store).sentence()
    limited = ("* mostly the skew of the synchronisation was measured.",)
    made = [comparison.board(one.verdicts, delta, rate, one.name)]
    if one.verdicts["cell"].str.endswith("*").any():
        made[0] = made[0].noted(limited)
    if one.verdicts["size_bytes"].nunique() > 1 and one.verdicts["ratio"].notna().any():
        made.append(comparison.ratio(one.verdicts, one.name, delta))
    made.append(difference(one))
    return [view.with_commands(one.commands) for view in made]


def difference(one: Comparison) -> View:
    """What differs between the sides of a comparison, fact by fact; only a table."""
    found: Sequence[Mapping[str, Any]] = one.told.get("differences") or ()
    said = "; ".join(f"{d['what']}: {d['base']} → {d['new']}" for d in found[:MOST_NAMED])
    more = f"; and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ", and nothing else" if said else ""
    return View(
        "environment",
        f"{one.name}: {said}{more}" if said else f"{one.name}: nothing that is recorded differs",
        f"{plural(len(found), 'difference')} between the sides of {one.run}",
        None,
        **table(("fact", *one.sides), [(d["what"], d["base"], d["new"]) for d in found]),
    )
