"""Speed of report and explorer: ``pytest tests/lab/speed/bench_report.py -m bench``. Not collected by default.

What a report costs: ``python -m tests.lab.results.report_costs``. Bars: the first paint of one of 10 000 cells under
1.5 s; a filter change over 1 000 000 cells in under 300 ms, in a process of under 1.5 GB.
"""

from __future__ import annotations

import itertools
import resource
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.explorer import grid
from omb_py.dashboards.explorer.data import Data
from omb_py.dashboards.explorer.state import State, views
from omb_py.dashboards.report.build import report
from omb_py.dashboards.report.html_page import page
from omb_py.results.store.schema import BY_NAME
from tests.dashboards.stores import write
from tests.support.browser import chromium, missing

pytestmark = pytest.mark.bench
PAINTED = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
BENCHMARKS = ("allreduce", "allgather", "alltoall", "bcast", "reduce", "barrier_like", "gather", "scatter")


def cells_of(cell, count: int) -> pd.DataFrame:
    """So many cells: 8 benchmarks, 2 libraries, ranks 2 to 32, 20 sizes, and launches until there are enough."""
    rng = np.random.default_rng(0)
    rows = []
    made = itertools.product(range(count), BENCHMARKS, ("MPICH", "Open MPI"), (2, 4, 8, 16, 32), range(20))
    for launch, benchmark, library, ranks, power in itertools.islice(made, count):
        at = (1 + 2**power / 1000) * float(rng.lognormal(0, 0.03))
        name = f"{benchmark}-{library[0]}-{ranks}-{launch}"
        rows.append(
            cell(
                at,
                launch % 50,
                run_id=name,
                launch_id=name,
                benchmark=benchmark,
                library=library,
                ranks=ranks,
                size_bytes=2**power,
                comparability_key=f"{benchmark}{ranks}{power}",
                hosts=["n"] * ranks,
                rank_mean_us=[at] * ranks,
                slowest_rank_share=[1 / ranks] * ranks,
            )
        )
    return pd.DataFrame(rows)


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is one")
def test_the_first_paint_of_that_report(benchmark, cell, tmp_path: Path) -> None:
    """By the browser's own Paint Timing, from ``file://``; the figures in the window are drawn soon after."""
    file = tmp_path / "report.html"
    file.write_text(page(report(write(tmp_path / "s", cells_of(cell, 10_000)), StoreSelection())), encoding="utf-8")
    painted: list[float] = []
    with chromium(tmp_path / "profile") as driver:

        def opened() -> None:
            driver.get("about:blank")
            driver.get(file.as_uri())
            painted.append(driver.execute_script(PAINTED))

        benchmark.pedantic(opened, rounds=5, warmup_rounds=1)
        benchmark.extra_info["first_contentful_paint_ms"] = painted[1:]
    assert float(np.median(painted[1:])) < 1500


def test_a_filter_change_over_a_million_cells(benchmark, cell, tmp_path: Path) -> None:
    small = cells_of(cell, 1600)
    write(tmp_path / "s", small)
    data = Data(tmp_path / "s")
    frame = pd.concat([data.frame] * 625, ignore_index=True)
    texts = [name for name in frame if BY_NAME.get(name) and BY_NAME[name].kind in ("string", "texts")]
    data.frame = frame.assign(**{name: frame[name].astype("category") for name in texts})
    state = State(filters={"benchmark": ["allreduce"], "ranks": ["8"], "library": ["MPICH"]})

    def change() -> tuple[int, int]:
        made, _ = views(data, state)
        shown = grid.answer(data.select(state.filters), {"startRow": 0, "endRow": grid.BLOCK})
        return len(made), len(shown["rowData"])

    figures, shown = benchmark.pedantic(change, rounds=5, warmup_rounds=1)
    assert figures and shown == grid.BLOCK and benchmark.stats.stats.median < 0.3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1.5e6  # KiB
