from __future__ import annotations

import pytest

from omb_py.dashboards.views.overview import environment


def test_only_what_differs_between_environments() -> None:
    view = environment(
        {
            "A": {"software": {"ucx": "1.17", "python": "3.12"}},
            "B": {"software": {"ucx": "1.18", "python": "3.12"}, "env": {"X": "1"}},
        }
    )
    assert view.rows == (("env", "X", "-", "1"), ("software", "ucx", "1.17", "1.18"))
    assert view.title == "2 facts differ between A, B: ucx, X"
    with pytest.raises(ValueError, match="only a table"):
        view.figure  # noqa: B018
