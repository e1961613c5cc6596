"""Stored sweeps and guidelines in report and explorer: in views of their own, and in no curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import omb_py
from omb_py.cli import main
from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.views import checks

LINKS = "links --backend mock -n 6 --passes 3 -i 10 --windows 2 -W 2 --seed 1 --quiet --mock noise=0.03,slow=4:2"
PROMISES = (
    "guidelines gl5 gl9 --backend mock -n 4 -m 8:64:8 -i 4 -x 0 --launches 10 --quiet --mock noise=0.01 "
    "--inject busy:0:50000"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("own") / "s"
    for words in (LINKS, PROMISES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["omb-py", *words.split()])
            assert main([*words.split(), "--store", str(made)]) == 1
    assert main(["latency", "--backend", "mock", "-m", "8:64", "-i", "5", "--quiet", "--store", str(made)]) == 0
    return made


def rate(store: Path, source: str, target: str) -> float:
    """MB/s from a node to another, of the first sweep, whose passes are launches."""
    rows = omb_py.load(store, benchmark="bw")
    rows = rows[rows["launch_index"] < 3]
    mine = rows[[list(hosts) == [source, target] for hosts in rows["hosts"]]]
    assert len(mine) == 3
    return float(np.exp(np.median(np.log(mine["value"]))))


def test_the_matrix_shows_what_is_stored(store: Path) -> None:
    (view,), note = views(Data(store), State("pairs"))
    assert note == "" and view.kind == "pairs" and view.title.startswith("6 nodes, 15 links: node4 is slow (")
    drawn = {(row[0], row[1]): row[3] for row in view.rows}
    assert len(drawn) == 30
    for pair in (("node0", "node4"), ("node4", "node0"), ("node1", "node2")):
        assert drawn[pair] == pytest.approx(rate(store, *pair), rel=1e-5)
    percent = 100 * drawn["node0", "node4"] / np.median(list(drawn.values()))
    assert view.spec["data"][0]["z"][0][4] == pytest.approx(percent) and view.spec["data"][0]["z"][0][0] is None
    assert "node4: confirmed" in view.notes
    assert view.commands[0].startswith("omb-py links --backend mock -n 6 ")
    view.figure  # noqa: B018


@pytest.mark.slow
def test_guidelines_in_the_explorer_are_those_of_the_report(store: Path) -> None:
    (view,), note = views(Data(store), State("guidelines"))
    (other,) = (one for one in report(store, parse([])).views if one.kind == "guidelines")
    assert note == "" and (view.title, view.spec, view.rows) == (other.title, other.spec, other.rows)
    assert view.commands[0].startswith("omb-py guidelines gl5 gl9 ")


@pytest.mark.slow
def test_the_report_names_them_and_keeps_them_from_the_curves(store: Path) -> None:
    made = report(store, parse([]))
    assert any(line.startswith("Slow nodes or links: 6 nodes, 15 links: node4 is slow") for line in made.odd)
    assert any(line.startswith("Guidelines: 4 violations of 2 guidelines") for line in made.odd)
    assert [view.kind for view in made.tabs["Health"].views][-2:] == ["guidelines", "pairs"]
    assert [view.kind for view in made.tabs["Cell"].views] == ["overview", "model"]
    assert made.tabs["Compare"].views[0].title.startswith("latency: ")


def test_a_store_that_holds_nothing_else(tmp_path: Path) -> None:
    assert main([*LINKS.split(), "--store", str(tmp_path)]) == 1
    made = report(tmp_path, parse([]))
    assert not made.problem and [view.kind for view in made.views] == ["pairs"]
    found, note = views(Data(tmp_path), State("curves"))
    assert found == [] and note.startswith("What fits these filters was measured by omb-py guidelines, links or tune")


def test_one_that_is_too_large(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_ROWS", 10)
    data = Data(store)
    (shown,) = checks.sweeps(data.cells(data.frame))
    assert shown.view.spec is None and "too many to be judged again" in shown.view.title
