"""What a machine should reach, in words and as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omb_py.orchestrate.info import expect
from tests.results.analysis.test_peaks import CARD, FABRIC, H100, row

NODE: dict[str, Any] = {**FABRIC, "gpus": {"gpus": [H100] * 8, "pairs": [{"path": "NV18"}] * 28}}


def test_every_link_is_listed_with_its_source() -> None:
    findings = expect.expected(NODE, {1 << 20: 12.5})
    assert [(f.what, round(f.peak.gbps, 2)) for f in findings] == [
        ("network 0000:18:00.0 ib0 mlx5_0", 31.51),
        ("port mlx5_0", 25.0),
        ("between nodes, each way", 25.0),
        ("between GPUs, each way", 450.0),
        ("busbw of allreduce, 8 GPUs", 460.0),
        ("copy of 1 MiB in memory", 12.5),
    ]
    text = expect.as_text(findings, [], Path("results"))
    assert "31.51 GB/s  PCIe 4 x16 (PCI Express Base Specification 4.0: 128b/130b)" in text
    assert "Azure" in text and "Reached" not in text


def test_a_narrow_link_is_named_below_its_line() -> None:
    findings = expect.expected({"pcie": [{**CARD, "width": 8, "slot_width": 8}]}, {})
    lines = expect.as_text(findings, [], Path("results")).splitlines()
    assert "PCIe 4 x8" in lines[0] and lines[1].strip() == "→ a card of x16 in a slot of x8: move it to a slot of x16"


def test_the_largest_share_of_each_kind_of_result_is_said() -> None:
    peak = {"peak.200 Gbit/s mlx5_0": 25.0}
    rows = [row(library="MPICH", size_bytes=size, value=rate, metrics=peak) for size, rate in ((8, 10.0), (4096, 2e4))]
    rows.append(row(library="MPICH", size_bytes=1, metrics={}))
    (best,) = expect.reached(rows)
    assert (best.size_bytes, best.gbps, best.share, best.link) == (4096, 20.0, 0.8, "200 Gbit/s mlx5_0")
    last = expect.as_text([], [best], Path("results")).splitlines()[-1]
    assert last == "bw MPICH 2 ranks, 4 KiB     20.00 GB/s  80% of 200 Gbit/s mlx5_0"


def test_data_hold_every_published_figure() -> None:
    data = json.loads(json.dumps(expect.as_json(expect.expected(NODE, {}), [])))
    assert {entry["gpu"] for entry in data["published"]["busbw"]} >= {"A100", "H100", "MI300X"}
    assert data["expected"][0]["peak"]["source"]


def test_a_copy_is_between_places_that_no_processor_takes_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where source and target begin 16 bytes apart within their pages, a copy of 64 KiB took ten times as long."""
    apart = set()

    def copyto(target: NDArray[np.uint8], source: NDArray[np.uint8]) -> None:
        apart.add((target.ctypes.data - source.ctypes.data) % 4096)

    monkeypatch.setattr(np, "copyto", copyto)
    monkeypatch.setattr(expect, "_COPY_NS", 0)
    assert list(expect.copy_rates([64 << 10, 1 << 20])) == [64 << 10, 1 << 20]
    assert apart == {2048}
