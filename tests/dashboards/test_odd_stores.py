"""Stores that made a page fail, or say what is not so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.base import series
from omb_py.dashboards.base.reading import StoreSelection, parse
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.figures.curves import PanelGrid
from omb_py.dashboards.report import image_export
from omb_py.dashboards.report.build import read_cells, report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.report.picture import picture
from omb_py.dashboards.views import fits
from omb_py.dashboards.views.overview import overview
from omb_py.results.store.write import write_launch
from tests.dashboards.stores import ACCEPTANCE, OSU, plain, write
from tests.support import gpu_store

Cell = Callable[..., dict[str, Any]]


def stored(place: Path, rows: list[dict[str, Any]]) -> Path:
    return write(place / "s", pd.DataFrame(rows).astype({"size_bytes": "Int64", "ranks": "Int32", "devices": "Int32"}))


def imported(cell: Cell, benchmark: str, size: int, time: float, **more: Any) -> dict[str, Any]:
    """A row as an import has it: a printed mean, no samples."""
    empty = dict.fromkeys(("median_us", "mean_us", "samples_us", "p25_us", "p75_us", "p99_us", "min_us"))
    values = {"benchmark": benchmark, "size_bytes": size, "comparability_key": f"{benchmark}{size}", **empty, **more}
    return cell(time, **{"source": "osu", "value": time, **values})


@pytest.mark.slow
def test_rows_without_a_number_of_ranks_are_shown(tmp_path: Path, cell: Cell) -> None:
    """Another tool's collectives beside its latency: the lower bound asked how many ranks there were."""
    rows = [imported(cell, "latency", size, 1 + size / 1e4, ranks=2) for size in (8, 1024, 65536)]
    rows += [imported(cell, "allreduce", size, 3 + size / 1e3, ranks=None, nodes=None) for size in (8, 1024, 65536)]
    store = stored(tmp_path, rows)
    assert not read_cells(store, parse([]), []).bounds["ranks"].isna().any()
    assert "allreduce" in page(report(store, StoreSelection()))


@pytest.mark.slow
def test_a_printed_zero_is_no_number(tmp_path: Path, cell: Cell) -> None:
    """nccl-tests prints 0.00 GB/s for small messages: no logarithm, and no line to minus infinity."""
    rows = [
        imported(cell, "allreduce", size, 20.0 + size / 1e5, ranks=count, devices=count, busbw_gbps=rate, launch=count)
        for size, rate in ((8, 0.0), (1 << 20, 30.0), (1 << 24, 120.0))
        for count in (8, 16)
    ]
    cells = read_cells(stored(tmp_path, rows), parse([]), [])
    for grid in (PanelGrid("devices", "devices", "busbw"), PanelGrid("devices", quantity="busbw")):
        drawn = picture(cells, "allreduce", [], grid).view
        assert 0 not in [y for trace in drawn.spec["data"] for y in trace["y"]]


