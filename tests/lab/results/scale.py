"""The store at scale: ``python -m tests.lab.results.scale`` (``make bench-store``).

Builds a store of 5 000 launch files with 200 cells each, every cell with samples and every file with provenance, then
asks for one cell of all launches in fresh processes: the first time, when the summary index is made, and the second
time. Then it reads a side of a comparison, by run and by tag, and merges the files and reads again. Prints wall time, processor time and the largest memory of each, and the bars; exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.machines.mpi import run_command

BENCHMARKS = tuple("allreduce bcast latency bw alltoall allgather reduce gather scatter reduce_scatter".split())
CELLS = 200
BARS = {"write": 0.2, "first": 15.0, "second": 1.0, "memory": 1000.0, "side": 300.0}
"""Seconds, and MB of the second reading and of a side."""

_READ = """
import json, resource, sys, time
start = time.perf_counter()
import pandas, pyarrow.compute, pyarrow.dataset, pyarrow.parquet
from omb_py.results.compare.select_launches import read_side
from omb_py.results.store.read import load
from pathlib import Path
imported, loaded = time.perf_counter(), time.process_time()
query = json.loads(sys.argv[2])
rows = read_side(query, Path(sys.argv[1])).rows if isinstance(query, str) else load(sys.argv[1], **query)
print(json.dumps({"rows": len(rows), "wall_s": time.perf_counter() - imported, "import_s": imported - start,
    "cpu_s": time.process_time() - loaded, "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))
"""


def rows(run: str, launch: int, day: date, rng: np.random.Generator, samples: int) -> list[dict[str, Any]]:
    """The cells of a launch: ten benchmarks, twenty sizes."""
    from omb_py.results.statistics.summary import summarise
    from tests.support.rows import row_of

    made = []
    for index in range(CELLS):
        times = rng.lognormal(1, 0.1, samples)
        size = 1 << index % 20
        row = row_of(
            run,
            launch,
            started_at=f"{day}T12:00:00",
            benchmark=BENCHMARKS[index // 20],
            family="collective",
            library="Open MPI",
            library_version=f"5.0.{launch % 8}",
            binding="native",
            device="cpu",
            buffer="numpy",
            dtype="char",
            process_sync="barrier",
            timing="local_max",
            cache="hot",
            threads=1,
            batch=1,
            thread_level="funneled",
            ranks=4,
            nodes=1,
            ranks_per_node=4,
            size_bytes=size,
            bytes_per_rank=size,
            bytes_total=size,
            count=size,
            value=float(times.mean()),
            iterations=samples,
            warmup=10,
            stop_reason="fixed",
            comparability_key=f"{index:032x}",
            environment_key="0" * 32,
            tags={"site": "bench", "when": "new"},
            hosts=["n1"] * 4,
            samples_us=times,
            samples_avg_us=times * 0.9,
            parameters={},
            metrics={"bytes_moved": float(size)},
            rank_mean_us=[1.0] * 4,
            slowest_rank_share=[0.25] * 4,
            **summarise(times),
        )
        made.append(row)
    return made


def build(store: Path, launches: int, samples: int) -> list[float]:
    """Write the launches; seconds of some that were written as a run writes them.

    The others are copies of those with other ids and other numbers, put in place without syncing each.
    """
    import pyarrow as pa

    from omb_py.results.store.write import parquet, to_table, write_launch

    rng = np.random.default_rng(0)
    provenance = {"libraries": {"Open MPI": "5.0"}, "node": [f"fact {n}: {n * n}" for n in range(500)]}
    taken: list[float] = []
    table = None
    for number in range(launches):
        day, run, launch = date(2026, 1, 1) + timedelta(number // 20), f"run-{number // 10}", number % 10
        if table is None or number % 250 == 0:
            made = rows(run, launch, day, rng, samples)
            start = time.perf_counter()
            write_launch(store, made, provenance)
            taken.append(time.perf_counter() - start)
            table = to_table([{**row, "tags": {"site": "bench"}} for row in made], provenance)
            continue
        changed = table
        for name in ("run_id", "launch_id", "started_at", "value", "median_us", "mean_us", "p75_us", "max_us"):
            at = changed.schema.get_field_index(name)
            kind = changed.schema.field(at).type
            values: Any = (
                rng.lognormal(1, 0.1, CELLS)
                if kind == pa.float64()
                else [{"run_id": run, "launch_id": f"{run}-{launch}"}.get(name, f"{day} 12:00:00Z")] * CELLS
            )
            changed = changed.set_column(at, changed.schema.field(at), pa.array(values).cast(kind))
        path = store / f"date={day}" / f"{run}-{launch}.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(parquet(changed))
    return taken


def reading(store: Path, query: dict[str, Any] | str) -> dict[str, float]:
    """One query, or one side of a comparison, in a fresh process; pandas and pyarrow are loaded before the clock."""
    words = [sys.executable, "-c", _READ, str(store), json.dumps(query)]
    done = run_command(words, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


Figure = tuple[str, float, str, float | None]
"""What was measured, its value, unit and bar."""


def figures(store: Path, launches: int, samples: int) -> Iterator[Figure]:
    """Build a store of so many launches and measure everything."""
    from omb_py.results.store.compaction import compact

    start = time.perf_counter()
    taken = build(store, launches, samples)
    size = sum(path.stat().st_size for path in store.rglob("*.parquet")) / 1e9
    yield f"{launches} launch files built ({size:.2f} GB)", time.perf_counter() - start, "s", None
    yield "a launch's file written, median", statistics.median(taken), "s", BARS["write"]
    time.sleep(2.5)  # the youngest files are indexed only when they have rested
    one_cell = {"columns": ["launch_id", "started_at", "median_us"], "benchmark": "allreduce", "size_bytes": 1024}
    every_column = {"columns": None, "benchmark": "bcast", "size_bytes": 8, "date": "2026-02-01"}
    one_run = {"columns": ["benchmark", "size_bytes", "median_us", "p99_us"], "run_id": f"run-{launches // 20}"}
    first = reading(store, one_cell)
    yield f"one cell of all launches, first time ({first['rows']:.0f} rows)", first["wall_s"], "s", BARS["first"]
    yield "  its processor time", first["cpu_s"], "s", None
    yield "  its memory", first["memory_mb"], "MB", None
    for name, query in (("one cell of all launches", one_cell), ("one run", one_run), ("with samples", every_column)):
        yield from _again(store, f"{name}, second time", query, BARS["memory"])
    for side in ("tag=when=new", f"run-{launches // 20}"):
        yield from _again(store, f"compare {side}", side, BARS["side"])
    start = time.perf_counter()
    merged = len(compact(store, timedelta(0)))
    yield f"merged into {merged} files", time.perf_counter() - start, "s", None
    after = reading(store, one_cell)
    yield f"one cell of all launches, after that ({after['rows']:.0f} rows)", after["wall_s"], "s", BARS["second"]


def _again(store: Path, name: str, query: dict[str, Any] | str, memory: float) -> Iterator[Figure]:
    again = [reading(store, query) for _ in range(3)]
    wall = statistics.median(one["wall_s"] for one in again)
    yield f"{name} ({again[0]['rows']:.0f} rows)", wall, "s", BARS["second"]
    yield "  its processor time", statistics.median(one["cpu_s"] for one in again), "s", None
    yield "  its memory", max(one["memory_mb"] for one in again), "MB", memory


def main() -> int:
    """Build, read, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=100, help="of each cell, in two series")
    parser.add_argument("--store", type=Path, help="an empty folder that is kept (default: a temporary one)")
    chosen = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        store = chosen.store or Path(scratch)
        print(f"store: {chosen.launches} launch files, {chosen.launches * CELLS} cells, {chosen.samples} samples each")
        for what, value, unit, bar in figures(store, chosen.launches, chosen.samples):
            verdict = "" if bar is None else f"  bar {bar:g} {unit}: {'met' if value < bar else 'MISSED'}"
            missed += bar is not None and value >= bar
            print(f"{what:<58} {value:9.3f} {unit:<2}{verdict}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"(this process: {peak:.0f} MB)")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
