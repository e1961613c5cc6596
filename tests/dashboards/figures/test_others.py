from __future__ import annotations

import pandas as pd
import pytest

from omb_py.dashboards.figures import others


def test_history_has_a_line_where_the_environment_changed() -> None:
    points = pd.DataFrame(
        {
            "started_at": pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-03"]),
            "median_us": [2.0, 1.0, 3.0],
            "environment_key": ["a", "a", "b"],
            "level_us": [1.5, 1.5, 3.0],
        }
    )
    view = others.history(points, "bw 8 B")
    assert view.title == "bw 8 B: 1 step"
    assert view.spec["data"][0]["y"] == [1.0, 2.0, 3.0] and view.spec["data"][1]["y"] == [1.5, 1.5, 3.0]
    (line,) = view.spec["layout"]["shapes"]
    assert line["x0"].startswith("2026-01-03")
    view.figure  # noqa: B018


def test_a_model_and_what_it_leaves() -> None:
    measured = pd.DataFrame({"size_bytes": [8, 16, 32], "median_us": [1.8, 2.6, 8.4]})
    parts = pd.DataFrame(
        {"low_bytes": [8, 32], "high_bytes": [16, 64], "alpha_us": [1.0, 4.0], "beta_us_per_byte": [0.1, 0.1]}
    )
    view = others.model(measured, parts, "latency")
    assert view.title == "latency: 2 segments, at most 16.7 % off the fit"
    assert view.spec["data"][1]["y"] == pytest.approx([1.8, 2.6])
    assert [row[2] for row in view.rows] == pytest.approx([0, 0, 100 * (8.4 / 7.2 - 1)])
    assert "0.01 GB/s" in view.caption
    view.figure  # noqa: B018


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
    view = others.pairs(links, {"n2 - n0": "confirmed"})
    assert view.title == "n2 → n0 is the slowest of 6 links, at 50 % of the median"
    assert view.spec["data"][0]["z"][2] == [50.0, 100.0, None]
    assert view.notes[1:] == ("n2 - n0: confirmed",)
    view.figure  # noqa: B018


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
    view = others.guidelines(found)
    assert view.title == "1 violation of 2 guidelines; the worst: a ≤ b, 3.19× at 8 B"
    assert view.spec["data"][0]["z"] == [[3.19, None], [1.5, None]]
    assert view.spec["data"][0]["text"] == [["3.19", ""], ["1.50?", ""]]
    assert "a ≤ b: force the other algorithm" in view.notes
    view.figure  # noqa: B018


def test_only_guidelines_with_something_to_see_are_drawn() -> None:
    names = ["a ≤ b"] * 2 + ["c ≤ d"] * 2
    found = pd.DataFrame({"guideline": names, "size_bytes": [8, 64] * 2, "ratio": [1.0, 2.0, 0.9, 1.05]})
    view = others.guidelines(found.assign(violated=[False, True, False, False]))
    (drawn,) = view.spec["data"]
    assert drawn["y"] == ["a<br>≤ b"] and drawn["z"] == [[None, 2.0]] and len(view.rows) == 4
    assert view.notes == ("Not drawn: 1 guideline with no longer left side at any size; the table has all.",)
    held = others.guidelines(found[2:].assign(violated=False))
    assert held.spec is None and held.title == "0 violations of 1 guideline"


def test_nodes_stand_in_the_order_of_their_numbers() -> None:
    names = ["node10", "node2", "node1"]
    pairs = [(a, b, 1.0, "GB/s") for a in names for b in names if a != b]
    view = others.pairs(pd.DataFrame(pairs, columns=["source", "target", "value", "unit"]))
    assert view.spec["data"][0]["x"] == ["node1", "node2", "node10"]


def test_only_what_differs_between_environments() -> None:
    view = others.environment(
        {
            "A": {"software": {"ucx": "1.17", "python": "3.12"}},
            "B": {"software": {"ucx": "1.18", "python": "3.12"}, "env": {"X": "1"}},
        }
    )
    assert view.rows == (("env", "X", "-", "1"), ("software", "ucx", "1.17", "1.18"))
    assert view.title == "2 facts differ between A, B: ucx, X"
    with pytest.raises(ValueError, match="only a table"):
        view.figure  # noqa: B018
