"""The picture that stands alone: sides by words, finding, hardware, crossover, SIMULATED."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.figures.curves import PanelGrid
from omb_py.dashboards.report import image_export
from omb_py.dashboards.report.build import read_cells
from omb_py.dashboards.report.picture import SIZES, Picture, picture
from omb_py.errors import UsageError
from tests.support import gpu_store
from tests.support.browser import PATIENCE_S, TEST_S, missing


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("gpus") / "s"
    gpu_store.write(place, (8, 32))
    return place


OVER_GPUS = PanelGrid("devices")


def drawn(store: Path, words: str = "", grid: PanelGrid = OVER_GPUS) -> Picture:
    cells = read_cells(store, parse(["benchmark=allreduce"]), [])
    return picture(cells, "allreduce", [word for word in words.split(",") if word], grid)


def names(shown: Picture) -> list[str]:
    return [t["name"] for t in shown.spec("light")["data"] if t.get("showlegend")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sides"),
    [
        ("mpi,nccl", ["MVAPICH-Plus 4.1", "NCCL 2.27.3"]),
        ("2.21.5,2.27.3", ["NCCL 2.21.5", "NCCL 2.27.3"]),
        ("mvapichplus,nccl 2.21.5", ["MVAPICH-Plus 4.1", "NCCL 2.21.5"]),
        ("", ["NCCL 2.21.5", "NCCL 2.27.3", "MVAPICH-Plus 4.1"]),
    ],
)
def test_words_name_sides_and_the_newest_version_stands_for_a_library(
    store: Path, words: str, sides: list[str]
) -> None:
    assert names(drawn(store, words)) == sides


@pytest.mark.slow
def test_it_says_who_is_fastest_where_and_on_what(store: Path) -> None:
    shown = drawn(store, "mpi,2.27.3")
    assert shown.view.title.startswith("allreduce, 32 GPUs: MVAPICH-Plus 4.1 is fastest up to ")
    assert ", NCCL 2.27.3 from " in shown.view.title and "× apart, at 64 MiB" in shown.view.title
    assert shown.view.caption == "8 to 32 GPUs · 2 to 8 nodes · NVIDIA A100-SXM4-40GB · 3 launches each · 2026-04-06"
    assert "timing: local_max (MVAPICH-Plus 4.1), isolated (NCCL 2.27.3)" in shown.view.notes[1]
    assert shown.labels == ()


@pytest.mark.slow
def test_the_crossover_stands_where_the_times_cross(store: Path) -> None:
    spec = drawn(store, "mpi,2.27.3").spec("light")
    time = gpu_store.time_us
    for panel, gpus in (("x", 8), ("x2", 32)):
        first = next(
            s for s in gpu_store.SIZES if time("NCCL", "2.27.3", gpus, s) < time("MVAPICH-Plus", "4.1", gpus, s)
        )
        (line,) = [shape for shape in spec["layout"]["shapes"] if shape["xref"] == panel]
        assert line["x0"] == line["x1"] == first


@pytest.mark.slow
def test_over_gpus_has_a_panel_for_each_size_and_a_ratio_is_one_for_the_first_side(store: Path) -> None:
    grid = PanelGrid("devices", "devices", "ratio")
    data = drawn(store, "2.21.5,2.27.3", grid).spec("dark")["data"]
    lines = [t for t in data if t["mode"] == "lines+markers"]
    assert {tuple(t["x"]) for t in lines} == {(8, 32)} and len({t.get("xaxis", "x") for t in lines}) == 6
    assert all(y == 1 for t in lines if t["name"] == "NCCL 2.21.5" for y in t["y"])
    last = [t["y"] for t in lines if t["name"] == "NCCL 2.27.3"]
    assert max(max(y) for y in last) > 1.2 and min(min(y) for y in last) < 1


@pytest.mark.slow
def test_all_texts_are_in_the_figure_and_below_each_other(store: Path) -> None:
    layout = drawn(store, "mpi,nccl").spec("light")["layout"]
    texts = [a for a in layout["annotations"] if a["xref"] == "paper"]
    assert layout["width"] == 1200 and len(texts) == 4
    above = [a["yshift"] for a in texts if a["y"] == 1]
    below = [a["yshift"] for a in texts if a["y"] == 0]
    assert above == sorted(above, reverse=True) and all(0 < y <= layout["margin"]["t"] for y in above)
    assert below == sorted(below, reverse=True) and all(-layout["margin"]["b"] <= y < 0 for y in below)


@pytest.mark.slow
@pytest.mark.parametrize("width", SIZES)
def test_each_width_has_room_for_its_letters(store: Path, width: str) -> None:
    size = SIZES[width]
    cells = read_cells(store, parse(["benchmark=allreduce"]), [])
    layout = picture(cells, "allreduce", ["mpi", "nccl"], PanelGrid("devices"), size).spec("light")["layout"]
    assert layout["width"] == size.width and layout["font"]["size"] == size.text >= 8
    lines = [
        (line, note["font"]["size"])
        for note in layout["annotations"]
        if note["xref"] == "paper"
        for line in note["text"].split("<br>")
    ]
    assert lines and all(0.5 * points * len(line) < size.width for line, points in lines)
    axes = [axis for name, axis in layout.items() if name.startswith("xaxis")]
    assert all(len(axis["tickvals"]) <= size.ticks for axis in axes)
    beside = {tuple(axis["domain"]) for axis in axes}
    assert len(beside) == min(size.beside, len(axes))


@pytest.mark.slow
def test_the_numbers_of_a_picture_are_those_that_are_drawn(store: Path, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    saved: list[Any] = []
    monkeypatch.setattr(image_export, "save_figure", lambda spec, path: saved.append(spec))
    words = ["plot", "allreduce", "--compare", "mpi,2.27.3", "-o", str(tmp_path / "x.png"), "--store", str(store)]
    assert main([*words, "--width", "column", "--data", str(tmp_path / "x.csv")]) == 0
    numbers = pd.read_csv(tmp_path / "x.csv")
    assert [*numbers] == ["benchmark", "side", "gpus", "size_bytes", "median", "low", "high", "unit", "launches"]
    lines = [trace for trace in saved[0]["data"] if trace["mode"] == "lines+markers"]
    drawn_values = sorted(y for line in lines for y in line["y"])
    assert sorted(numbers["median"]) == pytest.approx(drawn_values) and set(numbers["launches"]) == {3}
    assert (numbers["low"] <= numbers["median"]).all() and (numbers["median"] <= numbers["high"]).all()


@pytest.mark.slow
def test_a_side_has_the_name_that_pages_give_it(store: Path, monkeypatch: Any, tmp_path: Path) -> None:
    """With its blanks: libraries are called Open MPI and NCCL 2.27.3."""
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    monkeypatch.setattr(image_export, "save_figure", lambda spec, path: None)
    words = ["plot", "allreduce", "-o", str(tmp_path / "x.png"), "--store", str(store)]
    assert main([*words, "--compare", "NCCL 2.21.5, NCCL 2.27.3", "--data", str(tmp_path / "x.csv")]) == 0
    assert set(pd.read_csv(tmp_path / "x.csv")["side"]) == {"NCCL 2.21.5", "NCCL 2.27.3"}


def test_what_was_simulated_says_so(tmp_path: Path) -> None:
    words = ["allreduce", "--backend", "mock", "-n", "2", "-m", "8:64", "-i", "4", "--quiet"]
    assert main([*words, "--store", str(tmp_path)]) == 0
    shown = drawn(tmp_path, grid=PanelGrid())
    assert shown.labels[0].startswith("SIMULATED")
    assert "<b>SIMULATED" in shown.spec("light")["layout"]["annotations"][0]["text"]
    assert shown.view.title == "allreduce, 2 ranks: 1 µs at 8 B, 1.01 µs at 64 B"
    assert "its spread is unknown" in shown.view.notes[0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("allreduce --compare mpi,ncl", 2, "the store has no side 'ncl': did you mean nccl"),
        ("allreduce --over gpus --where ranks=8", 2, "allreduce was measured on 8 GPUs only: --over size"),
        ("allreduce -o fig.jpg", 2, "--output fig.jpg: the ending says the form: valid: "),
        ("allreduce --data fig.txt", 2, "--data fig.txt: the ending says the form: valid: .csv"),
        ("allreduce --width wide", 2, "unknown width 'wide': valid: "),
        ("allreduce -o no/fig.svg", 3, "there is no folder no: make it first"),
        ("alreduce", 2, "no cell of alreduce in 's': did you mean allreduce?"),
        ("allreduce --where ranks=7", 2, "no cell of allreduce fits ranks=7: omb-py results show --store s"),
        ("s", 2, "plot takes a benchmark of it: omb-py plot BENCHMARK --store s"),
    ],
)
def test_a_wrong_line_is_answered_in_one(
    words: str, code: int, said: str, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store.parent)
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    given = words.split() if "--store" in words else [*words.split(), "--store", "s"]
    assert main(["plot", *given]) == code
    error = capsys.readouterr().err
    assert error.startswith("omb-py: error: ") and said in error and error.count("\n") == 1


def refused(place: Path, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said to ``plot LINE`` with this store, which must be one line with exit code 2."""
    monkeypatch.setattr(image_export, "browser", lambda otherwise="": "never started")
    assert main(["plot", *line.split(), "--store", str(place)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("omb-py: error: ") and error.count("\n") == 1
    return error


def imported(place: Path, title: str, values: Sequence[str], head: str = "Bandwidth (MB/s)") -> Path:
    """A store of a log of OMB with these values at 1, 2, 4, … bytes."""
    lines = [f"{1 << power} {value}" for power, value in enumerate(values)]
    log = place / "omb.log"
    log.write_text(
        "\n".join([f"# OSU MPI {title} Test v7.5", "# Datatype: MPI_CHAR.", f"# Size      {head}", *lines, ""])
    )
    assert main(["results", "import", str(log), "--store", str(place / "s")]) == 0
    return place / "s"


@pytest.mark.parametrize("quantity", ["time", "busbw", "ratio"])
@pytest.mark.parametrize(
    ("benchmark", "title", "head"), [("bw", "Bandwidth", "Bandwidth (MB/s)"), ("latency", "Latency", "Avg Latency(us)")]
)
def test_values_of_zero_alone_are_no_picture(
    benchmark: str, title: str, head: str, quantity: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    place = imported(tmp_path, title, ["0.00", "0.00"], head)
    capsys.readouterr()
    told = refused(place, f"{benchmark} --quantity {quantity}", monkeypatch, capsys)
    assert f"no value of {benchmark} is above 0, so there is nothing to draw" in told


def test_printed_bandwidths_are_drawn_as_our_own_are(tmp_path: Path) -> None:
    place = imported(tmp_path, "Bandwidth", ["0.00", "10.00", "40.00"])
    for store_of, median in ((place, [10.0, 40.0]), (tmp_path / "own", [64.0, 128.0])):
        if store_of != place:
            words = ["bw", "--backend", "mock", "-m", "2:4", "-i", "4", "--mock", "alpha=1us", "--quiet"]
            assert main([*words, "--store", str(store_of)]) == 0
        cells = read_cells(store_of, parse([]), [])
        for quantity in ("auto", "bandwidth"):
            shown = picture(cells, "bw", [], PanelGrid(quantity=quantity))
            assert shown.spec("light")["layout"]["yaxis"]["title"]["text"] == "bandwidth (MB/s)"
            at = {name: shown.numbers["columns"].index(name) for name in ("size_bytes", "median", "unit")}
            rows = [[row[place] for place in at.values()] for row in shown.numbers["rows"]]
            assert rows == [[2, median[0], "MB/s"], [4, median[1], "MB/s"]]


def test_the_ratio_of_printed_bandwidths_is_that_of_the_times_of_a_message(tmp_path: Path) -> None:
    for name, value in (("a", "10.00"), ("b", "40.00")):
        imported(tmp_path, "Bandwidth", ["5.00", value])
        log = tmp_path / "omb.log"
        options = ["--again", "--set", f"library={name}", "--store", str(tmp_path / "two")]
        assert main(["results", "import", str(log), *options]) == 0
    cells = read_cells(tmp_path / "two", parse([]), [])
    shown = picture(cells, "bw", ["a", "b"], PanelGrid(quantity="ratio"))
    side, middle = (shown.numbers["columns"].index(name) for name in ("side", "median"))
    assert [row[middle] for row in shown.numbers["rows"] if row[side].startswith("b")] == [1.0, 0.25]


def test_a_quantity_that_no_row_has_is_answered_with_those_that_work(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    place = imported(tmp_path, "Bandwidth", ["5.00", "10.00"])
    capsys.readouterr()
    for quantity, what in (("time", "time"), ("busbw", "bus bandwidth")):
        told = refused(place, f"bw --quantity {quantity}", monkeypatch, capsys)
        assert f"bw has no {what} in this store: --quantity bandwidth or ratio" in told


def test_a_log_that_does_not_say_its_ranks_is_drawn_over_size(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    place = imported(tmp_path, "Allreduce Latency", ["1.00", "2.00"], "Avg Latency(us)")
    cells = read_cells(place, parse([]), [])
    shown = picture(cells, "allreduce", [], PanelGrid())
    assert shown.view.title == "allreduce, ranks unknown: 1 µs at 1 B, 2 µs at 2 B"
    at = shown.numbers["columns"].index("ranks")
    assert [row[at] for row in shown.numbers["rows"]] == [None, None]
    capsys.readouterr()
    told = refused(place, "allreduce --over ranks", monkeypatch, capsys)
    assert (
        "does not say its ranks: --over size, or their number by omb-py results import LOG --again --set ranks=8"
        in told
    )
    told = refused(place, "allreduce --over gpus", monkeypatch, capsys)
    assert "no cell of allreduce was measured on GPUs: --over size" in told


def test_values_that_are_all_null_are_no_picture(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    cells = read_cells(imported(tmp_path, "Latency", ["1.00"], "Avg Latency(us)"), parse([]), [])
    cells.rows = cells.rows.assign(value=None, median_us=None)
    with pytest.raises(UsageError, match="no value of latency is above 0"):
        picture(cells, "latency", [], PanelGrid())


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")
@pytest.mark.timeout(TEST_S)
@pytest.mark.parametrize(("ending", "begins"), [("pdf", b"%PDF"), ("svg", b"<svg")])
def test_a_picture_of_each_form(
    store: Path, ending: str, begins: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """PNG in test_image_export.py."""
    monkeypatch.setattr(image_export, "PATIENCE_S", PATIENCE_S)
    file = tmp_path / f"fig.{ending}"
    assert main(["plot", "allreduce", "--compare", "mpi,nccl", "-o", str(file), "--store", str(store)]) == 0
    content = file.read_bytes()
    assert content.startswith(begins) and [p.name for p in tmp_path.iterdir()] == [file.name]
    if ending == "svg":
        text = content.decode()
        assert "MVAPICH-Plus 4.1" in text and "from 256 KiB" in text and "NVIDIA A100-SXM4-40GB" in text
    assert "written to" in capsys.readouterr().err
