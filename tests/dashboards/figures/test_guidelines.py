from __future__ import annotations

import pandas as pd

from omb_py.dashboards.figures.maps import guidelines


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
    view.figure  # noqa: B018


def test_only_guidelines_with_something_to_see_are_drawn() -> None:
    names = ["a ≤ b"] * 2 + ["c ≤ d"] * 2
    found = pd.DataFrame({"guideline": names, "size_bytes": [8, 64] * 2, "ratio": [1.0, 2.0, 0.9, 1.05]})
    view = guidelines(found.assign(violated=[False, True, False, False]))
    (drawn,) = view.spec["data"]
    assert drawn["y"] == ["a<br>≤ b"] and drawn["z"] == [[None, 2.0]] and len(view.rows) == 4
    assert view.notes == ("Not drawn: 1 guideline with no longer left side at any size; the table has all.",)
    held = guidelines(found[2:].assign(violated=False))
    assert held.spec is None and held.title == "0 violations of 1 guideline"
