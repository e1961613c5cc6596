"""Take the pictures of report and explorer that the documents show: ``python -m tests.lab.results.pictures``.

The store is made up (:mod:`tests.support.gpu_store`). Needs chromium and chromedriver. Look at what it writes to docs/.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from omb_py.cli import main as omb_py
from tests.support.browser import chromium, missing, resize, until
from tests.support.explorer_server import served
from tests.support.gpu_store import write

DOCS = Path(__file__).parents[3] / "docs"
BENCHMARKS = ("allreduce", "allgather", "alltoall", "bcast")
DRAWN = "return [...document.querySelectorAll('.main-svg')].some((figure) => figure.getBoundingClientRect().height > 0)"


def take_report(driver: Any, store: Path) -> None:
    """The first screen, wide and on a phone."""
    page = Path("report.html").absolute()
    omb_py(["report", str(store), "-o", page.name])
    for width, height in ((1440, 1290), (390, 1700)):
        resize(driver, width, height)
        driver.get(page.as_uri())
        until(lambda: driver.execute_script(DRAWN), True)
        driver.save_screenshot(str(DOCS / f"first-screen-{width}.png"))


def take_explorer(driver: Any, store: Path) -> None:
    """The view that the explorer opens with."""
    resize(driver, 1440, 1130)
    with served(store) as address:
        driver.get(address)
        until(lambda: driver.execute_script(DRAWN), True)
        driver.save_screenshot(str(DOCS / "explorer-1440.png"))


def main() -> int:
    if missing():
        print(missing(), file=sys.stderr)
        return 3
    store = Path("omb-results")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write(store, benchmarks=BENCHMARKS)
        with chromium(Path(folder) / "profile") as driver:
            take_report(driver, store)
            take_explorer(driver, store)
    return 0


if __name__ == "__main__":
    sys.exit(main())
