from __future__ import annotations

import base64
import gzip
import json
import re
from html import escape
from pathlib import Path

import pytest

from omb_py.cli import main
from omb_py.dashboards.base.reading import StoreSelection, parse
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page, plotly_script
from omb_py.errors import UsageError
from omb_py.results.store.write import write_launch
from tests.dashboards.stores import drawings, plain, write


@pytest.fixture
def store(tmp_path: Path, frame) -> Path:
    """The frame's cells as files, a launch each."""
    return write(tmp_path / "store", frame)


@pytest.mark.slow
def test_it_has_five_tabs(store: Path) -> None:
    made = report(store, StoreSelection())
    text = page(made)
    heads = re.findall(r"<h2>(.*?)</h2>", text)
    assert heads == ["Compare", "Health (2)", "History", "Cell", "Workloads"]
    compare = made.tabs["Compare"].views
    assert any("rank 3 on n1 is the slowest in 85 % of the calls" in line for line in made.odd)
    assert [view.kind for view in compare] == ["map", "curves", "curves"]
    assert [view.kind for view in made.tabs["Cell"].views] == ["overview"]


@pytest.mark.slow
def test_the_script_is_there_once_and_nothing_is_loaded(store: Path) -> None:
    text = page(report(store, StoreSelection()))
    (script,) = re.findall(r'<script type="text/plain" id="packed">(.*?)</script>', text)
    assert gzip.decompress(base64.b64decode(script)).decode() == plotly_script()
    assert len([spec for spec in drawings(text) if spec]) == text.count('class="plot"') > 0
    (tables,) = re.findall(r'<script type="application/json" id="views">(.*?)</script>', text)
    assert all(set(view) == {"columns", "rows", "commands"} for view in json.loads(tables)), "a browser without gzip"
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    assert len(text.encode()) < 2_500_000


@pytest.mark.slow
def test_numbers_in_the_page_are_those_of_the_store(store: Path, frame) -> None:
    drawn = drawings(page(report(store, parse(["library=MPICH"]))))
    line = next(t for spec in drawn if spec for t in spec["data"] if t.get("mode") == "lines+markers")
    stored = frame[frame["library"] == "MPICH"].groupby("size_bytes")["median_us"].median()
    assert line["y"] == pytest.approx(list(stored), rel=1e-5)


@pytest.mark.slow
def test_what_a_user_wrote_is_text(tmp_path: Path, cell) -> None:
    wild = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    row = cell(2.0, library=wild, tags={wild: wild}, hosts=[wild] * 4)
    row.pop("date")
    write_launch(tmp_path, [plain({**row, "started_at": row["started_at"].isoformat()})], {})
    text = page(report(tmp_path, StoreSelection()))
    assert "<img" not in text and "alert(1)</script>" not in text
    assert text.count("<script") == 5 and text.count("</script>") == 5
    assert "&lt;img src=x" in text


def test_an_empty_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s").mkdir()
    assert main(["report", str(tmp_path / "s"), "-o", str(tmp_path / "r.html")]) == 2
    assert "is empty. To measure something: omb-py allreduce" in (tmp_path / "r.html").read_text()
    assert "is empty" in capsys.readouterr().err


@pytest.mark.slow
def test_filters_that_match_nothing(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", str(store), "benchmark=bcast", "tags.a=b", "-o", str(tmp_path / "r.html")]
    assert main(words) == 2
    assert "No cell of" in (tmp_path / "r.html").read_text()
    assert "fits benchmark=bcast tag=a=b. What there is: omb-py results list" in capsys.readouterr().err


@pytest.mark.slow
def test_one_broken_file_is_named_and_the_rest_shown(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = store / "date=2026-11-20" / "broken.parquet"
    bad.write_bytes(b"PAR1 no")
    assert main(["report", str(store), "-o", str(tmp_path / "r.html")]) == 3
    text = (tmp_path / "r.html").read_text()
    assert "broken.parquet: not a readable Parquet file" in text and "18 rows from" in text
    assert "skipped" in capsys.readouterr().err


def test_a_store_of_a_newer_schema(tmp_path: Path, cell, monkeypatch: pytest.MonkeyPatch) -> None:
    row = cell(2.0)
    row.pop("date")
    with monkeypatch.context() as patch:
        patch.setattr("omb_py.results.store.schema.SCHEMA_VERSION", 99)
        write_launch(tmp_path / "s", [plain({**row, "started_at": row["started_at"].isoformat()})], {})
    assert main(["report", str(tmp_path / "s"), "-o", str(tmp_path / "r.html")]) == 3
    text = (tmp_path / "r.html").read_text()
    assert "1 file that this omb-py cannot read" in text and "update omb-py" in text
    assert "the rest is shown" not in text, "there is no rest"
    shown, note = views(Data(tmp_path / "s"), State())
    assert shown == [] and escape(note) in text, "the explorer says the same"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "no store at 'nowhere'"),
        (["benchmrk=bw"], "the store has no column 'benchmrk': did you mean benchmark?"),
        (["a", "b", "c"], "one store, or two to be compared, not 3: a, b, c"),
        (["a", "--store", "b"], "--store b and a: name stores in one way; two of them: omb-py report BASE NEW"),
        (["here", "here/."], "here and here are the same store"),
        (["here", "nowhere"], "no store at 'nowhere'"),
        (["here", "empty"], "no cell of empty: nothing to compare"),
        (["here", "there", "benchmark=bw"], "no cell of here fits benchmark=bw: nothing to compare"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str],
    said: str,
    frame,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "here", frame)
    write(tmp_path / "there", frame)
    (tmp_path / "empty").mkdir()
    assert main(["report", *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("omb-py: error: ") and said in err and err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_two_stores_are_compared(frame, tmp_path: Path) -> None:
    """The second is slower at one size, whatever its name; the libraries are held against themselves."""
    slow = frame.assign(median_us=frame["median_us"].where(frame["size_bytes"] != 1024, 1.5 * frame["median_us"]))
    base, new = write(tmp_path / "z", frame), write(tmp_path / "a", slow)
    assert main(["report", str(base), str(new), "-o", str(tmp_path / "both.html")]) == 0
    made = report(base, StoreSelection(), new)
    assert made.first[0].title == "a against z: 2 of 6 cells slower, 0 faster; other findings: 2 odd"
    assert sorted(item.text for item in made.changes if item.kind == "slower") == [
        f"allreduce is 1.5× slower with {name} · a than with {name} · z, at 1 KiB, 4 ranks (1 of 3 cells)"
        for name in ("MPICH 5.0.2", "Open MPI 5.0.2")
    ]
    maps = [view.title for view in made.views if view.kind == "map"]
    assert len(maps) == 2 and all("1 of 3 cells slower, 0 faster" in title for title in maps)
    assert made.store == f"{new} against {base}" and "a against " in (tmp_path / "both.html").read_text()


def test_filters() -> None:
    made = parse(["ranks=2", "ranks=4", "date=2026-11-01..", "tags.k=v=w", "tag=k=u"])
    assert made.columns == {"ranks": ["2", "4"], "date": ["2026-11-01.."]} and made.tags == {"k": ["v=w", "u"]}
    assert made.text() == "ranks=2 ranks=4 date=2026-11-01.. tag=k=v=w tag=k=u"
    assert not StoreSelection()
    with pytest.raises(UsageError, match="is not COLUMN=VALUE or tag=K=V"):
        parse(["x"])
