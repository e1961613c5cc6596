"""The pictures of the docs: report and explorer of a store, 1280 and 390 pixels wide.

    python -m tests.lab.results.pictures --first --out docs/
    python -m tests.lab.results.pictures --store DIR --out build/pictures
    python -m tests.lab.results.pictures --store DIR --out build/pictures --every

With --first: first-screen-1440.png of the report, first-screen-390.png of the explorer, dark, and explorer-1440.png with
a cell in its drawer, of a store with planted faults, whose numbers are made up (:mod:`tests.support.planted_store`). Else it writes report-1280.png, report-390.png, explorer-1280.png, explorer-390.png; with --every the whole report and every view
of the explorer, light and dark, and the report as it is printed: for whoever looks at all of them after a change. Exit
code 1 where a text overlaps another or sticks out, or the browser's console has a word to say: such a picture is not
for showing.
"""

from __future__ import annotations

import argparse
import base64
import logging
import sys
import tempfile
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from omb_py.dashboards.base.reading import parse
from omb_py.dashboards.base.theme import THEMES
from omb_py.dashboards.explorer.state import choices
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from tests.support import planted_store
from tests.support.browser import DRAWN, OVERLAPS, chromium, draw_all, errors, resize, until
from tests.support.explorer_server import served

WIDTHS = (1280, 390)
REPORT_HEIGHT, EXPLORER_HEIGHT = 2400, 1900
"""Pixels that a picture shows of the page, from its top."""
FIRST_WIDTH, FIRST_HEIGHT = 1440, 1130
MOST_HEIGHT = 2600
"""Of a picture of one of all views."""


def shot(driver: Any, path: Path, height: int) -> list[str]:
    """Write what stands on the page down to `height`; what is wrong with it."""
    wrong = [*driver.execute_script(OVERLAPS), *errors(driver)]
    width = driver.execute_script("return window.innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    beyond = height > driver.execute_script("return window.innerHeight")
    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": beyond})
    path.write_bytes(base64.b64decode(made["data"]))
    print(f"{path}: {'; '.join(wrong) or 'fine'}", flush=True)
    return wrong


def drawn(driver: Any) -> None:
    """Wait until all figures and the grid are there."""
    until(lambda: driver.execute_script(DRAWN), True)
    if driver.execute_script("return window.innerHeight") >= 1500:
        rows = "return document.querySelectorAll('#cells [role=row] [role=gridcell]').length > 0"
        until(lambda: driver.execute_script(rows), True)
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def first(driver: Any, out: Path) -> list[str]:
    """The first screens of a planted store: of the report, and of the explorer on a phone."""
    wrong: list[str] = []
    out = out.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # the page names the store: by no path of this machine
        store, file = Path("planted"), Path("report.html").resolve()
        planted_store.write(store, 1)
        file.write_text(page(report(store, parse([]))), encoding="utf-8")
        resize(driver, FIRST_WIDTH)
        driver.get(file.as_uri())
        draw_all(driver)
        wrong += shot(driver, out / f"first-screen-{FIRST_WIDTH}.png", FIRST_HEIGHT)
        with served(store) as address:
            resize(driver, WIDTHS[1], FIRST_HEIGHT)
            driver.get(f"{address}?theme=dark")
            drawn(driver)
            wrong += shot(driver, out / f"first-screen-{WIDTHS[1]}.png", FIRST_HEIGHT)
            resize(driver, FIRST_WIDTH, FIRST_HEIGHT)
            changed = planted_store.faults(1).regression
            driver.get(f"{address}?view=curves&benchmark={changed}&ranks=16&theme=light")
            drawn(driver)
            driver.get(driver.execute_script(CELL))
            drawn(driver)
            wrong += shot(driver, out / f"explorer-{FIRST_WIDTH}.png", FIRST_HEIGHT)
    return wrong


CELL = """
const cells = document.querySelector('.js-plotly-plot').data.filter((trace) => trace.customdata).at(-1).customdata;
return location.href + '&cell=' + encodeURIComponent(cells[4]);
"""
"""The address of the explorer with a cell of the last curve in the drawer."""
HEIGHT = "return Math.ceil(document.documentElement.scrollHeight)"


def every(driver: Any, file: Path, store: Path, out: Path, views: Sequence[str]) -> list[str]:
    """The report and the views of the explorer at both widths in both themes, and the report on paper."""
    wrong: list[str] = []
    for width in WIDTHS:
        resize(driver, width)
        for theme in THEMES:
            driver.get(file.as_uri())
            driver.execute_script(f"if (document.documentElement.dataset.theme !== '{theme}') theme.click()")
            draw_all(driver)
            wrong += shot(driver, out / f"report-{width}-{theme}.png", driver.execute_script(HEIGHT))
    driver.get(file.as_uri())
    paper = driver.execute_cdp_cmd(
        "Page.printToPDF", {"printBackground": False, "paperWidth": 8.27, "paperHeight": 11.7}
    )
    (out / "report.pdf").write_bytes(base64.b64decode(paper["data"]))
    with served(store) as address:
        for width in WIDTHS:
            resize(driver, width)
            for view in views:
                for theme in THEMES:
                    driver.get("about:blank")
                    driver.get(f"{address}?view={view}&theme={theme}")
                    drawn(driver)
                    height = min(driver.execute_script(HEIGHT), MOST_HEIGHT)
                    wrong += shot(driver, out / f"explorer-{view}-{width}-{theme}.png", height)
    return wrong


def main(words: list[str] | None = None) -> int:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--first", action="store_true", help="the first screens of a planted store")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--query", default="?benchmark=allreduce", help="what the explorer shows")
    parser.add_argument("--height", type=int, default=REPORT_HEIGHT, help="of the report's pictures, in pixels")
    parser.add_argument("--every", action="store_true", help="every view, light and dark")
    parser.add_argument(
        "--views", nargs="+", default=choices()["view"], help="with --every: only these of the explorer"
    )
    parser.add_argument("filters", nargs="*", help="COLUMN=VALUE, of the report")
    args = parser.parse_args(words)
    if (args.store is None) != args.first:
        parser.error("give --store DIR, or --first")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder) / "profile") as driver:
        if args.first:
            return 1 if first(driver, args.out) else 0
        file = Path(folder) / "report.html"
        file.write_text(page(report(args.store, parse(args.filters))), encoding="utf-8")
        if args.every:
            args.out.mkdir(parents=True, exist_ok=True)
            return 1 if every(driver, file, args.store, args.out, args.views) else 0
        for width in WIDTHS:
            resize(driver, width)
            driver.get(file.as_uri())
            draw_all(driver)
            wrong += shot(driver, args.out / f"report-{width}.png", args.height)
        with served(args.store) as address:
            for width in WIDTHS:
                resize(driver, width, EXPLORER_HEIGHT)  # the grid draws what the window shows
                driver.get(address + args.query)
                drawn(driver)
                wrong += shot(driver, args.out / f"explorer-{width}.png", EXPLORER_HEIGHT)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
