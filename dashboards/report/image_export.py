"""Pictures of views: an installed browser prints the report's page of one view."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from omb_py.dashboards.base import series
from omb_py.dashboards.base.theme import Facts, Layout
from omb_py.dashboards.base.view import View, table
from omb_py.dashboards.figures import curves
from omb_py.dashboards.report.html_page import figure_page, plotly_script
from omb_py.errors import EnvironmentProblem
from omb_py.printing.whole_file import write_whole
from omb_py.results.store.schema import COLUMNS

BROWSERS = tuple(
    "chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge headless_shell".split()
)
VARIABLE = "BROWSER_PATH"
"""Environment variable that names another browser."""
PATIENCE_S = 60
"""Seconds that a browser may take."""
_FLAGS = tuple(
    (
        "--headless --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
        "--disable-sync --disable-dev-shm-usage --hide-scrollbars --no-pdf-header-footer "
        "--virtual-time-budget=8000 --force-device-scale-factor=2"
    ).split()
)


def browser(otherwise: str = "-G tty needs none") -> str:
    """Find the path of a browser that can print a page. Raises EnvironmentProblem where there is none: the text says
    what to install, and `otherwise` what to do without one."""
    named = os.environ.get(VARIABLE)
    executable = next((path for name in ((named,) if named else BROWSERS) if (path := shutil.which(name))), None)
    if executable is None:
        why = f"{VARIABLE}={named} is no program" if named else "no Chromium or Chrome is on the PATH"
        raise EnvironmentProblem(
            f"a picture is drawn by a browser, and {why}: apt-get install chromium, or set {VARIABLE}; {otherwise}"
        )
    return executable


def check_drawable() -> None:
    """Check that pictures can be drawn, before anything is measured. Raises EnvironmentProblem."""
    browser()
    plotly_script()


def save(view: View, path: Path) -> None:
    """Write a view with a figure as :func:`save_figure` does, with its title and caption."""
    from omb_py.dashboards.report.picture import SIZES, Picture  # only a picture needs the parts of a report

    save_figure(Picture(view, (), SIZES["slide"], table((), ())).spec("light"), path)


def save_figure(spec: Layout, path: Path) -> None:
    """Write a figure that holds all its texts, with template, width and height, to ``path.png``, ``path.pdf`` or
    ``path.svg``. Raises EnvironmentProblem: no browser, it draws nothing, or the file cannot be written."""
    layout = spec["layout"]
    drawn = _printed(figure_page(spec), path.suffix, layout["width"], layout["height"])
    if path.suffix == ".svg":
        held = re.search(rb'<pre id="svg" hidden="">([A-Za-z0-9+/=]+)</pre>', drawn)
        if held is None:
            raise EnvironmentProblem(f"{browser()} drew nothing: its page holds no figure")
        drawn = base64.b64decode(held[1])
    write_whole(path, drawn)


def _printed(page: str, suffix: str, width: int, height: int) -> bytes:
    """What a browser makes of a page: a screenshot, a PDF, or for ``.svg`` the page after its scripts have run."""
    program = browser()
    with tempfile.TemporaryDirectory(prefix="omb-py-") as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        drawn = Path(folder) / f"drawn{suffix}"
        options = {".pdf": f"--print-to-pdf={drawn}", ".svg": "--dump-dom"}
        command = [program, *_FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        command += [options.get(suffix, f"--screenshot={drawn}")]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # as root, Chromium starts only without its sandbox
        try:
            done = subprocess.run([*command, file.as_uri()], capture_output=True, timeout=PATIENCE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentProblem(f"{program} drew nothing: {error}") from error
        content = done.stdout if suffix == ".svg" else drawn.read_bytes() if drawn.is_file() else b""
        if not content:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            raise EnvironmentProblem(f"{program} drew nothing: {(lines or [f'it ended with {done.returncode}'])[-1]}")
        return content


def views_of(rows: Sequence[Facts]) -> list[View]:
    """Draw the curves of measured rows as the printers hold them; views that have only a table are left out."""
    frame = pd.DataFrame([dict(row) for row in rows])
    frame["started_at"] = pd.to_datetime(frame["started_at"], format="ISO8601", utc=True)
    frame["date"] = frame["started_at"].dt.strftime("%Y-%m-%d")
    nullable: Mapping[str, str] = {"int32": "Int32", "int64": "Int64", "bool": "boolean", "float64": "float64"}
    kinds = {c.name: nullable[c.kind] for c in COLUMNS if c.kind in nullable and c.name in frame}
    frame = series.prepared(frame.astype(kinds))
    views = [curves.curves(panel) for panel in series.panels(frame)]
    return [view for view in views if view.spec is not None]
