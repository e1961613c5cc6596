"""Fitted curves, and step time by layout."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.figures import models
from omb_py.dashboards.figures.models import model
from omb_py.dashboards.report.build import report
from tests.dashboards.stores import write


def test_a_model_and_what_it_leaves() -> None:
    measured = pd.DataFrame({"size_bytes": [8, 16, 32], "median_us": [1.8, 2.6, 8.4]})
    parts = pd.DataFrame(
        {"low_bytes": [8, 32], "high_bytes": [16, 64], "alpha_us": [1.0, 4.0], "beta_us_per_byte": [0.1, 0.1]}
    )
    view = model(measured, parts, "latency")
    assert view.title == "latency: 2 segments, at most 16.7 % off the fit"
    assert view.spec["data"][1]["y"] == pytest.approx([1.8, 2.6])
    assert [row[2] for row in view.rows] == pytest.approx([0, 0, 100 * (8.4 / 7.2 - 1)])
    assert "0.01 GB/s" in view.caption


def test_medians_over_launches_of_each_layout(step_cells: pd.DataFrame) -> None:
    (two, rows), (four, _) = models.layouts(step_cells)
    assert len(rows) == 4 and set(rows["ranks"]) == {2}
    assert two.title == (
        "2 ranks, mpi, MPICH, native: steps of 2 workloads; communication shows most in zero:model=mlp, "
        "50 % of the step"
    )
    assert two.rows == (
        ("ddp:model=mlp", 520.0, 400.0, 120.0, pytest.approx(100 * 120 / 520), 310.0, 240.0, 2),
        ("zero:model=mlp", 800.0, 400.0, 400.0, 50.0, 500.0, 450.0, 2),
    )
    exposed, *points = two.spec["data"]
    legend = two.spec["layout"]["legend"]
    assert legend["y"] > 1 and legend["yanchor"] == "bottom", "above the plot, which it would cover on a phone"
    assert exposed["x"] == [400.0, 520.0, None, 400.0, 800.0, None]
    assert {trace["name"]: trace["x"] for trace in points} == {
        "step": [520.0, 800.0],
        "computing": [400.0, 400.0],
        "calls one by one": [310.0, 500.0],
        "calls in flight": [240.0, 450.0],
    }
    assert four.rows[0][:2] == ("ddp:model=mlp", 1000.0) and four.title.startswith("4 ranks")


def test_other_cells_are_no_steps(frame: pd.DataFrame, step_cells: pd.DataFrame) -> None:
    assert list(models.layouts(frame.assign(metrics=None))) == []
    without = step_cells.assign(metrics=[{} for _ in range(len(step_cells))])
    assert list(models.layouts(without)) == []


def test_long_names_are_cut_and_stay_apart(step_cells: pd.DataFrame) -> None:
    texts = [f"replay:trace={'a' * 60}{n}{'b' * 60}" for n in range(2)]
    two = [step_cells.iloc[:1].assign(parameters=[{"workload": text}]) for text in texts]
    ((view, _),) = models.layouts(pd.concat(two, ignore_index=True))
    one, other = view.spec["data"][1]["y"]
    assert len(one) == 60 and other == f"{one} (2)" and len(view.title) < 160 and view.rows[0][0] == texts[0]


@pytest.mark.slow
def test_in_report_and_explorer(tmp_path: Path, frame: pd.DataFrame, step_cells: pd.DataFrame) -> None:
    store = write(tmp_path / "s", pd.concat([frame, step_cells]))
    made = report(store, parse([]))
    mine = [view for view in made.tabs["Workloads"].views]
    assert len(mine) == 2 and all(view.commands for view in mine)
    assert not any("step" in view.title for view in made.views if view.kind == "curves"), "once is enough"
    shown, note = views(Data(store), State("steps", filters={"ranks": ["4"]}))
    assert (len(shown), note) == (1, "") and shown[0].rows == mine[1].rows and shown[0].commands
