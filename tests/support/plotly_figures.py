"""Figures of views as Plotly's own objects."""

from __future__ import annotations

import plotly.graph_objects as go

from omb_py.dashboards.base import theme as style
from omb_py.dashboards.base.view import View


def plotly_figure(view: View, theme: str = "light") -> go.Figure:
    """The figure of a view in one of :data:`omb_py.dashboards.base.theme.THEMES`; Plotly refuses one that is wrong."""
    assert view.spec is not None, view.kind
    return go.Figure(view.spec).update_layout(template=style.template(theme))
