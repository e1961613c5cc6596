"""Launches of ``omb-py tune``: which setting wins where, a view for each library and collective."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from omb_py.dashboards.base.view import Shown
from omb_py.dashboards.figures.winners import DEFAULT
from omb_py.dashboards.figures.winners import winners as winners_view
from omb_py.dashboards.views.cells import Cells
from omb_py.results.compare.tags import TUNE_SETTING

if TYPE_CHECKING:
    import pandas as pd

_SETTING = re.compile(rf"(?:^|, ){TUNE_SETTING}=(.*?)(?=, [a-z_]+=|$)")
_BY = ["benchmark", "backend", "library", "library_version", "binding", "device", "dtype", "op", "in_place", "nodes"]
_CELL = ["ranks", "size_bytes"]


def winners(cells: Cells) -> Iterator[Shown]:
    """The fastest setting of each size and number of ranks, by the median of its launches."""
    settings = cells.rows["tags"].astype(str).str.extract(_SETTING, expand=False)
    tuned = cells.rows.assign(setting=settings)[settings.notna() & cells.rows["median_us"].notna()]
    for _, part in tuned.groupby([name for name in _BY if name in tuned], dropna=False, sort=True, observed=True):
        if part["setting"].nunique() > 1:
            first = part.iloc[0]
            what = f"{first['benchmark']}, {first['library']} {first['library_version']}"
            yield Shown(winners_view(best_of(part), what), part)


def best_of(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each number of ranks and size: the setting with the least median over its launches."""
    import pandas as pd

    grouped = rows.groupby([*_CELL, "setting"], observed=True)["median_us"]
    medians = pd.DataFrame({"time_us": grouped.median(), "launches": grouped.count()}).reset_index()
    default = medians[medians["setting"] == DEFAULT].set_index(_CELL)["time_us"].rename("default_us")
    best = medians.loc[medians.groupby(_CELL, observed=True)["time_us"].idxmin()].join(default, on=_CELL)
    ordered: pd.DataFrame = best.assign(ratio=best["time_us"] / best["default_us"]).sort_values(_CELL)
    return ordered