@pytest.mark.parametrize("quantity", ["time", "busbw", "ratio"])
@pytest.mark.parametrize("over", ["size", "gpus", "ranks"])
def test_a_picture_of_what_other_tools_printed_is_drawn_or_refused_in_a_line(
    over: str, quantity: str, tmp_path: Path, cell: Cell, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Zeros, no samples, and rows that do not say how many ranks there were."""
    rows = [
        imported(cell, "allreduce", size, 1.0, ranks=ranks, devices=ranks, nodes=None, busbw_gbps=0.0, launch=launch)
        | {"value": time}
        for launch, (size, time, ranks) in enumerate(((8, 0.0, 8), (1024, 30.0, 8), (1024, 40.0, None), (0, 1.0, None)))
    ]
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    monkeypatch.setattr(image_export, "save_figure", lambda spec, path: None)
    words = ["--over", over, "--quantity", quantity, "-o", str(tmp_path / "x.png"), "--data", str(tmp_path / "x.csv")]
    code = main(["plot", "allreduce", "--store", str(stored(tmp_path, rows)), *words])
    said = capsys.readouterr().err
    assert code in (0, 2) and said.count("\n") == 1 and "this is a bug" not in said, said
    assert (tmp_path / "x.csv").exists() == (code == 0)


def test_bandwidth_is_of_the_statistic_that_times_are_of(cell: Cell) -> None:
    """A few slow calls make the mean three times the median: the stored bandwidth is a third of what the time says.

    It is of the value, the mean over ranks; the mean of the slowest rank of each call is longer.
    """
    row = cell(10.0, mean_us=33.0, value=30.0, busbw_gbps=0.5, algbw_gbps=0.25)
    rows = series.prepared(pd.DataFrame([row]))
    (factor,) = 30.0 / rows["median_us"]
    assert rows["busbw_gbps"].iloc[0] == pytest.approx(0.5 * factor)
    assert rows["algbw_gbps"].iloc[0] == pytest.approx(0.25 * factor)
    kept = series.as_stored(rows)
    assert (kept["busbw_gbps"].iloc[0], kept["algbw_gbps"].iloc[0]) == (0.5, 0.25) and set(kept) == set(row)


def test_a_table_has_no_mean_over_ways_of_measuring(tmp_path: Path, cell: Cell) -> None:
    """Neither over types nor over modes of IMB; who measured in one way has no word on it."""
    ways = [("char", {}, 2.0), ("float64", {"mode": "aggregate"}, 1.0), ("float64", {"mode": "non-aggregate"}, 3.0)]
    rows = [
        cell(time, dtype=dtype, parameters=parameters, size_bytes=size, comparability_key=f"{size} {time}")
        for dtype, parameters, time in ways
        for size in (8, 1024)
    ]
    rows += [cell(5.0, benchmark="bcast", comparability_key="b")]
    data = Data(stored(tmp_path, rows))
    (shown,) = overview(data.cells(data.frame))
    assert shown.view is not None
    names = ("benchmark", "way", "µs at the smallest")
    found = [tuple(dict(zip(shown.view.columns, row, strict=True))[name] for name in names) for row in shown.view.rows]
    assert [(*words, pytest.approx(time, rel=0.01)) for *words, time in found] == [
        ("allreduce", "char", 2.0),
        ("allreduce", "float64, mode=aggregate", 1.0),
        ("allreduce", "float64, mode=non-aggregate", 3.0),
        ("bcast", "", 5.0),
    ]
    assert [row[-1].rpartition(" ")[2] for row in shown.view.rows] == [
        "dtype=char",
        "dtype=float64",
        "dtype=float64",
        "ranks=4",
    ]


def test_a_rate_is_a_median_over_launches_too(tmp_path: Path, cell: Cell) -> None:
    """The luckiest launch stood beside medians, and above the peak of the figure of the same cells."""
    rows = [
        cell(2.0, launch, value=2.0, busbw_gbps=rate, size_bytes=size, comparability_key=str(size))
        for size, rates in ((1024, (1.0, 2.0, 9.0)), (65536, (4.0, 5.0, 6.0)))
        for launch, rate in enumerate(rates)
    ]
    rows = [row | {"median_us": 2.0} for row in rows]
    data = Data(stored(tmp_path, rows))
    (shown,) = overview(data.cells(data.frame))
    assert shown.view is not None
    assert dict(zip(shown.view.columns, shown.view.rows[0], strict=True))["GB/s at most"] == 5.0


def test_a_bandwidth_stands_under_the_rates_and_its_windows_are_no_times(tmp_path: Path, cell: Cell) -> None:
    rates = {"benchmark": "bw", "metric": "bandwidth", "unit": "MB/s", "busbw_gbps": None, "algbw_gbps": None}
    rows = [
        cell(3374.5, n, value=value, size_bytes=size, comparability_key=str(size), **rates)
        for size, values in ((8, (2.0, 3.0, 9.0)), (65536, (9000.0, 9950.0, 9990.0)))
        for n, value in enumerate(values)
    ]
    data = Data(stored(tmp_path, rows))
    (shown,) = overview(data.cells(data.frame))
    assert shown.view is not None
    line = dict(zip(shown.view.columns, shown.view.rows[0], strict=True))
    assert [line[name] for name in ("µs at the smallest", "µs at the largest", "GB/s at most")] == [None, None, 9.95]


def test_sides_that_a_tag_alone_tells_apart_have_no_common_median(tmp_path: Path, cell: Cell) -> None:
    """Nor a common curve: both sides of a comparison of options have one library and version."""
    rows = [
        cell(time + size / 1e3, launch, size_bytes=size, comparability_key=str(size), tags={"compare_side": side})
        for launch, (side, time) in enumerate((("BASE", 2.0), ("NEW", 4.0)))
        for size in (8, 64, 512, 4096)
    ]
    data = Data(stored(tmp_path, rows))
    cells = data.cells(data.frame)
    (shown,) = overview(cells)
    assert shown.view is not None
    names = ("way", "µs at the smallest", "launches")
    found = [[dict(zip(shown.view.columns, row, strict=True))[name] for name in names] for row in shown.view.rows]
    assert found == [["BASE", pytest.approx(2.0, rel=0.01), 1], ["NEW", pytest.approx(4.0, rel=0.01), 1]]
    assert [row[-1].rpartition(" ")[2] for row in shown.view.rows] == ["tag=compare_side=BASE", "tag=compare_side=NEW"]
    titles = [shown.view.title for shown in fits.fits(cells) if shown.view]
    assert [title.partition(":")[0].rpartition(" · ")[2] for title in titles] == [
        "side NEW of comparisons",
        "side BASE of comparisons",
    ]


def test_a_fitted_curve_is_of_one_version(tmp_path: Path, cell: Cell) -> None:
    """The newest first: a median over versions is the time of none."""
    rows = [
        cell(time + size / 1e3, launch, size_bytes=size, comparability_key=str(size), library_version=version)
        for launch, (version, time) in enumerate((("5.0.2", 2.0), ("5.0.10", 4.0)))
        for size in (8, 64, 512, 4096)
    ]
    data = Data(stored(tmp_path, rows))
    views = [shown.view for shown in fits.fits(data.cells(data.frame)) if shown.view]
    assert [(view.title.split(" · ")[2], view.rows[0][1]) for view in views] == [
        ("MPICH 5.0.10", pytest.approx(4.0, rel=0.01)),
        ("MPICH 5.0.2", pytest.approx(2.0, rel=0.01)),
    ]


@pytest.mark.slow
def test_wrong_bytes_have_a_library_and_every_size(tmp_path: Path, cell: Cell) -> None:
    rows = [
        cell(2.0, launch, library=library, size_bytes=size, validated=library == "A", comparability_key=str(size))
        for launch, library in enumerate(("A", "B", "C"))
        for size in (8, 16, 32, 64, 128, 256)
    ]
    rows += [cell(2.0, 9, benchmark="barrier", size_bytes=None, validated=False, comparability_key="b")]
    alike = {"rank_mean_us": [2.0] * 4, "slowest_rank_share": [0.25] * 4}
    made = report(stored(tmp_path, [row | alike for row in rows]), StoreSelection())
    assert made.odd == [
        "Wrong bytes: allreduce (B 5.0.2 · 4 ranks) failed its validation at 8 B, 16 B, 32 B, 64 B and 2 more.",
        "Wrong bytes: allreduce (C 5.0.2 · 4 ranks) failed its validation at 8 B, 16 B, 32 B, 64 B and 2 more.",
        "Wrong bytes: barrier (MPICH 5.0.2 · 4 ranks) failed its validation.",
    ]


@pytest.mark.slow
def test_what_has_no_size_and_no_library_is_not_given_one(tmp_path: Path, cell: Cell) -> None:
    """The largest difference was at 0 B, and measured with nothing was measured with."""
    rows = [
        cell(time, launch, benchmark="step", library=library, size_bytes=0, comparability_key="s")
        for launch, (library, time) in enumerate((("A", 2.0), ("B", 4.0)))
    ]
    title = report(stored(tmp_path / "a", rows), StoreSelection()).first[0].title
    assert title.startswith("B 5.0.2 against A 5.0.2: ") and "largest difference: step on 4 ranks, 2× slower" in title
    unknown = [cell(library=library, library_version=None, value=None, median_us=None) for library in ("A", "B")]
    title = report(stored(tmp_path / "b", unknown), StoreSelection()).first[0].title
    assert title.partition(";")[0] == "1 benchmark measured"


@pytest.mark.slow
def test_what_was_measured_on_gpus_is_drawn_over_gpus(tmp_path: Path) -> None:
    """And a line has the name of its library once, without its backend."""
    gpu_store.write(tmp_path / "s", gpus=(2, 4))
    (view,) = [view for view in report(tmp_path / "s", StoreSelection()).views if view.kind == "scaling"]
    assert view.columns == ("size", "GPUs", "MVAPICH-Plus 4.1 µs", "NCCL 2.21.5 µs", "NCCL 2.27.3 µs")
    assert "ranks" not in view.title and view.spec["layout"]["xaxis"]["title"]["text"] == "GPUs"


@pytest.mark.parametrize(
    ("quantity", "title", "last"), [("busbw", "bus bandwidth (GB/s)", 3.0), ("kept", "% of the fewest ranks", 50.0)]
)
def test_the_quantity_is_that_over_ranks_too(
    tmp_path: Path, cell: Cell, quantity: str, title: str, last: float
) -> None:
    rows = [
        cell(10.0, ranks=ranks, size_bytes=size, busbw_gbps=rate, comparability_key=f"{ranks} {size}", launch=ranks)
        for size in (8, 1024)
        for ranks, rate in ((4, 6.0), (8, 3.0))
    ]
    for row in rows:
        row |= {"value": row["median_us"]}
    (view,), _ = views(Data(stored(tmp_path, rows)), State("scaling", quantity))
    assert view.spec["layout"]["yaxis"]["title"]["text"] == title
    lines = [trace for trace in view.spec["data"] if trace["mode"] == "lines+markers"]
    assert [trace["y"][-1] for trace in lines] == pytest.approx([last, last])


@pytest.mark.slow
def test_no_page_names_an_option_that_it_has_not(tmp_path: Path, cell: Cell) -> None:
    rows = [
        cell(2.0 + number, number, library=library, in_place=place, ranks=ranks, comparability_key=f"{place} {ranks}")
        for number, (library, place, ranks) in enumerate(
            (library, place, ranks) for library in ("A", "B") for place in (True, False) for ranks in (4, 8)
        )
    ]
    store = stored(tmp_path, rows)
    text = page(report(store, StoreSelection()))
    assert "--where" not in text and "One way of measuring of several is drawn: " in text
    cells = read_cells(store, parse([]), [])
    assert any("--where" in note for note in picture(cells, "allreduce", [], PanelGrid()).view.notes)


@pytest.mark.slow
def test_an_acceptance_opens_on_its_verdict(tmp_path: Path) -> None:
    suite, store = tmp_path / "small.toml", tmp_path / "store"
    suite.write_text(ACCEPTANCE.replace("1 s", "1 us"))
    words = ["accept", str(suite), "--backend", "mock", "--mock", "alpha=2us", "--quiet", "--store", str(store)]
    assert main(words) == 1
    made = report(store, StoreSelection())
    assert made.first[0].title.startswith("small: FAIL: 4 fail of 4 verdicts; correctness: 2 of 2 right")
    assert [item.kind for item in made.changes] == ["slower"] * 4
    assert made.changes[0].text.startswith("FAIL: fast, 8 B: 2") and "at most 1 us" in made.changes[0].text


@pytest.mark.slow
def test_of_many_libraries_no_pair_is_the_answer(tmp_path: Path) -> None:
    log, store = tmp_path / "osu.log", tmp_path / "store"
    for number in range(8):
        log.write_text(OSU.replace("30.11", f"{30.11 + number:.2f}"))
        words = ["results", "import", str(log), "--set", "ranks=4", "--set", f"library=lib{number}"]
        assert main([*words, "--store", str(store)]) == 0
    made = report(store, StoreSelection())
    assert made.first[0].title.startswith("8 sides measured the same: lib0, lib1 and 6 more")


@pytest.mark.slow
def test_findings_that_are_not_named_count_too(tmp_path: Path, cell: Cell) -> None:
    """Five benchmarks with a long tail: one is named on the first screen, and four in the tab."""
    names = ("allgather", "allreduce", "alltoall", "bcast", "reduce")
    rows = [cell(2.0, launch=n, benchmark=name, p99_us=40.0, comparability_key=name) for n, name in enumerate(names)]
    alike = {"rank_mean_us": [2.0] * 4, "slowest_rank_share": [0.25] * 4}
    made = report(stored(tmp_path, [row | alike for row in rows]), StoreSelection())
    (line,) = [item.text for item in made.changes]
    assert line.startswith("Long tail: ") and line.endswith(
        " took 20 times the median or more, and 4 more of this kind."
    )
    assert made.first[0].title.endswith("findings: 5 odd")
    assert made.odd[-1] == "… and 1 more of this kind" and "<h2>Health (5)</h2>" in page(made)


@pytest.mark.slow
def test_a_base_for_an_import_is_another_import(tmp_path: Path, cell: Cell) -> None:
    """What omb-py measures is compared with nothing that another tool printed."""
    rows = [imported(cell, "allreduce", size, 20.0, ranks=8, devices=8, nodes=None) for size in (8, 1 << 20)]
    write_launch(tmp_path, [plain({k: v for k, v in row.items() if k != "date"}) for row in rows], {})
    (headline,) = [view for view in report(tmp_path, StoreSelection()).views if view.kind == "headline"]
    assert "import the same of another version or library" in headline.caption and " -n " not in headline.caption
