"""A store of three libraries on GPUs, for pictures. The numbers are made up; no such machine was measured."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.results.store.write import write_launch
from tests.support.rows import collective_row

SIDES = (("mpi", "MVAPICH-Plus", "4.1"), ("nccl", "NCCL", "2.21.5"), ("nccl", "NCCL", "2.27.3"))
SIZES = tuple(4 << n for n in range(0, 26, 2))
GPUS = (2, 4, 8, 16, 32, 64)
LAUNCHES = 3
A_NODE = 4
"""GPUs of a node."""
FIRST = datetime(2026, 4, 6, 8, tzinfo=UTC)


def time_us(library: str, version: str, gpus: int, size: int) -> float:
    """A made-up time: MPI begins fast and has less bandwidth; NCCL has more within a node; its newer version is slower
    in the middle on many GPUs."""
    alpha, rate = (
        (4.0 * gpus**0.43, 9e3) if library != "NCCL" else (18.0 + 1.5 * np.log2(gpus), 90e3 if gpus <= A_NODE else 40e3)
    )
    time = alpha + 2 * (gpus - 1) / gpus * size / rate
    if version == "2.27.3":
        time *= 1.3 if gpus >= 32 and 1 << 16 <= size <= 1 << 20 else 0.95
    return float(time)


def write(
    store: Path, gpus: tuple[int, ...] = GPUS, benchmarks: tuple[str, ...] = ("allreduce",), launches: int = LAUNCHES
) -> None:
    """Write the store, a file a launch; `launches` of each side and number of GPUs."""
    rng = np.random.default_rng(18)
    turns = itertools.product(SIDES, gpus, range(launches))
    for turn, ((backend, library, version), count, launch) in enumerate(turns):
        started = FIRST + timedelta(minutes=3 * turn)
        name = f"made-up-{library}-{version}-{count}-{launch}".replace(" ", "-")
        rows = []
        for benchmark, size in itertools.product(benchmarks, SIZES):
            time = time_us(library, version, count, size) * float(np.exp(rng.normal(0, 0.01)))
            rows.append(_row(benchmark, backend, library, version, count, size, time))
        for row in rows:
            row |= {"run_id": name, "launch_id": f"{name}-0", "started_at": started.isoformat()}
        facts = {"library": library, "library_version": version, "launch": {"launch_id": f"{name}-0"}}
        words = ["omb-py", *benchmarks, "-n", str(count), "--backend", backend, "-d", "cuda"]
        facts["run"] = {"tool": {"command_line": words}}
        write_launch(store, rows, facts)


def _row(benchmark: str, backend: str, library: str, version: str, gpus: int, size: int, time: float) -> dict[str, Any]:
    bandwidth = size / time / 1e3
    return collective_row(
        benchmark,
        size,
        gpus,
        A_NODE,
        time,
        backend=backend,
        library=library,
        library_version=version,
        device="cuda",
        device_name="NVIDIA A100-SXM4-40GB",
        buffer="cupy",
        dtype="float32",
        op="sum",
        timing="local_max" if backend == "mpi" else "isolated",
        devices=gpus,
        algbw_gbps=bandwidth,
        busbw_gbps=bandwidth * 2 * (gpus - 1) / gpus,
        environment_key=f"environment of {library} {version}",
    )
