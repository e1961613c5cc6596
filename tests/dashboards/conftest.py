"""Cells as the store gives them, without a store; stores that a suite, an acceptance and an import made."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from omb_py.cli import main
from omb_py.results.statistics.summary import summarise
from omb_py.results.store.schema import NAMES
from tests.dashboards.stores import ACCEPTANCE, OSU

SIZES = (8, 1024, 65536)


@pytest.fixture(scope="session")
def cell() -> Callable[..., dict[str, Any]]:
    """A row with plausible values; more by keyword. ``at`` is its median in µs."""

    def make(at: float = 2.0, launch: int = 0, **values: Any) -> dict[str, Any]:
        samples = at * np.exp(0.05 * np.sin(np.arange(1200) * 1.7 + launch))
        row: dict[str, Any] = dict.fromkeys(NAMES)
        row |= {
            "run_id": "r",
            "launch_id": f"r-{launch}",
            "launch_index": launch,
            "started_at": pd.Timestamp("2026-11-20T10:00:00", tz="UTC") + pd.Timedelta(hours=launch),
            "schema_version": 1,
            "source": "omb-py",
            "benchmark": "allreduce",
            "family": "collective",
            "backend": "mpi",
            "library": "MPICH",
            "library_version": "5.0.2",
            "binding": "native",
            "device": "cpu",
            "buffer": "numpy",
            "dtype": "int32",
            "op": "sum",
            "process_sync": "barrier",
            "timing": "local_max",
            "ranks": 4,
            "nodes": 1,
            "size_bytes": 8,
            "metric": "latency",
            "unit": "us",
            "value": at,
            "busbw_gbps": 1.5 / at,
            "algbw_gbps": 1.0 / at,
            "iterations": samples.size,
            "stop_reason": "count",
            "sync_limited": False,
            "samples_us": samples.astype(np.float32),
            "rank_mean_us": [at, at, at, 1.1 * at],
            "slowest_rank_share": [0.05, 0.05, 0.05, 0.85],
            "hosts": ["n0", "n0", "n1", "n1"],
            "tags": {},
            "parameters": {},
            "date": "2026-11-20",
            "comparability_key": f"k{values.get('size_bytes', 8)}",
            "environment_key": "e0",
            **summarise(samples),
        }
        return {**row, **values}

    return make


@pytest.fixture(scope="session")
def frame(cell: Callable[..., dict[str, Any]]) -> pd.DataFrame:
    """Two libraries, three sizes, three launches; Open MPI takes twice as long at 64 KiB and as long elsewhere."""
    rows = []
    for library, size, launch in itertools.product(("MPICH", "Open MPI"), SIZES, range(3)):
        factor = 2.0 if (library, size) == ("Open MPI", 65536) else 1.0
        number = launch + (3 if library == "Open MPI" else 0)
        rows.append(cell((1 + size / 1000) * factor, number, library=library, size_bytes=size))
    made = pd.DataFrame(rows)
    return made.astype({"size_bytes": "Int64", "ranks": "Int32", "sync_limited": "boolean", "validated": "boolean"})


@pytest.fixture(scope="session")
def step_cells(cell: Callable[..., dict[str, Any]]) -> pd.DataFrame:
    """Two layouts on two ranks, two launches each, and one of them on four ranks."""
    rows = []
    for number, (text, ranks, times) in enumerate(
        (
            ("ddp:model=mlp", 2, (400.0, 100.0, 300.0, 250.0)),
            ("ddp:model=mlp", 2, (400.0, 140.0, 320.0, 230.0)),
            ("zero:model=mlp", 2, (400.0, 400.0, 500.0, 450.0)),
            ("zero:model=mlp", 2, (400.0, 400.0, 500.0, 450.0)),
            ("ddp:model=mlp", 4, (400.0, 600.0, 900.0, 800.0)),
        )
    ):
        compute, exposed, serial, flight = times
        metrics = {"compute_us": compute, "exposed_us": exposed, "serial_us": serial, "flight_us": flight}
        rows.append(
            cell(
                compute + exposed,
                number,
                benchmark="step",
                family="workload",
                size_bytes=0,
                ranks=ranks,
                metrics=metrics,
                parameters={"workload": text},
                comparability_key=f"{text}{ranks}",
                run_id="steps",
                launch_id=f"s{number}",
            )
        )
    return pd.DataFrame(rows).astype({"size_bytes": "Int64", "ranks": "Int32"})


@pytest.fixture(scope="session")
def verdict_table() -> pd.DataFrame:
    """Four cells, one of each common verdict."""
    return pd.DataFrame(
        {
            "cell": ["allreduce 8 B", "allreduce 1 KiB", "bw <b>1 MiB</b>", "bcast 8 B"],
            "verdict": ["SAME", "SLOWER", "UNCLEAR", "FASTER"],
            "ratio": [1.0, 1.25, 1.04, 0.8],
            "low": [0.99, 1.2, 0.9, 0.75],
            "high": [1.01, 1.3, 1.2, 0.85],
            "base_us": [1.0, 2.0, 3.0, 4.0],
            "new_us": [1.0, 2.5, 3.12, 3.2],
            "launches_base": [10] * 4,
            "launches_new": [10] * 4,
            "detectable": [0.02] * 4,
        }
    )


@pytest.fixture(scope="session")
def every_view(frame: pd.DataFrame, verdict_table: pd.DataFrame, step_cells: pd.DataFrame) -> list[Any]:
    """One view of each kind, from cells whose names are markup."""
    from omb_py.dashboards.base import series
    from omb_py.dashboards.base.series import Panel
    from omb_py.dashboards.figures import comparison, curves, launches, models
    from omb_py.dashboards.figures.launches import history
    from omb_py.dashboards.figures.maps import guidelines, pairs
    from omb_py.dashboards.figures.models import model
    from omb_py.dashboards.figures.stragglers import stragglers
    from omb_py.dashboards.views.over_size import panels_over_count
    from omb_py.dashboards.views.overview import environment

    rows = series.prepared(
        frame.assign(library=frame["library"].replace("MPICH", "<b>MPICH</b><script>window.bad=1</script>"))
    )
    one = rows[rows["library"] == "Open MPI"]
    eight = one[one["size_bytes"] == 8]
    both = pd.concat([one, one.assign(ranks=8, median_us=one["median_us"] * 2)])
    nodes = ["n0", "n1", "n2"]
    links = pd.DataFrame(
        [(a, b, 9.0 + len(a + b) % 3, "GB/s") for a in nodes for b in nodes if a != b],
        columns=["source", "target", "value", "unit"],
    )
    segments = pd.DataFrame({"low_bytes": [8], "high_bytes": [65536], "alpha_us": [1.0], "beta_us_per_byte": [0.001]})
    found = pd.DataFrame(
        {
            "guideline": ["allgather ≤ alltoall"] * 2,
            "size_bytes": [8, 1024],
            "ratio": [1.3, 1.0],
            "violated": [True, False],
        }
    )
    made = [
        curves.curves(Panel(rows)),
        curves.curves(Panel(rows), quantity="busbw"),
        *(shown.view for shown in panels_over_count(both, curves.PanelGrid(across="ranks"))),
        comparison.board(verdict_table),
        launches.distribution(eight),
        launches.trace(eight.iloc[:1]),
        stragglers(one),
        history(eight.assign(level_us=1.0), "allreduce 8 B"),
        model(eight.assign(size_bytes=8, lower_us=0.4), segments, "allreduce"),
        pairs(links),
        guidelines(found),
        environment({"A": {"x": 1}, "B": {"x": 2}}),
        *(view for view, _ in models.layouts(step_cells)),
    ]
    assert all(view is not None for view in made)
    return [replace(view, commands=("omb-py allreduce -n 4",)) for view in made if view is not None]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("suite") / "s"
    for _ in range(2):
        assert main(["run", "quick", "--backend", "mock", "-n", "4", "-i", "4", "--quiet", "--store", str(store)]) == 0
    return store


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("accept")
    (folder / "small.toml").write_text(ACCEPTANCE)
    words = [str(folder / "small.toml"), "--backend", "mock", "--store", str(folder / "s")]
    assert main(["accept", *words, "--output", str(folder / "a.html")]) == 0
    return folder / "s"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    (folder / "osu.log").write_text(OSU)
    words = [str(folder / "osu.log"), "--set", "ranks=4", "--set", "library=MPICH", "--store", str(folder / "s")]
    assert main(["results", "import", *words]) == 0
    return folder / "s"
