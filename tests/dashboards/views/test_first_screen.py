"""The first screen names what was planted, by its name, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.base import series
from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.view import MOST_ITEMS
from omb_py.dashboards.changes import over_time, ratios, sides
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, parse, query, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.views.first_screen import near_equal
from tests.dashboards.stores import write
from tests.support import gpu_store, planted_cluster, planted_store

SEEDS = (101, pytest.param(102, marks=pytest.mark.slow))
"""More of them, and other ones: tests.lab.error_rates.first_screen."""


@pytest.fixture(scope="module", params=SEEDS)
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("planted")
    faults = planted_store.write(folder, request.param)
    return folder, faults, report(folder, StoreSelection())


@pytest.mark.slow
def test_each_fault_is_named_once_and_nothing_else_is(planted) -> None:
    _, faults, made = planted
    named, others = planted_store.judged([item.text for item in made.changes], faults)
    assert named == dict.fromkeys(("regression", "slow node", "drift", "step"), True)
    assert others == []
    title = made.first[0].title
    assert title.endswith(": 6 of 120 cells slower, 0 faster; other findings: 1 slower, 1 odd, 1 changed")
    slower, drift, odd, changed = made.changes
    assert [item.kind for item in made.changes] == ["slower", "slower", "odd", "changed"]
    assert faults.drift in drift.text and faults.step in changed.text and faults.node in odd.text
    assert slower.text.split(" is ")[0] == faults.regression and "6 of 30 cells" in slower.text


@pytest.mark.slow
def test_only_the_regression_has_a_frame_on_the_map(planted) -> None:
    _, faults, made = planted
    (view,) = [view for view in made.views if view.kind == "map"]
    first, *others = view.spec["data"]
    assert first["name"] == faults.regression and len(others) == len(planted_store.BENCHMARKS) - 1
    (frame,) = view.spec["layout"]["shapes"]
    places = [planted_store.SIZES.index(size) for size in faults.sizes]
    counts = sorted(set(planted_store.RANKS))
    rows = [counts.index(ranks) for ranks in faults.ranks]
    ends = [tuple(map(float, point.split(","))) for point in re.findall(r"[-\d.]+,[-\d.]+", frame["path"])]
    assert {frame["xref"], frame["yref"]} == {"x", "y"}, "the first panel"
    assert (min(x for x, _ in ends), max(x for x, _ in ends)) == (min(places) - 0.5, max(places) + 0.5)
    assert (min(y for _, y in ends), max(y for _, y in ends)) == (min(rows) - 0.5, max(rows) + 0.5)
    assert view.title.endswith("6 of 120 cells slower, 0 faster")


@pytest.mark.slow
def test_each_line_leads_to_its_evidence_in_report_and_explorer(planted) -> None:
    store, _, made = planted
    html, data = page(made), Data(store)
    shown, _ = views(data, State())
    (listed,) = [view for view in shown if view.kind == "changes"]
    assert [item.text for item in listed.items] == [item.text for item in made.changes]
    for item in made.changes:
        number = [view.key for view in made.views].index(item.evidence.key)
        assert f'<a href="#view-{number}">' in html and f'<figure id="view-{number}"' in html
        assert made.views[number].commands
        state = parse(item.link)
        assert {*query(state)[1:].split("&")} == {*item.link[1:].split("&")} - {"view=first"}
        rows = data.select(state.filters)
        assert len(rows) and set(rows["benchmark"]) == set(state.filters["benchmark"])


@pytest.mark.slow
def test_a_sound_store_names_nothing(tmp_path: Path) -> None:
    planted_store.write(tmp_path, SEEDS[0], sound=True)
    made = report(tmp_path, StoreSelection())
    assert made.changes == [] and made.first[0].title.endswith(": 0 of 120 cells slower, 0 faster")
    assert made.first[1].title == "Nothing changed over time beyond the noise, and nothing is odd"


@pytest.mark.slow
def test_what_a_stored_comparison_found_faster_is_listed(tmp_path: Path) -> None:
    line = "compare allreduce --backend mock -n 2 -m 8:8 -i 4 -x 0 --seed 1 --launches 8 --quiet"
    sides = ["--option=BASE:mock=alpha=1.2us,launch=0.01", "--option=NEW:mock=alpha=1us,launch=0.01"]
    assert main([*line.split(), *sides, "--store", str(tmp_path)]) == 0
    (item,) = report(tmp_path, StoreSelection()).changes
    assert item.kind == "faster" and "FASTER in 1 of 1 cell" in item.text


@pytest.mark.slow
def test_what_is_simulated_is_called_so(tmp_path: Path) -> None:
    words = ["allreduce", "--backend", "mock", "-n", "2", "-m", "8:64", "-i", "4", "--quiet", "--store", str(tmp_path)]
    assert main(words) == 0
    first, *_ = report(tmp_path, StoreSelection()).first
    assert first.notes == ("SIMULATED: nothing of mock was measured",)
    assert (first.title, first.caption) == ("1 benchmark measured with mock 1.0", "2 ranks · 1 node")


@pytest.mark.slow
def test_staged_and_shared_are_said(tmp_path: Path, frame: pd.DataFrame) -> None:
    text = {"staging": "staged", "ranks_per_device": "2"}
    write(tmp_path / "s", frame.assign(parameters=[text] * len(frame)))
    notes = report(tmp_path / "s", StoreSelection()).first[0].notes
    assert [note.partition(":")[0] for note in notes] == ["STAGED", "SHARED"]


@pytest.mark.slow
def test_what_new_lacks_is_said(tmp_path: Path, frame: pd.DataFrame) -> None:
    """MPICH stands against Open MPI, which was not measured at 64 KiB."""
    write(tmp_path / "s", frame[(frame["library"] == "MPICH") | (frame["size_bytes"] < 65536)])
    first, *_ = report(tmp_path / "s", StoreSelection()).first
    assert first.caption.split(" · ")[-1] == "1 cell of MPICH 5.0.2 not measured with Open MPI 5.0.2: allreduce"


@pytest.mark.slow
def test_one_slowdown_of_several_benchmarks_is_one_line(tmp_path: Path) -> None:
    gpu_store.write(tmp_path, benchmarks=("allreduce", "allgather", "bcast"))
    made = report(tmp_path, StoreSelection())
    (slower,) = (item for item in made.changes if item.kind == "slower")
    assert made.first[0].title == "NCCL 2.27.3 against 2.21.5: 18 of 234 cells slower, 216 faster"
    assert made.first[0].caption.startswith("2 to 64 GPUs · 1 to 16 nodes · NVIDIA A100-SXM4-40GB · both versions")
    assert made.first[1].caption.startswith("How sure? 3 launches a side in each cell. ")
    assert made.first[1].caption.endswith("would be at most 1 %")
    head, _, rest = slower.text.partition(": ")
    assert (
        head == "3 benchmarks 1.29 to 1.3× slower with NCCL 2.27.3 than with 2.21.5 at 64 KiB to 1 MiB, 32 to 64 GPUs"
    )
    names, _, cells = rest.partition(" (")
    assert sorted(names.split(", ")) == ["allgather", "allreduce", "bcast"] and cells == "18 of 234 cells)"
    assert slower.evidence is not None and slower.evidence.kind == "map", "one picture shows them all"
    assert all(f"benchmark={name}" in slower.link for name in names.split(", ")), "the link leads to all of them"


def test_slowdowns_of_different_size_stay_apart() -> None:
    cells = pd.DataFrame({"ratio": [1.3], "ranks": [32]})
    found = [
        ratios.ChangedRegion(name, verdict, cells * factor, 9, where)
        for name, verdict, factor, where in [
            ("a", "slower", 1.0, "at 8 B"),
            ("b", "slower", 1.02, "at 8 B"),
            ("c", "slower", 2.0, "at 8 B"),
            ("d", "slower", 1.0, "at 16 B"),
            ("e", "faster", 0.5, "at 8 B"),
            ("f", "faster", 0.5, "at 8 B"),
        ]
    ]
    groups = [[region.benchmark for region in group] for group in near_equal(found)]
    assert groups == [["a", "b"], ["c"], ["d"], ["e"], ["f"]]


@pytest.mark.slow
def test_one_launch_a_side_is_hatched(tmp_path: Path, frame: pd.DataFrame) -> None:
    write(tmp_path / "s", frame[frame["launch_index"].isin([0, 3])])
    (view,) = [view for view in report(tmp_path / "s", StoreSelection()).views if view.kind == "map"]
    assert {text for trace in view.spec["data"] for row in trace["text"] for text in row} == {"╱"}
    assert view.spec["layout"]["shapes"] == [] and any("--launches 5" in note for note in view.notes)


def test_a_step_without_a_new_version_is_dated(cell) -> None:
    noise = [0.002, -0.001, 0.003, -0.002, 0.001]
    rows = [cell((2.0 if n < 12 else 2.4) * (1 + noise[n % 5]), n) for n in range(24)]
    timed = ratios.with_logs(series.prepared(pd.DataFrame(rows)))
    each = over_time.launches(timed)
    (step,) = over_time.steps(each, over_time.drifts(each))
    assert step.at == 12 and step.ratio == pytest.approx(1.2, rel=0.01)
    assert sides.pairs(sides.sides(timed)) == []


CLUSTER_SEEDS = (101, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (102, 103)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", CLUSTER_SEEDS)
def test_five_faults_among_several_libraries_are_all_named(seed: int, tmp_path: Path) -> None:
    """One in a version that is not of the newest pair, one that no other version can be held against."""
    planted = planted_cluster.write(tmp_path, seed)
    items = [item for item in report(tmp_path, StoreSelection()).changes][:MOST_ITEMS]
    named, others = planted_store.judged([item.text for item in items], planted)
    assert named == dict.fromkeys(planted.expected(), True)
    assert all("faster with NCCL 2.27.3" in text for text in others), others


@pytest.mark.slow
def test_a_sound_cluster_names_no_fault(tmp_path: Path) -> None:
    planted_cluster.write(tmp_path, 101, sound=True)
    assert {item.kind for item in report(tmp_path, StoreSelection()).changes} <= {"faster", "changed"}
