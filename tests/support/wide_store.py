"""A store of as many cells as are asked for. The numbers are made up; no such machine was measured.

Six versions of three libraries measured eight collectives at 26 sizes on seven numbers of ranks: 208 cells a
launch, and launches until there are cells enough. Nothing differs but by noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from omb_py.results.store.keys import comparability_key
from omb_py.results.store.write import parquet, to_table
from tests.support import planted_store

if TYPE_CHECKING:
    import pyarrow as pa

SIDES = (
    ("mpi", "MPICH", "5.0.1"),
    ("mpi", "MPICH", "5.0.2"),
    ("mpi", "Open MPI", "5.0.10"),
    ("mpi", "Open MPI", "5.0.11"),
    ("gloo", "torch gloo", "2.12.0"),
    ("gloo", "torch gloo", "2.13.0"),
)
BENCHMARKS = ("allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter", "scatter")
SIZES = tuple(4 << n for n in range(26))
RANKS = (2, 4, 8, 16, 32, 64, 128)
CELLS = len(BENCHMARKS) * len(SIZES)
"""Of a launch."""
SAMPLES = 20
FIRST = datetime(2026, 1, 5, tzinfo=UTC)
_TIMES = ("value", "mean_us", "median_us", "min_us", "p25_us", "p75_us", "p99_us")


def write(store: Path, cells: int) -> int:
    """Write so many cells or a few more, a file a launch; number of launches."""
    rng = np.random.default_rng(19)
    launches = -(-cells // CELLS)
    known: dict[tuple[str, str, str, int], pa.Table] = {}
    for number, (ranks, side) in enumerate(itertools.islice(itertools.cycle(_places()), launches)):
        who = (*side, ranks)
        if who not in known:
            known[who] = _first(side, ranks, rng)
        started = FIRST + timedelta(minutes=30 * number)
        folder = store / f"date={started:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        run = f"wide-{number:05}"
        (folder / f"{run}-0.parquet").write_bytes(parquet(_again(known[who], run, started, rng)))
    return launches


def _places() -> Iterator[tuple[int, tuple[str, str, str]]]:
    return itertools.product(RANKS, SIDES)


def _first(side: tuple[str, str, str], ranks: int, rng: np.random.Generator) -> pa.Table:
    backend, library, version = side
    rows = []
    for place, name in enumerate(BENCHMARKS):
        for size in SIZES:
            time = (2.0 + place) * np.log2(ranks) + (1 + place) * 1e-4 * size
            row = planted_store.made_up(name, size, ranks, version, float(time), None, rng)
            who = {
                "backend": backend,
                "library": library,
                "run_id": "",
                "launch_id": "",
                "started_at": f"{FIRST:%FT%T}",
            }
            row |= {**who, "bytes_total": size, "busbw_gbps": size / time / 1e3, "bw_formula": "size/time"}
            row |= {"samples_us": [float(time)] * SAMPLES, "iterations": SAMPLES, "ess": float(SAMPLES)}
            rows.append(row | {"comparability_key": comparability_key(row, name)})
    command = ["/bin/omb-py", "run", "collectives.toml", "-n", str(ranks)]
    facts = {"library": library, "library_version": version, "run": {"tool": {"command_line": command}}}
    return to_table(rows, facts)


def _again(table: pa.Table, run: str, started: datetime, rng: np.random.Generator) -> pa.Table:
    """The launch under another name, at another time, with other noise."""
    import pyarrow as pa
    import pyarrow.compute as pc

    noise = pa.array(np.exp(rng.normal(0, planted_store.LAUNCH_NOISE) + rng.normal(0, planted_store.CELL_NOISE, CELLS)))
    said = {"run_id": run, "launch_id": f"{run}-0", "started_at": started}
    for at, field in enumerate(table.schema):
        if field.name in _TIMES:
            table = table.set_column(at, field, pc.multiply(table[field.name], noise).cast(field.type))
        elif field.name in said:
            table = table.set_column(at, field, pa.array([said[field.name]] * CELLS).cast(field.type))
    return table
