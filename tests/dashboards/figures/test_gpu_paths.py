"""The table of a node's GPUs and the view that chooses launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.views.cells import Cells
from omb_py.dashboards.views.checks import gpu_paths_of
from omb_py.dashboards.views.overview import gpu_paths
from omb_py.engine.devices import nvml
from tests.support.machines.nvml import StandInGpu, StandInNvml, joined_by_switches


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
