"""The first screen names what was planted, by its name, and nothing else."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.base import series, theme
from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.view import MOST_ITEMS
from omb_py.dashboards.changes import over_time, ratios, sides
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, parse, query, views
from omb_py.dashboards.figures import maps
from omb_py.dashboards.figures.curves import PanelGrid, Points
from omb_py.dashboards.figures.fastest import JudgedPair, fastest_at
from omb_py.dashboards.report import image_export
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.views.first_screen import near_equal
from omb_py.results.accept.outcomes import FOLDER
from tests.dashboards.stores import write
from tests.support import gpu_store, planted_cluster, planted_store

SEED = 101
"""More of them, and other ones: tests.lab.error_rates.first_screen."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("planted")
    faults = planted_store.write(folder, SEED)
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
    assert view.title.startswith("Time of ") and not view.caption, "the headline has the numbers"


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
    planted_store.write(tmp_path, SEED, sound=True)
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
    assert made.first[1].caption.endswith("is called slower or faster is at most 1 %")
    head, _, rest = slower.text.partition(": ")
    assert (
        head == "3 benchmarks 1.3 to 1.31× slower with NCCL 2.27.3 than with 2.21.5 at 64 KiB to 1 MiB, 32 to 64 GPUs"
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
def test_one_launch_a_side_decides_nothing_and_says_what_to_do(tmp_path: Path, frame: pd.DataFrame) -> None:
    """No count of slower cells in the headline; the largest difference has its place."""
    write(tmp_path / "s", frame[frame["launch_index"].isin([0, 3])])
    made = report(tmp_path / "s", StoreSelection())
    status, changes = made.first
    (drawn,) = [view for view in made.views if view.kind == "map"]
    said = "one launch of a side decides nothing; largest difference: allreduce"
    title = status.title
    assert said in title and " slower, " not in title and "× slower" in title and "64 KiB on 4 ranks" in title
    assert "Hatched: one launch of a side, so no known noise: --launches 5 gives it." in drawn.notes
    assert {text for trace in drawn.spec["data"] for row in trace["text"] for text in row} == {"╱"}
    assert drawn.spec["layout"]["shapes"] == []
    assert changes.title == "What is odd; one launch a side cannot tell whether anything changed"


def test_cells_that_nothing_can_decide_are_counted_apart() -> None:
    cells = {"benchmark": "bcast", "ranks": [2, 4], "size_bytes": 8, "ratio": [1.2, 0.5], "verdict": ["slower", ""]}
    table = pd.DataFrame({**cells, "launches_base": [5, 1], "launches_new": 5})
    text = maps.describe_counts([table], "ranks")
    assert text.startswith("1 of 1 cell slower, 0 faster; one launch of a side decides nothing of 1 more cell")
    assert text.endswith("largest difference: bcast 8 B on 4 ranks, 2× faster")
    assert maps.describe_counts([table.assign(ratio=1.0)], "ranks").endswith("decides nothing of 1 more cell")
    assert maps.describe_counts([table.assign(ratio=2345.0)], "ranks").endswith("2 345× slower")


@pytest.fixture
def skewed(tmp_path: Path, cell) -> Path:
    """Two libraries on 2 and 4 ranks; one in three launches of the slower one takes half as long again."""
    factors = {"MPICH": (1.0, 1.01, 1.02, 1.0, 1.01, 1.02), "Open MPI": (2.0, 2.01, 3.0, 2.02, 2.0, 3.0)}
    rows = [
        cell(size / 8 * factor, 6 * number + launch, library=library, size_bytes=size, ranks=ranks)
        | {"launch_id": name}
        for number, (library, several) in enumerate(factors.items())
        for launch, factor in enumerate(several)
        for ranks in (2, 4)
        for size in (8, 64)
        for name in [f"r-{number}-{launch}-{ranks}"]
    ]
    frame = pd.DataFrame([row | {"comparability_key": f"k{row['size_bytes']}-{row['ranks']}"} for row in rows])
    return write(tmp_path / "skewed", frame)


@pytest.mark.slow
def test_one_cell_has_one_ratio_on_a_page(skewed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches are skewed, so that their mean and their median differ: map, sentence, panel and CSV say the median."""
    made = report(skewed, StoreSelection())
    (ratio_map,) = [view for view in made.views if view.kind == "map"]
    (panel,) = [view for view in made.views if view.kind == "size by count"]
    place = [*ratio_map.columns].index("ratio")
    judged = {(row[1], row[2]): row[place] for row in ratio_map.rows}
    assert judged[4, "64 B"] == pytest.approx(2.015 / 1.01, rel=1e-4), "2.26 by geometric means"
    texts = [note["text"] for note in panel.spec["layout"]["annotations"]]
    assert texts.count("2.0") == 4 and "MPICH 5.0.2 at every size (2.0×)" in panel.title
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    monkeypatch.setattr(image_export, "save_figure", lambda spec, path: None)
    words = ["plot", "allreduce", "--quantity", "ratio", "--store", str(skewed), "-o", str(tmp_path / "x.png")]
    assert main([*words, "--data", str(tmp_path / "x.csv")]) == 0
    numbers = pd.read_csv(tmp_path / "x.csv")
    drawn = numbers[(numbers["side"] == "Open MPI 5.0.2") & (numbers["ranks"] == 4) & (numbers["size_bytes"] == 64)]
    assert float(drawn["median"].iloc[0]) == pytest.approx(judged[4, "64 B"], rel=1e-4)
    (lines,) = [view for view in made.views if view.kind == "multiples"]
    assert f"up to {theme.amount(judged[4, '64 B'])}× apart" in lines.title


def test_who_is_fastest_is_what_the_map_decided() -> None:
    """One rule: a cell that the map calls level is level in the panel, and one that it calls slower has a lead."""
    table = {8: (1.0, [1.0, 1.001, 0.999]), 64: (1.2, [1.2, 1.201, 1.199])}
    launches = {
        side: pd.DataFrame(
            {
                "middle": [1.0 if side == "a" else t[0] for t in table.values()],
                "launches": 3.0,
                "values": [[1.0, 1.001, 0.999] if side == "a" else t[1] for t in table.values()],
            },
            index=[8, 64],
        )
        for side in ("a", "b")
    }
    known = Points(PanelGrid(), {(side, 2): rows for side, rows in launches.items()})
    assert fastest_at(known, 2) == {8: None, 64: "a"}
    assert fastest_at(known, 2, JudgedPair("a", "b", {(2, 8): "", (2, 64): ""})) == {8: None, 64: None}
    assert fastest_at(known, 2, JudgedPair("a", "b", {(2, 8): "", (2, 64): "slower"})) == {8: None, 64: "a"}


@pytest.mark.slow
def test_a_busy_machine_is_said_first(tmp_path: Path, frame: pd.DataFrame) -> None:
    busy = "busy machine: other programs use 1.5 of 2 cores: end them, or expect wide spreads"
    write(tmp_path / "s", frame, busy)
    (note,) = report(tmp_path / "s", StoreSelection()).first[0].notes
    assert note == f"BUSY: before 1 of 6 launches, the newest: {busy.removeprefix('busy machine: ')}"


def test_a_step_without_a_new_version_is_dated(cell) -> None:
    noise = [0.002, -0.001, 0.003, -0.002, 0.001]
    rows = [cell((2.0 if n < 12 else 2.4) * (1 + noise[n % 5]), n) for n in range(24)]
    timed = ratios.with_logs(series.prepared(pd.DataFrame(rows)))
    each = over_time.launches(timed)
    (step,) = over_time.steps(each, over_time.drifts(each))
    assert step.at == 12 and step.ratio == pytest.approx(1.2, rel=0.01)
    assert sides.pairs(sides.sides(timed)) == []


@pytest.mark.slow
def test_launches_of_a_drift_do_not_disagree_as_well(cell, tmp_path: Path) -> None:
    rows = []
    for ranks, launch, name in itertools.product((2, 4, 8, 16), range(8), ("allreduce", "bcast")):
        slower = 1 + (0.09 * launch if name == "allreduce" else 0.4 * (launch in (3, 4)))
        named = {"benchmark": name, "ranks": ranks, "comparability_key": f"{name} {ranks}"}
        number = 10 * launch + ranks // 4
        rows.append(cell(2.0 * ranks * slower, number, launch_id=f"r-{launch}-{ranks}", **named))
    write(tmp_path, pd.DataFrame(rows))
    texts = [item.text for item in report(tmp_path, StoreSelection()).changes]
    assert [text.split(" drifts")[0] for text in texts if "drifts" in text] == ["allreduce over MPICH"]
    (disagree,) = [text for text in texts if "Launches disagree" in text]
    assert " of bcast " in disagree, "allreduce drifts, which a line says already"


def test_subjects_that_move_have_names_of_their_own(cell) -> None:
    """A drift of two bindings was one line twice."""
    rows = [cell(2.0, n, **more) for n, more in enumerate([{}, {"binding": "mpi4py"}, {"library_version": "5.0.3"}])]
    each = over_time.launches(ratios.with_logs(series.prepared(pd.DataFrame(rows))))
    assert [each.name(subject) for subject in each.subjects] == [
        "allreduce over MPICH · native",
        "allreduce over MPICH · mpi4py",
    ]


@pytest.mark.slow
def test_five_faults_among_several_libraries_are_all_named(tmp_path: Path) -> None:
    """One in a version that is not of the newest pair, one that no other version can be held against."""
    planted = planted_cluster.write(tmp_path, SEED)
    items = [item for item in report(tmp_path, StoreSelection()).changes][:MOST_ITEMS]
    named, others = planted_store.judged([item.text for item in items], planted)
    assert named == dict.fromkeys(planted.expected(), True)
    assert all("faster with NCCL 2.27.3" in text for text in others), others


@pytest.mark.slow
def test_a_sound_cluster_names_no_fault(tmp_path: Path) -> None:
    planted_cluster.write(tmp_path, SEED, sound=True)
    assert {item.kind for item in report(tmp_path, StoreSelection()).changes} <= {"faster", "changed"}


def test_the_answer_is_the_newest_acceptance_by_each_suite_the_worst_first(cell, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    ends = [
        ("good", "small", "PASS", "PASS: 4 pass", []),
        ("bad", "contract", "FAIL", "FAIL: 1 fail", ["FAIL: latency"]),
        ("dead", "contract", "ERROR", "ERROR: 2 error", ["ERROR: allreduce: rank 1 died"]),
        ("late", "small", "PASS", "PASS: 5 pass", []),
    ]
    for day, (run, suite, verdict, headline, failed) in enumerate(ends):
        end = {"suite": suite, "verdict": verdict, "headline": headline, "failed": failed, "done": f"2026-11-2{day}"}
        (tmp_path / FOLDER / f"{run}.jsonl").write_text(json.dumps(end))
    measured = [run for run, *_ in ends if run != "dead"]
    rows = [cell(2.0, n, run_id=run, launch_id=f"{run}-0") for n, run in enumerate(measured)]
    write(tmp_path, pd.DataFrame(rows).assign(date="2026-11-20"))
    whole = report(tmp_path, StoreSelection())
    assert whole.first[0].title.startswith("contract: ERROR: 2 error · small: PASS")
    assert whole.changes[0].text == "ERROR: allreduce: rank 1 died" and whole.changes[1].kind == "odd"
    part = report(tmp_path, StoreSelection({"run_id": ["bad", "good"]}))
    assert part.first[0].title.startswith("contract: FAIL: 1 fail · small: PASS")


def test_each_set_of_nodes_has_its_own_acceptance(cell, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    ends = [
        ("a", ["n1", "n2"], "FAIL", ["FAIL: latency"]),
        ("b", ["n3", "n4"], "FAIL", ["FAIL: latency"]),
        ("c", ["n2", "n1"], "PASS", []),
        *((f"e{k}", [f"n{k}"], "PASS", []) for k in range(5, 10)),
    ]
    for day, (run, hosts, verdict, failed) in enumerate(ends):
        end = {"suite": "small", "verdict": verdict, "headline": verdict.lower(), "failed": failed, "hosts": hosts}
        (tmp_path / FOLDER / f"{run}.jsonl").write_text(json.dumps({**end, "done": f"2026-11-2{day}"}))
    rows = [cell(2.0, n, run_id=run, launch_id=f"{run}-0") for n, (run, *_) in enumerate(ends)]
    write(tmp_path, pd.DataFrame(rows).assign(date="2026-11-20"))
    made = report(tmp_path, StoreSelection())
    passed = " · ".join(f"small on n{k}: PASS" for k in (9, 8, 7, 6))
    assert made.first[0].title.startswith(f"small on n3, n4: fail · {passed} · 2 more")
    assert made.changes[0].text == "small on n3, n4: FAIL: latency"
    part = report(tmp_path, StoreSelection({"run_id": ["a", "c"]}))
    assert part.first[0].title.startswith("small: pass")
