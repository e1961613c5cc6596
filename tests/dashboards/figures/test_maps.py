"""Maps: ratios, guidelines and pairs of nodes."""

from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.figures.maps import guidelines, pairs, ratio_map


@pytest.mark.parametrize(("sizes", "written", "on_a_phone"), [(10, 10, 10), (13, 13, 0), (15, 0, 0)])
def test_ratios_are_written_where_there_is_room(sizes: int, written: int, on_a_phone: int) -> None:
    rows = [
        {
            "benchmark": "allreduce",
            "comparability_key": f"k{at}",
            "ranks": 4,
            "size_bytes": 4 << at,
            "ratio": 1.3,
            "verdict": "slower",
            "base_us": 1.0,
            "new_us": 1.3,
            "launches_base": 5,
            "launches_new": 5,
        }
        for at in range(sizes)
    ]
    view = ratio_map(pd.DataFrame(rows), ("old", "new"))
    assert view.spec is not None
    layout = view.spec["layout"]
    assert len(layout["annotations"]) == written
    narrow = {**layout, **layout["meta"]["narrow"]}
    assert len(narrow["annotations"]) == on_a_phone
    assert view.cells[1] == [[f"/k{at}" for at in range(sizes)]], "a click leads to the cell"


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
