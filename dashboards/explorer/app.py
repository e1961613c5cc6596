"""The Dash application: controls, figures, table, downloads; all of it a function of the URL."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.guard import content_policy, guard
from omb_py.dashboards.report.html_page import asset
from omb_py.distribution import pip_install
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:
    from dash import Dash

SCRIPTS = ("legend.js", "explorer.js")
"""Scripts of the page; the report has the first as well."""
REFRESH_MS = 5000
"""Milliseconds between two looks for new launches in the store."""
GZIP_LEVEL = 3
"""Level 6 takes twice the processor time of the first page for a tenth less to send."""


def make(data: Data, token: str = "", refresh_ms: int = REFRESH_MS) -> Dash:
    """The application over some data; with a token only for whoever has it. It looks for new launches every
    `refresh_ms` milliseconds. Raises EnvironmentProblem where Dash or waitress is not installed."""
    try:
        import dash_ag_grid  # noqa: F401
        import waitress  # noqa: F401
        from dash import Dash
    except ImportError as error:
        install = pip_install("dashboard")
        raise EnvironmentProblem(
            f"the dashboard needs {error.name or 'dash'}, which is not installed: {install}"
        ) from error
    from omb_py.dashboards.explorer.callbacks import ExplorerCallbacks
    from omb_py.dashboards.explorer.request_types import is_request

    import_module("scipy.special")  # else the first who looks at what changed waits for it
    page = asset("explorer.html")
    for name in SCRIPTS:
        page = page.replace(f"/* {name} */", asset(name))
    app = Dash(
        "omb_py_dashboard",
        title="omb-py",
        update_title="",
        serve_locally=True,
        assets_folder="no-assets",
        index_string=page,
        suppress_callback_exceptions=True,
        compress=find_spec("flask_compress") is not None,  # comes with the optional dashboard packages
    )
    app.server.config["COMPRESS_LEVEL"] = GZIP_LEVEL
    guard(app.server, token, lambda: content_policy(app), lambda body: is_request(body, app.callback_map))
    ExplorerCallbacks(data, refresh_ms).register(app)
    return app
