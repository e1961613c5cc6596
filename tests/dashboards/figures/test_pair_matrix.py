from __future__ import annotations

import pandas as pd

from omb_py.dashboards.figures.maps import pairs


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
    view.figure  # noqa: B018


def test_nodes_stand_in_the_order_of_their_numbers() -> None:
    names = ["node10", "node2", "node1"]
    links = [(a, b, 1.0, "GB/s") for a in names for b in names if a != b]
    view = pairs(pd.DataFrame(links, columns=["source", "target", "value", "unit"]))
    assert view.spec["data"][0]["x"] == ["node1", "node2", "node10"]
