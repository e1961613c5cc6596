"""A store of many cells has few figures, and a table that leads to all others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.dashboards.base.reading import StoreSelection, parse
from omb_py.dashboards.base.view import View
from omb_py.dashboards.report.build import MOST_FIGURES, StoreReport, report
from omb_py.dashboards.report.html_page import page, split_captions
from tests.support import gpu_store, planted_store

BENCHMARKS = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter", "scatter")
LAUNCHES = 6
"""Of three sides on two numbers of GPUs."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wide") / "s"
    gpu_store.write(place, (2, 4), BENCHMARKS, launches=1)
    return place


@pytest.fixture(scope="module")
def made(store: Path) -> StoreReport:
    return report(store, StoreSelection())


@pytest.mark.slow
def test_figures_are_few_and_none_has_one_point(made: StoreReport) -> None:
    drawn = [view for view in made.views if view.spec is not None]
    assert len(drawn) <= MOST_FIGURES == 30
    assert all(max(len(trace["x"]) for trace in view.spec["data"]) > 1 for view in drawn)
    assert len({view.key for view in made.views}) == len(made.views)


@pytest.mark.slow
def test_a_benchmark_has_one_figure_for_all_numbers_of_ranks(made: StoreReport) -> None:
    curves = [view for view in made.tabs["Compare"].views if view.kind == "multiples"]
    assert sorted(view.choice for view in curves) == sorted(BENCHMARKS)
    for view in curves:
        heads = {note["text"] for note in view.spec["layout"]["annotations"]}
        assert heads == {"2 GPUs", "4 GPUs"}
        assert "one launch of a side has no known spread, so none is called the fastest" in view.title


@pytest.mark.slow
def test_a_line_of_the_table_draws_its_figures(made: StoreReport, tmp_path: Path) -> None:
    (table,) = [view for view in made.tabs["Cell"].views if view.kind == "overview"]
    assert len(table.rows) == LAUNCHES * len(BENCHMARKS)
    row = dict(zip(table.columns, table.rows[-1], strict=True))
    words = shlex.split(row["what draws it"])
    assert words[:2] == ["omb-py", "report"] and f"benchmark={row['benchmark']}" in words
    assert main([*words[1:], "-o", str(tmp_path / "r.html")]) == 0
    (curve, *_) = report(Path(words[2]), parse(words[3:])).tabs["Compare"].views
    assert curve.kind == "curves" and curve.rows[0][1] == pytest.approx(row["µs at the smallest"])
    assert curve.rows[-1][1] == pytest.approx(row["µs at the largest"])


@pytest.mark.slow
def test_the_page_is_small_and_its_tabs_lead_to_parts_of_it(made: StoreReport) -> None:
    text = page(made)
    assert len(text.encode()) < 2_500_000
    links = re.findall(r'<a role="tab" id="tab-(\w+)" href="#(\w+)" aria-controls="(\w+)">', text)
    assert [name for name, *_ in links] == ["compare", "health", "history", "cell", "workloads"]
    assert all(len({*link}) == 1 and f'<main id="{link[0]}" class="tab" role="tabpanel"' in text for link in links)
    assert re.findall(r'data-choose="(\w+)"', text) == [
        view.choice for view in made.tabs["Compare"].views if view.kind == "multiples"
    ]
    assert "No step of a workload was measured: omb-py step." in text


def test_what_all_captions_share_is_said_once() -> None:
    spec = {"data": [], "layout": {}}
    views = [View("curves", name, f"native · {name} · sync barrier", spec, (), ()) for name in "ab"]
    table = View("overview", "c", "native · c", None, (), ())
    common, kept = split_captions([*views, table])
    assert common == ["All figures here: native · sync barrier."]
    assert [view.caption for view in kept] == ["a", "b", "native · c"]
    assert split_captions(views[:1]) == ([], views[:1])


@pytest.mark.slow
def test_nights_of_one_library_open_on_their_history(tmp_path: Path) -> None:
    """Two versions are compared first; so is what nothing happened to."""
    stores = {name: tmp_path / name for name in ("step", "sound", "versions")}
    planted_store.write_nights(stores["step"])
    planted_store.write_nights(stores["sound"], slower=1.0)
    gpu_store.write(stores["versions"], (2,), BENCHMARKS[:1])
    made = {name: report(store, StoreSelection()) for name, store in stores.items()}
    assert {name: each.opens for name, each in made.items()} == {"step": "History", "sound": None, "versions": None}
    (line,) = made["step"].changes
    assert line.text.endswith(
        "from 2026-04-01 08:00 UTC on, without a new version; most for allreduce 64 KiB: 1.2× slower"
    )
    title = made["step"].tabs["History"].views[0].title
    assert title.startswith("allreduce 64 KiB") and "1.2× slower from 2026-04-01" in title, "where it moved"
    assert ['<main id="history" class="tab"' in part for part in page(made["step"]).split(" data-opened")] == [
        True,
        False,
    ]
