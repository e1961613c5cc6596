"""Times and bandwidths over message size and over ranks, steps of workloads, and what was tuned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.series import Panel
from omb_py.dashboards.base.theme import Facts
from omb_py.dashboards.base.view import Shown, View
from omb_py.dashboards.figures import curves, models
from omb_py.dashboards.figures.fastest import UNITS
from omb_py.dashboards.figures.maps import winners as winners_view
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.first_screen import panels_of, several_counts
from omb_py.results.compare.tags import TUNE_DEFAULT, TUNE_PROOF, TUNE_SETTING
from omb_py.results.units import listed

QUANTITIES = ("auto", *(name for name in UNITS if name != "bandwidth"))
"""What a reader of the explorer can choose; ``auto`` is what the benchmark prints, as ``bandwidth`` would be."""
SMALL, LARGE = 4 * 1024, 64 * 1024
"""The report draws bus bandwidth from the first size on, in bytes, where messages reach the second."""


def over_size(cells: Cells, quantity: str = QUANTITIES[0]) -> Iterator[Shown]:
    """Curves of each panel that has the quantity (one of :data:`QUANTITIES`)."""
    for panel in cells.panels:
        if quantity == "ratio":
            yield from _divide_by_first(panel)
        elif quantity == "kept":
            return
        elif quantity not in ("algbw", "busbw") or panel.rows[f"{quantity}_gbps"].notna().any():
            view = curves.curves(panel, quantity, cells.bound_of(panel.rows))
            yield Shown(view, panel.rows)


def _divide_by_first(panel: Panel) -> Iterator[Shown]:
    """Each series of a panel over its first, at the sizes that both have; nothing where there is only one."""
    sides = [(line.label, line.cells) for line in panel.lines]
    grid = curves.PanelGrid(quantity="ratio")
    known = curves.points(sides, grid)
    if len({side for side, _ in known.known}) < 2:
        return
    ranks = [series.word("ranks", count) for count in known.panels]
    name = ", ".join(word for word in panel.name.split(", ") if word not in ranks)
    if view := panels_of(sides, name, grid, banded=True):
        yield Shown(replace(view, caption=series.caption(panel.rows)), panel.rows)


def over_size_in_report(cells: Cells) -> Iterator[Shown]:
    """Curves and bus bandwidth of what was measured on one number of ranks; steps have another view.

    The first screen shows the others (:func:`omb_py.dashboards.views.first_screen.first_screen_in_report`). What has
    one point has no curve: the table of all measurements has its number.
    """
    rows = cells.timed
    others = [*several_counts(rows), *rows[rows["family"] == series.STEPS]["benchmark"].unique()]
    for panel in replace(cells, rows=rows[~rows["benchmark"].isin(others)]).panels:
        if panel.rows["size_bytes"].nunique() > 1:
            for view, shown in _curves_and_bandwidth(panel, cells.bound_of(panel.rows)):
                yield Shown(replace(view, choice=str(shown["benchmark"].iloc[0])), shown)


def _curves_and_bandwidth(panel: Panel, bound: pd.DataFrame | None) -> Iterator[tuple[View, pd.DataFrame]]:
    rows = panel.rows
    yield curves.curves(panel, bound=bound), rows
    large = rows[(rows["size_bytes"].fillna(0) >= SMALL) & rows["busbw_gbps"].notna()]
    if rows["unit"].iloc[0] == "us" and len(large) and large["size_bytes"].max() >= LARGE:
        every = [(line.label, line.cells[line.cells["size_bytes"].fillna(0) >= SMALL]) for line in panel.lines]
        parts = [series.SeriesLine(label, part) for label, part in every if len(part)]
        series.compute_medians(parts)
        yield curves.curves(Panel(large, f"{panel.name}, bus bandwidth", parts), "busbw"), large


def over_count(cells: Cells, quantity: str = QUANTITIES[0], count: str = "ranks") -> Iterator[Shown]:
    """A quantity (one of :data:`QUANTITIES`) over the number of ranks or GPUs."""
    timed = cells.timed
    times = timed if (timed["unit"] == "us").all() else timed[timed["unit"] == "us"]
    return panels_over_count(times, curves.PanelGrid(count, count, "time" if quantity == "auto" else quantity))


def over_count_in_report(cells: Cells) -> Iterator[Shown]:
    """Times over the number of GPUs where all were measured on those, else of ranks."""
    return over_count(cells, count=series.counted_over(cells.timed))


def panels_over_count(times: pd.DataFrame, grid: curves.PanelGrid) -> Iterator[Shown]:
    """What has a series on several numbers of ranks or GPUs: a panel a message size, a line a series."""
    for name, rows in series.measured(times):
        lines = series.lines(rows, ignore=series.COUNTS)
        several = [(line.label or "measured", line.cells) for line in lines if line.cells[grid.over].nunique() > 1]
        for at in range(0, len(several), series.MOST_LINES):
            drawn = several[at : at + series.MOST_LINES]
            if grid.quantity == "ratio" and len(drawn) < 2:
                continue
            if view := panels_of(drawn, name, grid, banded=True):
                yield Shown(replace(view, kind="scaling"), series.concat(cells for _, cells in drawn))


def step_times(cells: Cells) -> Iterator[Shown]:
    """Step times of workloads; their parts are in no column that is kept in memory."""
    own = cells.rows[cells.rows["family"] == series.STEPS]
    if len(own):
        rows = cells.read_again(own, "metrics", "parameters")
        yield from (Shown(view, part) for view, part in models.layouts(rows))


_BY = ["benchmark", "backend", "library", "library_version", "binding", "device", "dtype", "op", "in_place", "nodes"]
_CELL = ["ranks", "size_bytes"]
_SETTING = "setting"


@dataclass(frozen=True)
class Tuned:
    """What was tuned of one library and collective; each row has the name of its ``setting``."""

    what: str
    """``allreduce, MPICH 5.0.2``."""
    search: pd.DataFrame
    """The search, with the default's launches in it."""
    proof: pd.DataFrame
    """Fresh launches of both sides."""


