"""What the explorer costs on a store of a million cells: ``python -m tests.lab.results.explorer_costs [--launches 5000]``.

Builds the store of :mod:`tests.lab.results.scale` (or takes ``--store DIR``), reads it once so that the summary index is there,
and then measures in a fresh process: reading, its largest memory, each view unfiltered, the drawer of a cell, the
choices of the filters, a block of the table; and where there is a Chromium, the first figure of a page that nobody
has opened before. All are seconds of processor time (user and system, of all threads), of the browser those of the page's
main thread: they depend little on what else runs. Prints them with their bars; exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.app import make
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, choices, drawer, views
from tests.lab.results import scale
from tests.support.browser import chromium, missing, until
from tests.support.explorer_server import listening

MEMORY_MB, VIEW_S, COLD_S = 1000.0, 0.5, 1.5
FIRST = "return document.querySelectorAll('#figures .main-svg').length"
PATIENCE_S = 300.0

Row = tuple[str, float, str, float | None]
"""What was measured, its value, unit and bar."""


def spent(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def memory_mb() -> float:
    """The largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def measured(store: Path) -> Iterator[Row]:
    """Everything, in this process."""
    start = time.process_time()
    data = Data(store)
    app = make(data, refresh_ms=3_600_000)  # as the command does, before it says where to look
    yield f"reading {len(data.frame)} cells", time.process_time() - start, "s", None
    first, _ = views(data, State("curves"))
    for name in choices()["view"]:
        drawn: list[Any] = []
        cpu = spent(lambda name=name, drawn=drawn: drawn.extend(views(data, State(name))[0]))  # type: ignore[misc]
        yield f"view {name}, {len(drawn)} figures", cpu, "s", VIEW_S
    cell = next(name for names in first[0].cells.values() for name in names if name)
    yield "drawer of a cell", spent(lambda: drawer(data, cell)), "s", None
    filters = {"benchmark": ["allreduce"], "ranks": ["4"]}
    yield "choices of the filters", spent(lambda: data.choices(filters)), "s", VIEW_S
    block = {"startRow": 0, "endRow": grid.BLOCK}
    yield "a block of the table", spent(lambda: grid.answer(data.select(filters), block)), "s", VIEW_S
    if missing():
        print(f"(no page was opened: {missing()})")
    else:
        yield from opened(app)
    yield "largest memory", memory_mb(), "MB", MEMORY_MB


def opened(app: Any) -> Iterator[Row]:
    """The first page, of a browser with an empty cache."""
    with (
        listening(app.server) as address,
        tempfile.TemporaryDirectory() as profile,
        chromium(Path(profile)) as driver,
    ):
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        before = time.process_time()
        driver.get(f"{address}?view=curves")
        until(lambda: driver.execute_script(FIRST) > 0, True, PATIENCE_S)
        metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        server = time.process_time() - before
    page = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
    yield "first figure, server", server, "s", None
    yield "first figure, page", page, "s", None
    yield "first figure, both", server + page, "s", COLD_S


def main() -> int:
    """Build, index, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=5000, help="of 200 cells each")
    parser.add_argument("--store", type=Path, help="a store that is there")
    parser.add_argument("--measure", action="store_true", help="only measure, in this process")
    chosen = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    if not chosen.measure:
        with tempfile.TemporaryDirectory() as scratch:
            store = chosen.store or Path(scratch)
            if chosen.store is None:
                scale.build(store, chosen.launches, 30)
                time.sleep(2.5)  # younger files are not indexed
                subprocess.run([sys.executable, "-c", f"import omb_py; omb_py.load({str(store)!r}, columns=['value'])"])
            return subprocess.run([sys.executable, "-m", __spec__.name, "--measure", "--store", str(store)]).returncode
    missed = 0
    print("| | processor s | bar |\n|---|--:|--:|")
    for what, value, unit, bar in measured(chosen.store):
        over = bar is not None and value > bar
        missed += over
        said = "" if bar is None else f"{bar:g} {unit}{' MISSED' if over else ''}"
        print(f"| {what} | {value:.2f}{'' if unit == 's' else ' ' + unit} | {said} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
