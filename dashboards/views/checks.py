"""Stored links and guidelines, judged again, and the paths between GPUs of a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import Shown, View, plural, records
from omb_py.dashboards.figures.maps import guidelines as guideline_view
from omb_py.dashboards.figures.maps import pairs
from omb_py.dashboards.views.cells import Cells, split_links
from omb_py.dashboards.views.overview import gpu_paths, unknown_paths
from omb_py.engine.rank.launch_facts import GpuInventory
from omb_py.results.checks.guideline_report import headline, measured_text, report_of
from omb_py.results.checks.guideline_report import records as cells_of
from omb_py.results.checks.guidelines import GuidelineRules
from omb_py.results.checks.pair_sweeps import COLUMNS, PairSweep, document_of, matrix, subjects, sweep_of
from omb_py.results.store.row import Row
from omb_py.results.units import listed

MOST_ROWS = 60_000
"""Rows of a sweep that are judged again; of a larger one the file says what was found that ``--output`` wrote."""
MOST_ENVIRONMENTS = 8
"""Environments whose newest launch is asked."""


def sweep_view(sweep: PairSweep) -> View:
    """The matrix of a sweep, with the nodes and links that are slow as its title."""
    document = document_of(sweep)
    states = {subject["name"]: subject["state"] for subject in subjects(sweep)}
    view = pairs(matrix(sweep), states)
    caption = f"{view.title}; {view.caption} · run {sweep.run_id}"
    return replace(view, title=document.headline, caption=caption)


def sweeps(cells: Cells) -> Iterator[Shown]:
    """A view for each sweep of which a row is selected, the newest first; odd where a node or link is slow."""
    newest = cells.links.sort_values("started_at", ascending=False, kind="stable")
    for run, part in newest.groupby("run_id", sort=False, observed=True):
        if len(part) > MOST_ROWS:
            title = f"run {run}: {plural(len(part), 'row')} of a sweep are too many to be judged again"
            hint = "omb-py links --output FILE.html writes the matrix of a large sweep"
            yield Shown(View("pairs", title, hint, None, (), ()), part)
            continue
        columns = list(dict.fromkeys((*COLUMNS, *series.NEEDED)))
        stored = cells.load(columns, run_id=str(run))
        rows, _ = split_links(stored.assign(parameters=stored["parameters"].map(series.map_text)))
        # the judge takes maps as dicts
        records = stored.loc[rows.index, list(COLUMNS)].to_dict("records")
        try:
            sweep = sweep_of([cast(Row, record) for record in records])
        except ValueError:
            continue
        view = sweep_view(sweep).noted(document_of(sweep).notes)
        yield Shown(view, part, _slow_parts(sweep, view.title))


def _slow_parts(sweep: PairSweep, title: str) -> str:
    """The line of a sweep among what is odd; empty where nothing is slow."""
    if sweep.confirmed:
        return f"Slow nodes or links: {title}."
    left = [sweep.name(suspect) for suspect in sweep.suspects if sweep.state(suspect) == "suspect"]
    return f"Suspect, not yet repeated: {listed(left)}; the same omb-py links again settles it." if left else ""


def gpu_paths_of(cells: Cells) -> Iterator[Shown]:
    """A table for each kind of node on which GPUs were used; nodes with the same GPUs and paths share it."""
    used = cells.rows[cells.rows["device"].astype(object) == "cuda"]
    newest = used.sort_values("started_at").drop_duplicates("environment_key", keep="last").tail(MOST_ENVIRONMENTS)
    kinds: dict[str, tuple[list[str], GpuInventory]] = {}
    unread: dict[str, list[str]] = {}
    for row in records(newest):
        for node in cells.provenance(row.launch_id).get("node_facts") or ():
            host, inventory = str(node.get("host") or "a node"), node.get("gpus") or {}
            if inventory.get("gpus"):
                shown = ("index", "name", "numa", "mig")  # a PCIe link is slower while its GPU idles
                gpus = [{name: gpu.get(name) for name in shown} for gpu in inventory["gpus"]]
                kind = json.dumps([inventory.get("driver"), gpus, inventory.get("pairs")], sort_keys=True)
                hosts, _ = kinds.setdefault(kind, ([], inventory))
                hosts.append(host)
            elif inventory.get("unknown"):
                unread.setdefault(str(inventory["unknown"]), []).append(host)
    for hosts, inventory in kinds.values():
        yield Shown(gpu_paths(list(dict.fromkeys(hosts)), inventory), used)
    for why, hosts in unread.items():
        yield Shown(unknown_paths(list(dict.fromkeys(hosts)), why), used)


_BY = ["backend", "library", "library_version", "binding", "device", "ranks", "nodes"]


def guidelines(cells: Cells) -> Iterator[Shown]:
    """Verdicts on the stored guidelines, by the default rules; odd where one is violated."""
    for _, part in cells.guideline_rows().groupby(_BY, dropna=False, sort=True, observed=True):
        rows = [cast(Row, row._asdict()) for row in records(part)]
        report = report_of(rows, GuidelineRules())
        if report.judged:
            matrix = guideline_view(pd.DataFrame(cells_of(report)), report.rules.delta)
            what = measured_text(report)
            view = replace(matrix, notes=(f"{what}: {headline(report)}", *matrix.notes))
            violated = report.counts["VIOLATED"]
            yield Shown(view, part, f"Guidelines: {view.title} ({what})." if violated else "")