def winners(cells: Cells) -> Iterator[Shown]:
    """The fastest setting of each size and number of ranks, by the median of the launches of the search."""
    for tuned in _list_tuned(cells):
        if tuned.search[_SETTING].nunique() > 1:
            yield Shown(winners_view(best_of(tuned.search), tuned.what), tuned.search)


def default_and_tuned(cells: Cells) -> Iterator[Shown]:
    """The default and the library as it was tuned over message size, a panel for each number of ranks."""
    for tuned in _list_tuned(cells):
        proved = bool((tuned.proof[_SETTING] != TUNE_DEFAULT).any())
        rows = tuned.proof if proved else tuned.search
        others = rows[rows[_SETTING] != TUNE_DEFAULT]
        fastest = others.merge(best_of(others)[[*_CELL, _SETTING]], on=[*_CELL, _SETTING])
        proof_has = set(zip(*(tuned.proof[name] for name in _CELL), strict=True))
        places = zip(*(tuned.search[name] for name in _CELL), strict=True)
        more = tuned.search[[place not in proof_has for place in places]] if proved else tuned.search[:0]
        default = series.concat([part[part[_SETTING] == TUNE_DEFAULT] for part in (rows, more)])
        if (
            len(fastest)
            and len(default)
            and (view := _compare_settings(tuned.what, default, fastest, proved)) is not None
        ):
            yield Shown(view, series.concat([default, fastest]))


def _compare_settings(what: str, default: pd.DataFrame, fastest: pd.DataFrame, proved: bool) -> View | None:
    settings = sorted(set(fastest[_SETTING]))
    word = "tuned" if proved else "fastest in the search"
    name = f"{word} ({settings[0]})" if len(settings) == 1 else word
    panels = panels_of([("default", default), (name, fastest)], what, curves.PanelGrid())
    if panels is None:
        return None
    view = replace(_break_line(panels, name), kind="tuned")
    note = (
        "The search takes the fastest of several at each size, which makes it look faster than it is: only the "
        "proof of omb-py tune, in fresh launches, says what is faster."
    )
    if proved:
        runs = dict.fromkeys(map(str, fastest["run_id"]))
        note = f"Fresh launches prove {listed(settings)} where it has a line; elsewhere the default stays."
        view = view.with_commands([f"omb-py compare {run}  # the proof, judged again" for run in runs])
    return view.noted([note])


def _break_line(view: View, name: str) -> View:
    """The view whose line `name` ends where a size of the default has no point of it, instead of crossing over."""
    spec = view.spec or {}
    lines = [trace for trace in spec.get("data", ()) if trace["mode"] == "lines+markers"]
    usual = {trace.get("xaxis"): trace for trace in lines if trace["name"] != name}

    def parted(trace: Facts) -> Facts:
        default = usual.get(trace.get("xaxis"))
        if trace not in lines or trace["name"] != name or default is None:
            return trace
        at = dict(zip(trace["x"], trace["y"], strict=True))
        texts = dict(zip((*default["x"], *trace["x"]), (*default["text"], *trace["text"]), strict=True))
        sizes = sorted(texts)
        return {**trace, "x": sizes, "y": [at.get(x) for x in sizes], "text": [texts[x] for x in sizes]}

    return replace(view, spec={**spec, "data": [parted(trace) for trace in spec.get("data", ())]})


def _list_tuned(cells: Cells) -> Iterator[Tuned]:
    rows = cells.timed
    proofs = _settings(rows, TUNE_PROOF)
    if not len(cells.trials) and proofs.isna().all():
        return
    of_proofs = rows["run_id"].isin(set(rows["run_id"][proofs.notna()]))
    proof = rows.assign(**{_SETTING: proofs.fillna(TUNE_DEFAULT)})[of_proofs]
    of_search = rows[rows["run_id"].isin(set(cells.trials["run_id"]))].assign(**{_SETTING: TUNE_DEFAULT})
    trials = cells.trials.assign(**{_SETTING: _settings(cells.trials, TUNE_SETTING)})
    parts = {"proof": proof, "search": series.concat([of_search, trials])}
    every = series.concat(part.assign(part=name) for name, part in parts.items())
    every = every[every["median_us"].notna()]
    for _, both in every.groupby([name for name in _BY if name in every], dropna=False, sort=True, observed=True):
        first = both.iloc[0]
        what = f"{first['benchmark']}, {first['library']} {first['library_version']}"
        yield Tuned(what, *(both[both["part"] == name].drop(columns="part") for name in ("search", "proof")))


def _settings(rows: pd.DataFrame, tag: str) -> pd.Series[Any]:
    wanted = series.value_in_text(tag)
    known = {text: match[1] for text in rows["tags"].unique() if (match := wanted.search(str(text)))}
    settings: pd.Series[Any] = rows["tags"].astype(object).map(known).astype(object)
    return settings


def best_of(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each number of ranks and size: the setting with the least median over its launches."""
    grouped = rows.groupby([*_CELL, _SETTING], observed=True)["median_us"]
    medians = pd.DataFrame({"time_us": grouped.median(), "launches": grouped.count()}).reset_index()
    default = medians[medians[_SETTING] == TUNE_DEFAULT].set_index(_CELL)["time_us"].rename("default_us")
    best = medians.loc[medians.groupby(_CELL, observed=True)["time_us"].idxmin()].join(default, on=_CELL)
    ordered: pd.DataFrame = best.assign(ratio=best["time_us"] / best["default_us"]).sort_values(_CELL)
    return ordered
