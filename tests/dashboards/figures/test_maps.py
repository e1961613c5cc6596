"""Maps: ratios, guidelines and pairs of nodes."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pandas as pd
import pytest

from omb_py.dashboards.figures.maps import guidelines, pairs, ratio_map
from tests.support.plotly_figures import plotly_figure


def _cell(benchmark: str, ranks: int, size: int, ratio: float, verdict: str = "", launches: int = 5) -> dict[str, Any]:
    key = {"benchmark": benchmark, "comparability_key": f"{benchmark}-{ranks}-{size}", "ranks": ranks}
    times = {"base_us": 1.0, "new_us": ratio, "launches_base": launches, "launches_new": 5}
    return {**key, **times, "size_bytes": size, "ratio": ratio, "verdict": verdict}


def test_a_benchmark_has_a_panel_and_what_is_slower_a_frame() -> None:
    rows = [_cell("bcast", 4, size, 0.95, "faster") for size in (4, 8)]
    rows += [_cell("reduce", ranks, size, 1.02) for ranks in (2, 4) for size in (4, 8)]
    rows[-1] |= {"ratio": 1.3, "new_us": 1.3, "verdict": "slower"}
    view = ratio_map(pd.DataFrame(rows), ("old", "new"))
    slower, other = view.spec["data"]
    assert (slower["name"], other["name"]) == ("reduce", "bcast"), "the slower first"
    assert [[round(2**value, 2) for value in row] for row in slower["z"]] == [[1.02, 1.02], [1.02, 1.3]]
    (frame,) = view.spec["layout"]["shapes"]
    assert (frame["xref"], frame["yref"]) == ("x", "y")
    assert set(frame["path"].split("M")[1:]) == {
        "0.5,0.5L0.5,1.5",
        "1.5,0.5L1.5,1.5",
        "0.5,0.5L1.5,0.5",
        "0.5,1.5L1.5,1.5",
    }
    assert [note["text"] for note in view.spec["layout"]["annotations"]] == ["<b>reduce</b> 1.3× slower", "bcast"]
    assert view.cells[0][1] == ["/reduce-4-4", "/reduce-4-8"], "a click leads to the cell"
    scale = plotly_figure(view).layout.coloraxis
    assert scale.cmax == pytest.approx(math.log2(1.3)) and scale.colorbar.ticktext[-1] == "1.3× slower"


def test_the_scale_says_that_cells_lie_beyond_its_end() -> None:
    rows = [_cell("late", 2, 8, 4.1, "slower"), _cell("late", 2, 64, 1.0)]
    scale = plotly_figure(ratio_map(pd.DataFrame(rows), ("a", "b"))).layout.coloraxis
    assert scale.cmax == 1.0 and scale.colorbar.ticktext == ("≥ 2× faster", "same", "≥ 2× slower")


def test_of_many_benchmarks_the_slower_are_drawn_and_all_are_listed() -> None:
    rows = [_cell(f"b{number:02}", 2, 8, 1.0) for number in range(20)] + [_cell("late", 2, 8, 1.4, "slower")]
    view = ratio_map(pd.DataFrame(rows), ("old", "new"))
    assert view.spec["data"][0]["name"] == "late" and len(view.spec["data"]) == 12 and len(view.rows) == 21
    assert view.notes[-1] == "Drawn: 12 of 21 benchmarks, those with slower cells first."


def test_panels_stay_apart_on_a_desk_and_on_a_phone() -> None:
    rows = [_cell(f"b{number}", ranks, 8, 1.0) for number in range(6) for ranks in (2, 4, 8)]
    layout = ratio_map(pd.DataFrame(rows), ("old", "new")).spec["layout"]
    for wanted in (layout, layout["meta"]["narrow"]):
        names = ["", *map(str, range(2, 7))]
        at = [(wanted[f"xaxis{n}"]["domain"], wanted[f"yaxis{n}"]["domain"]) for n in names]
        for (x, y), (other_x, other_y) in combinations(at, 2):
            assert x[1] < other_x[0] or y[0] > other_y[1], "to the right, or below"


def test_guidelines_leave_blank_what_holds() -> None:
    found = pd.DataFrame(
        {
            "guideline": ["a ≤ b", "a ≤ b", "c ≤ d"],
            "size_bytes": [8, 1024, 8],
            "ratio": [3.19, 1.05, 1.5],
            "violated": [True, False, False],
            "advice": ["force the other algorithm", "", ""],
        }
    )
    view = guidelines(found)
    assert view.title == "1 violation of 2 guidelines; the worst: a ≤ b, 3.19× at 8 B"
    assert view.spec["data"][0]["z"] == [[3.19, None], [1.5, None]]
    assert view.spec["data"][0]["text"] == [["3.19", ""], ["1.50?", ""]]
    assert "a ≤ b: force the other algorithm" in view.notes


def test_only_guidelines_with_something_to_see_are_drawn() -> None:
    names = ["a ≤ b"] * 2 + ["c ≤ d"] * 2
    found = pd.DataFrame({"guideline": names, "size_bytes": [8, 64] * 2, "ratio": [1.0, 2.0, 0.9, 1.05]})
    view = guidelines(found.assign(violated=[False, True, False, False]))
    (drawn,) = view.spec["data"]
    assert drawn["y"] == ["a<br>≤ b"] and drawn["z"] == [[None, 2.0]] and len(view.rows) == 4
    assert view.notes == ("Not drawn: 1 guideline with no longer left side at any size; the table has all.",)
    held = guidelines(found[2:].assign(violated=False))
    assert held.spec is None and held.title == "0 violations of 1 guideline"


def test_the_slow_link_of_a_pair_matrix() -> None:
    links = pd.DataFrame(
        [
            (a, b, 5.0 if (a, b) == ("n2", "n0") else 10.0, "GB/s")
            for a in ("n0", "n1", "n2")
            for b in ("n0", "n1", "n2")
            if a != b
        ],
        columns=["source", "target", "value", "unit"],
    )
    view = pairs(links, {"n2 - n0": "confirmed"})
    assert view.title == "n2 → n0 is the slowest of 6 links, at 50 % of the median"
    assert view.spec["data"][0]["z"][2] == [50.0, 100.0, None]
    assert view.notes[1:] == ("n2 - n0: confirmed",)


def test_nodes_stand_in_the_order_of_their_numbers() -> None:
    names = ["node10", "node2", "node1"]
    links = [(a, b, 1.0, "GB/s") for a in names for b in names if a != b]
    view = pairs(pd.DataFrame(links, columns=["source", "target", "value", "unit"]))
    assert view.spec["data"][0]["x"] == ["node1", "node2", "node10"]
