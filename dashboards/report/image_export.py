"""Pictures of views: an installed browser prints the report's page of one view."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omb_py.dashboards.base import series
from omb_py.dashboards.base.view import View
from omb_py.dashboards.figures import curves
from omb_py.dashboards.report.html_page import alone
from omb_py.errors import EnvironmentProblem
from omb_py.results.store.schema import COLUMNS

FORMS = ("png", "pdf")
BROWSERS = tuple(
    "chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge headless_shell".split()
)
VARIABLE = "BROWSER_PATH"
"""Environment variable that names another browser."""
PATIENCE_S = 60
"""Seconds that a browser may take."""
_WIDTH, _MARGIN, _LINE, _LETTERS = 1000, 60, 22, 100
"""Width of a picture, its free margin and the height of a line of text in pixels; letters of a line."""
_FLAGS = tuple(
    (
        "--headless --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
        "--disable-sync --disable-dev-shm-usage --hide-scrollbars --no-pdf-header-footer "
        "--virtual-time-budget=8000 --force-device-scale-factor=2"
    ).split()
)


def browser() -> str:
    """Find the path of a browser that can print a page.

    Raises:
        EnvironmentProblem: there is none; the text says what to install.
    """
    named = os.environ.get(VARIABLE)
    executable = next((path for name in ((named,) if named else BROWSERS) if (path := shutil.which(name))), None)
    if executable is None:
        why = f"{VARIABLE}={named} is no program" if named else "no Chromium or Chrome is on the PATH"
        raise EnvironmentProblem(
            f"a picture is drawn by a browser, and {why}: apt-get install chromium, or set {VARIABLE}; "
            "-G tty needs none"
        )
    return executable


def save(view: View, path: Path) -> None:
    """Write a view to ``path.png`` or ``path.pdf``, with its title and caption.

    Args:
        view: a view with a figure.
        path: file to write; its ending is one of :data:`FORMS`.

    Raises:
        EnvironmentProblem: there is no browser, it draws nothing, or the file cannot be written.
    """
    program = browser()
    texts = (view.title, view.caption, *view.notes)
    lines = sum(-(-len(text) // _LETTERS) for text in texts)
    height = int((view.spec or {"layout": {}})["layout"].get("height", 380)) + _MARGIN + _LINE * lines
    with tempfile.TemporaryDirectory(prefix="omb-py-") as folder:
        page = Path(folder) / "page.html"
        page.write_text(alone(view), encoding="utf-8")
        drawn = Path(folder) / f"drawn{path.suffix}"
        option = f"--print-to-pdf={drawn}" if path.suffix == ".pdf" else f"--screenshot={drawn}"
        command = [program, *_FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={_WIDTH},{height}", option]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # as root, Chromium starts only without its sandbox
        try:
            done = subprocess.run(
                [*command, page.as_uri()], capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EnvironmentProblem(f"{program} drew nothing: {error}") from error
        if not drawn.is_file() or not drawn.stat().st_size:
            reason = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
            raise EnvironmentProblem(f"{program} drew nothing: {reason}")
        try:
            shutil.move(drawn, path)
        except OSError as error:
            raise EnvironmentProblem(f"cannot write {path}: {error.strerror}") from error


def views_of(rows: Sequence[Mapping[str, Any]]) -> list[View]:
    """Draw the curves of measured rows as the printers hold them; views that have only a table are left out."""
    import pandas as pd

    frame = pd.DataFrame([dict(row) for row in rows])
    frame["started_at"] = pd.to_datetime(frame["started_at"], utc=True)
    frame["date"] = frame["started_at"].dt.strftime("%Y-%m-%d")
    nullable: Mapping[str, str] = {"int32": "Int32", "int64": "Int64", "bool": "boolean", "float64": "float64"}
    kinds = {c.name: nullable[c.kind] for c in COLUMNS if c.kind in nullable and c.name in frame}
    frame = series.prepared(frame.astype(kinds))
    views = [curves.curves(part, name) for name, part in series.panels(frame)]
    return [view for view in views if view.spec is not None]
