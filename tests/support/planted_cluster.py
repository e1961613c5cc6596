"""A store of several libraries, versions and numbers of GPUs with five planted faults, and whether a page names them.

NCCL in two versions and MVAPICH-Plus on 2 to 64 GPUs, Open MPI in two versions over nights on hosts. The numbers are
made up; no such machine was measured.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.results.store.write import write_launch
from tests.support.planted_store import LATE_SHARE
from tests.support.rows import collective_row

BENCHMARKS = ("allgather", "allreduce", "alltoall", "bcast")
SIZES = tuple(4 << n for n in range(0, 25, 2))
GPUS, RANKS = (2, 4, 8, 16, 32, 64), (8, 16, 32)
PER_NODE = 8
LAUNCHES = 8
LAUNCH_NOISE, CELL_NOISE = 0.006, 0.008
REGRESSION, UPGRADE, DRIFT, SCALING, FASTER = 1.35, 1.2, 1.12, 1.15, 0.89
"""Factors on the time: of a version of NCCL in some cells, of Open MPI's newest above a size, of the last night, of
MVAPICH-Plus at one number of GPUs, and of the newer NCCL everywhere else, which is no fault."""
FIRST = datetime(2026, 5, 4, 6, tzinfo=UTC)


@dataclass(frozen=True)
class ClusterFaults:
    """Where the faults are."""

    regression: str
    sizes: tuple[int, ...]
    gpus: tuple[int, ...]
    upgrade: str
    drift: str
    node: str
    count: int
    """The number of GPUs at which MVAPICH-Plus is slower than its scaling says."""

    def expected(self) -> dict[str, tuple[str, ...]]:
        """Fault -> words that the line which names it must hold."""
        return {
            "regression": (self.regression, "slower", "NCCL 2.27.3"),
            "upgrade": (self.upgrade, "slower", "Open MPI 5.0.8"),
            "drift": (self.drift, "drifts", "Open MPI"),
            "straggler": (self.node, "late"),
            "scaling": ("MVAPICH-Plus 4.1", "slower", f"{self.count} GPUs"),
        }


def faults(seed: int) -> ClusterFaults:
    """Choose the places of the faults."""
    rng = np.random.default_rng([seed, 7])
    regression = str(rng.choice(BENCHMARKS))
    upgrade, drift = map(str, rng.permutation(BENCHMARKS)[:2])
    first = int(rng.integers(4, len(SIZES) - 4))
    return ClusterFaults(
        regression, SIZES[first : first + 3], GPUS[-2:], upgrade, drift, f"host{int(rng.integers(0, 2))}", GPUS[-1]
    )


def time_us(library: str, count: int, size: int, benchmark: str) -> float:
    """A made-up time: MPI begins fast and has less bandwidth; beyond a node the network limits both."""
    far = count > PER_NODE
    weight = 1 + 0.2 * BENCHMARKS.index(benchmark)
    alpha, rate = {
        "NCCL": (16 + 1.4 * np.log2(count) + 6 * far, 11e3 if far else 115e3),
        "MVAPICH-Plus": (4 + 1.2 * np.log2(count) + 1.5 * far, 9e3 if far else 80e3),
    }.get(library, (2 * np.log2(count), 4e3))
    return float(weight * (alpha + 2 * (count - 1) / count * size / rate))


def write(store: Path, seed: int, sound: bool = False) -> ClusterFaults:
    """Write the store of a seed; `sound` leaves the faults out."""
    planted, rng = faults(seed), np.random.default_rng([seed, 8])
    turns = [("nccl", "NCCL", v, "cuda", n) for v in ("2.21.5", "2.27.3") for n in GPUS]
    turns += [("mpi", "MVAPICH-Plus", "4.1", "cuda", n) for n in GPUS]
    for number, (launch, turn) in enumerate(itertools.product(range(LAUNCHES), turns)):
        _launch(store, planted, rng, turn, launch, FIRST + timedelta(minutes=12 * number), 0.0, sound)
    nights = [(version, launch) for version in ("5.0.5", "5.0.8") for launch in range(LAUNCHES)]
    for night, (version, launch) in enumerate(nights):
        for place, ranks in enumerate(RANKS):
            at = FIRST + timedelta(days=night, hours=16, minutes=9 * place)
            share = night / (len(nights) - 1)
            _launch(store, planted, rng, ("mpi", "Open MPI", version, "cpu", ranks), launch, at, share, sound)
    return planted


def _launch(
    store: Path,
    planted: ClusterFaults,
    rng: np.random.Generator,
    turn: tuple[str, str, str, str, int],
    launch: int,
    at: datetime,
    share: float,
    sound: bool,
) -> None:
    _, library, version, device, count = turn
    run = f"{library}-{version}-{count}-{launch}".replace(" ", "-")
    effect = rng.normal(0, LAUNCH_NOISE)
    rows = []
    for benchmark, size in itertools.product(BENCHMARKS, SIZES):
        log = np.log(time_us(library, count, size, benchmark)) + effect + rng.normal(0, CELL_NOISE)
        if version == "2.27.3":
            slow = benchmark == planted.regression and size in planted.sizes and count in planted.gpus and not sound
            log += np.log(REGRESSION if slow else FASTER)
        if not sound:
            log += np.log(UPGRADE) * (version == "5.0.8" and benchmark == planted.upgrade and size > 16384)
            log += np.log(DRIFT) * share * (library == "Open MPI" and benchmark == planted.drift)
            log += np.log(SCALING) * (library == "MVAPICH-Plus" and count == planted.count)
        late = planted.node if device == "cpu" and not sound else None
        rows.append(_row(benchmark, turn, size, float(np.exp(log)), late, rng))
    for row in rows:
        row |= {"run_id": run, "launch_id": f"{run}-0", "started_at": at.isoformat()}
    facts = {"library": library, "library_version": version, "launch": {"launch_id": f"{run}-0"}}
    write_launch(store, rows, facts)


def _row(
    benchmark: str, turn: tuple[str, str, str, str, int], size: int, time: float, late: str | None, rng: Any
) -> dict[str, Any]:
    backend, library, version, device, count = turn
    factor = 2 * (count - 1) / count if benchmark == "allreduce" else 1.0
    late_ranks: dict[str, Any] = {}
    if late is not None or device == "cpu":
        hosts = [f"host{rank // PER_NODE}" for rank in range(count)]
        shares = rng.dirichlet(np.full(count, 50.0))
        own = np.array([host == late for host in hosts])
        if own.any() and not own.all():
            shares = np.where(
                own, LATE_SHARE * shares / shares[own].sum(), (1 - LATE_SHARE) * shares / shares[~own].sum()
            )
        late_ranks = {
            "hosts": hosts,
            "slowest_rank_share": [float(v) for v in shares],
            "rank_mean_us": [float(v) for v in time * (0.9 + shares)],
        }
    return collective_row(
        benchmark,
        size,
        count,
        PER_NODE,
        time,
        backend=backend,
        library=library,
        library_version=version,
        device=device,
        device_name="NVIDIA A100-SXM4-80GB" if device == "cuda" else None,
        buffer="cupy" if device == "cuda" else "numpy",
        dtype="char",
        timing="local_max",
        devices=count if device == "cuda" else 0,
        algbw_gbps=size / time / 1e3,
        busbw_gbps=factor * size / time / 1e3,
        environment_key=f"environment of {library} {version}",
        **late_ranks,
    )
