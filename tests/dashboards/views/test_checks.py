"""Stored sweeps and guidelines, and paths between GPUs; environments that differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import omb_py
from omb_py.cli import main
from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.report.build import StoreReport, report
from omb_py.dashboards.report.html_page import page
from omb_py.dashboards.views import checks
from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.checks import gpu_paths_of
from omb_py.dashboards.views.overview import environment, gpu_paths
from omb_py.engine.devices import nvml
from tests.support.machines.nvml import StandInGpu, StandInNvml, joined_by_switches

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


@pytest.fixture(scope="module")
def reported(store: Path) -> StoreReport:
    return report(store, parse([]))


def rate(store: Path, source: str, target: str) -> float:
    """MB/s from a node to another, of the first sweep, whose passes are launches."""
    rows = omb_py.load(store, benchmark="bw")
    rows = rows[rows["launch_index"] < 3]
    mine = rows[[list(hosts) == [source, target] for hosts in rows["hosts"]]]
    assert len(mine) == 3
    return float(np.exp(np.median(np.log(mine["value"]))))


@pytest.mark.slow
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


@pytest.mark.slow
def test_guidelines_in_the_explorer_are_those_of_the_report(store: Path, reported: StoreReport) -> None:
    (view,), note = views(Data(store), State("guidelines"))
    (other,) = (one for one in reported.views if one.kind == "guidelines")
    assert note == "" and (view.title, view.spec, view.rows) == (other.title, other.spec, other.rows)
    assert view.commands[0].startswith("omb-py guidelines gl5 gl9 ")


@pytest.mark.slow
def test_the_report_names_them_and_keeps_them_from_the_curves(reported: StoreReport) -> None:
    assert any(line.startswith("Slow nodes or links: 6 nodes, 15 links: node4 is slow") for line in reported.odd)
    assert any(line.startswith("Guidelines: 4 violations of 2 guidelines") for line in reported.odd)
    assert [view.kind for view in reported.tabs["Health"].views][-2:] == ["guidelines", "pairs"]
    assert [view.kind for view in reported.tabs["Cell"].views] == ["overview", "model"]
    assert reported.tabs["Compare"].views[0].title.startswith("latency: ")


@pytest.mark.slow
def test_a_store_that_holds_nothing_else(tmp_path: Path) -> None:
    assert main([*LINKS.split(), "--store", str(tmp_path)]) == 1
    made = report(tmp_path, parse([]))
    assert not made.problem and [view.kind for view in made.views] == ["status", "changes", "pairs"]
    assert made.first[0].title.startswith("Links measured; findings: 1 odd") and "node4 is slow" in made.changes[0].text
    assert made.first[0].notes == ("SIMULATED: nothing of mock was measured",)
    assert "Nothing here was measured at two message sizes" not in page(made)
    found, note = views(Data(tmp_path), State("curves"))
    assert found == [] and note.startswith("What fits these filters was measured by omb-py guidelines, links or tune")


@pytest.mark.slow
def test_one_that_is_too_large(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_ROWS", 10)
    data = Data(store)
    (shown,) = checks.sweeps(data.cells(data.frame))
    assert shown.view.spec is None and "too many to be judged again" in shown.view.title


def test_only_what_differs_between_environments() -> None:
    view = environment(
        {
            "A": {"software": {"ucx": "1.17", "python": "3.12"}},
            "B": {"software": {"ucx": "1.18", "python": "3.12"}, "env": {"X": "1"}},
        }
    )
    assert view.rows == (("env", "X", "-", "1"), ("software", "ucx", "1.17", "1.18"))
    assert view.title == "2 facts differ between A, B: ucx, X"
    assert view.spec is None


def inventory(gpus: list[StandInGpu], monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, Any]:
    monkeypatch.setattr(nvml, "load", lambda: StandInNvml(gpus, **more))
    return nvml.facts()


def test_all_pairs_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    view = gpu_paths(["n1", "n2"], inventory(joined_by_switches(3), monkeypatch))
    assert view.title == "NV18 between all pairs of 3 GPUs on n1, n2"
    assert view.columns == ("GPU", "name", "to 0", "to 1", "to 2", "NUMA node", "PCIe", "MIG")
    assert view.rows[1][2:5] == ("NV18", "·", "NV18") and view.caption == "driver 570.86.10, CUDA 12.8"


def test_paths_that_differ_and_pairs_without_peer_access(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [StandInGpu(16, [17, 17]), StandInGpu(17, [16, 16]), StandInGpu(18, root=1)]
    view = gpu_paths(["n1"], inventory(pair, monkeypatch, peers=False))
    assert view.title == (
        "3 GPUs on n1: SYS between 2 pairs, NV2 between 1 pair; no peer access on 3 pairs: the chipset does not "
        "support it"
    )
    assert view.rows[0][3:5] == ("NV2, no peer access", "SYS, no peer access")
    assert gpu_paths(["n1"], inventory([StandInGpu(16)], monkeypatch)).title == "1 GPU on n1"


def cells(nodes: dict[str, list[dict[str, Any]]], device: str = "cuda") -> Cells:
    rows = pd.DataFrame(
        [{"launch_id": launch, "environment_key": launch, "started_at": launch, "device": device} for launch in nodes]
    )
    none = pd.DataFrame()
    return Cells(Path("store"), rows, none, none, none, lambda launch: {"node_facts": nodes[launch]})


def test_nodes_that_are_alike_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    two, four = (inventory(joined_by_switches(count), monkeypatch) for count in (2, 4))
    nodes = [{"host": "n1", "gpus": two}, {"host": "n2", "gpus": two}, {"host": "n3", "gpus": four}]
    titles = [shown.view.title for shown in gpu_paths_of(cells({"a": nodes, "b": nodes[:1]})) if shown.view]
    assert titles == ["NV18 between all pairs of 2 GPUs on n1, n2", "NV18 between all pairs of 4 GPUs on n3"]
    assert list(gpu_paths_of(cells({"a": nodes}, device="cpu"))) == []


def test_a_launch_that_could_not_ask_says_why() -> None:
    why = "nvidia-ml-py is not installed: pip install nvidia-ml-py (the extra nvml)"
    (shown,) = gpu_paths_of(cells({"a": [{"host": "n1", "gpus": {"unknown": why}}, {"host": "n2"}]}))
    assert shown.view is not None and shown.view.title == f"The paths between GPUs of n1 are unknown: {why}"
