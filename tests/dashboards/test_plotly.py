"""Every view in the plotly that is installed; ``make test-plotly`` runs this with the oldest and the newest."""

from __future__ import annotations

import json

import plotly
import pytest

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.report.html_page import plotly_script
from tests.support.plotly_figures import plotly_figure
from tests.support.tiers import few_quick


def test_the_version_is_one_that_is_admitted() -> None:
    major, minor = map(int, plotly.__version__.split(".")[:2])
    assert (6, 1) <= (major, minor) < (8, 0)
    assert "plotly.js v" in plotly_script()[:200]


@pytest.mark.slow
@pytest.mark.parametrize("theme", few_quick(style.THEMES))
def test_every_view_is_valid_and_keeps_its_numbers(every_view, theme: str) -> None:
    drawn = [view for view in every_view if view.spec is not None]
    assert {view.kind for view in every_view} - {view.kind for view in drawn} == {"environment"}
    for view in drawn:
        figure = json.loads(plotly_figure(view, theme).to_json())
        assert len(figure["data"]) == len(view.spec["data"])
        for made, given in zip(figure["data"], view.spec["data"], strict=True):
            assert made["type"] == given["type"]
            for axis in ("x", "y", "z"):
                if axis in given and isinstance(made[axis], list):
                    assert made[axis] == json.loads(json.dumps(given[axis]))
        assert (
            figure["layout"]["template"]["layout"]["paper_bgcolor"] == style.template(theme)["layout"]["paper_bgcolor"]
        )
