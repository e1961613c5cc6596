"""Report and explorer of stores that a suite, an acceptance and an import made: whole curves, not points."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import main
from omb_py.dashboards.base import series
from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.report.build import read_cells, report
from omb_py.dashboards.report.html_page import page
from tests.dashboards.stores import OSU


def curves(store: Path) -> list[Any]:
    return [view for view in report(store, parse([])).views if view.kind == "curves"]


def drawn(view: Any) -> list[Any]:
    return [trace for trace in view.spec["data"] if trace["mode"] == "lines+markers"]


@pytest.mark.slow
def test_a_suite_gives_a_curve_for_each_benchmark(suite: Path) -> None:
    shown = curves(suite)
    for view in shown:
        assert len(drawn(view)) == 1 and "suite" not in view.title
        assert len(drawn(view)[0]["x"]) > 1, view.title
        assert "2 launches" in view.caption
    counted = Counter(view.title.partition(":")[0].partition(",")[0] for view in shown)
    assert set(counted) == {"allgather", "allreduce", "alltoall", "bcast", "bw", "latency"}


@pytest.mark.slow
def test_an_acceptance_gives_whole_curves_of_its_timed_launches(accepted: Path) -> None:
    shown = curves(accepted)
    for view in shown:
        (line,) = drawn(view)
        assert len(line["x"]) == 4 and "8 launches" in view.caption, "the calls that check bytes are no measurement"
    assert {view.title.partition(":")[0] for view in shown} == {"allreduce", "latency"}
    assert set(read_cells(accepted, parse([]), []).timed["tags"]) == {""}, "its rounds are no lines"
    found, _ = views(Data(accepted), State("curves"))
    assert [view.title for view in found] == [view.title for view in shown]


@pytest.mark.slow
def test_what_a_user_tagged_makes_lines_of_its_own(tmp_path: Path) -> None:
    for rack in "ab":
        words = ["allreduce", "--backend", "mock", "-n", "2", "-m", "8:64", "-i", "4", "--tag", f"rack={rack}"]
        assert main([*words, "--quiet", "--store", str(tmp_path)]) == 0
    (view,) = curves(tmp_path)
    assert [line["name"] for line in drawn(view)] == ["rack=a", "rack=b"]


@pytest.mark.slow
def test_a_printed_mean_is_drawn_and_called_so(imported: Path) -> None:
    (view,) = curves(imported)
    (line,) = drawn(view)
    assert (line["x"], line["y"]) == ([4, 64, 1024, 65536], [1.31, 1.40, 2.51, 30.11])
    assert view.spec["layout"]["yaxis"]["title"]["text"] == "printed mean time (µs)"
    assert view.columns[1] == "printed mean µs" and "printed means, no samples" in view.caption
    assert "the mean that the tool printed" in view.notes[0]
    (spread, *_), _ = views(Data(imported), State("distribution"))
    assert spread.title == "allreduce 4 B: one launch, printed mean 1.31 µs" and spread.notes == ()
    assert spread.columns[3] == "printed mean µs" and " samples" not in spread.caption.replace("no samples", "")


def test_a_printed_mean_is_no_median_in_the_table_and_the_downloads(imported: Path) -> None:
    data = Data(imported)
    answer = grid.answer(data.select({}), {})
    assert [row["median_us"] for row in answer["rowData"]] == [None] * 4
    assert [row["value"] for row in answer["rowData"]] == [1.31, 1.40, 2.51, 30.11]
    stored = series.as_stored(data.select({}))
    assert stored["median_us"].isna().all() and "statistic" not in stored


@pytest.mark.slow
def test_printed_numbers_are_not_said_to_be_without_late_ranks(imported: Path, suite: Path) -> None:
    said = page(report(imported, parse([])))
    assert "no late rank and no wrong byte can be seen" in said and "no rank is late" not in said
    assert "can be seen" not in page(report(suite, parse([])))


@pytest.mark.slow
def test_means_and_medians_of_one_library_are_two_lines(imported: Path, tmp_path: Path) -> None:
    words = ["allreduce", "--backend", "mock", "-n", "4", "-m", "4:1K:16", "-i", "4", "--quiet"]
    assert main([*words, "--store", str(tmp_path)]) == 0
    (tmp_path / "osu.log").write_text(OSU)
    assert main(["results", "import", str(tmp_path / "osu.log"), "--set", "ranks=4", "--store", str(tmp_path)]) == 0
    (view,) = [view for view in curves(tmp_path) if "bandwidth" not in view.title]
    assert len(drawn(view)) == 2 and "no like with like" in view.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("origin", "title", "number", "said"),
    [
        ("suite", "6 benchmarks measured with mock 1.0", 6, ("latency", 2, "1 µs at 8 B, 420 µs at 4 MiB")),
        ("accepted", "small: PASS: 4 pass of 4 verdicts; correctness: ", 2, ("latency", 2, "1 µs at 8 B")),
        ("imported", "1 benchmark measured with ", 1, ("allreduce", 4, "1.31 µs at 4 B, 30.1 µs at 64 KiB")),
    ],
)
def test_a_store_without_a_pair_says_what_was_measured_and_what_to_type(
    origin: str, title: str, number: int, said: tuple[object, ...], request: pytest.FixtureRequest
) -> None:
    store: Path = request.getfixturevalue(origin)
    first = report(store, parse([])).first
    *_, status, headline = (view for view in first if view.kind != "changes")
    assert (status.kind, headline.kind) == ("status", "headline")
    assert len(headline.rows) == number and status.title.startswith(title)
    (row,) = [row for row in headline.rows if row[0] == said[0]]
    assert row[1] == said[1] and str(row[2]).startswith(str(said[2]))
    assert "No base: only " in headline.caption and f"--store {store}" in headline.caption
    assert ("omb-py results import FILE…" in headline.caption) == (origin == "imported")
    assert "Then type omb-py compare BASE NEW, the ids of two runs" in headline.caption
    shown, _ = views(Data(store), State())
    assert [view.title for view in shown] == [view.title for view in first]
