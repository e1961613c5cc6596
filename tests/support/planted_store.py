"""A store with four planted faults, and whether the first screen names them and nothing else.

Six versions of a library were measured one after the other on eight nodes: four collectives, ten sizes, three numbers
of ranks, eight launches each. The numbers are made up; no such machine was measured.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from omb_py.results.store.write import write_launch
from tests.support.rows import collective_row

LIBRARY = "Open MPI"
VERSIONS = tuple(f"5.0.{n}" for n in range(1, 7))
BENCHMARKS = ("allgather", "allreduce", "alltoall", "bcast")
SIZES = tuple(4 << (2 * n) for n in range(10))
RANKS = (8, 16, 32)
PER_NODE = 4
LAUNCHES = 8
LAUNCH_NOISE, CELL_NOISE = 0.008, 0.01
"""Standard deviations of the logs: of a launch as a whole, and of each of its cells."""
REGRESSION, STEP, DRIFT = 1.35, 1.2, 1.12
"""Factors on the time; the drift is reached at the last launch."""
LATE_SHARE = 0.9
"""Share of the calls in which a rank of the slow node is the last one."""
FIRST = datetime(2026, 3, 2, 8, tzinfo=UTC)


class Expecting(Protocol):
    """Planted faults."""

    def expected(self) -> dict[str, tuple[str, ...]]:
        """Fault -> words that the line which names it must hold."""


@dataclass(frozen=True)
class Faults:
    """Where the faults are; the regression is in the newest version."""

    regression: str
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    node: str
    drift: str
    step: str
    step_at: str

    def expected(self) -> dict[str, tuple[str, ...]]:
        """Fault -> words that the line which names it must hold."""
        newest = f"{LIBRARY} {VERSIONS[-1]}"
        return {
            "regression": (self.regression, "slower", newest),
            "slow node": (self.node, "late"),
            "drift": (self.drift, "drifts"),
            "step": (self.step, "slower", f"{LIBRARY} {self.step_at}"),
        }


def faults(seed: int) -> Faults:
    """Choose the places of the faults."""
    rng = np.random.default_rng([seed, 1])
    regression, drift, step = rng.permutation(BENCHMARKS)[:3]
    first = int(rng.integers(0, len(SIZES) - 3))
    return Faults(
        str(regression),
        SIZES[first : first + 3],
        RANKS[1:],
        f"node{int(rng.integers(0, 2))}",
        str(drift),
        str(step),
        str(rng.choice(VERSIONS[2:5])),
    )


def write(store: Path, seed: int, sound: bool = False) -> Faults:
    """Write the store of a seed; `sound` leaves the faults out."""
    planted, rng = faults(seed), np.random.default_rng([seed, 2])
    base = {name: (float(rng.uniform(2, 6)), float(rng.uniform(2e-4, 2e-3))) for name in BENCHMARKS}
    total = len(VERSIONS) * LAUNCHES
    for turn, (version, launch) in enumerate(itertools.product(VERSIONS, range(LAUNCHES))):
        for place, ranks in enumerate(RANKS):
            started = FIRST + timedelta(hours=8 * turn, minutes=10 * place)
            effect = rng.normal(0, LAUNCH_NOISE)
            rows = []
            for name, size in itertools.product(BENCHMARKS, SIZES):
                alpha, beta = base[name]
                log = np.log(alpha * np.log2(ranks) + beta * size) + effect + rng.normal(0, CELL_NOISE)
                if not sound:
                    log += _added(planted, name, size, ranks, version, turn / (total - 1))
                rows.append(
                    made_up(name, size, ranks, version, float(np.exp(log)), None if sound else planted.node, rng)
                )
            _write_run(store, f"planted-{version}-{launch}-{ranks}", version, started, rows)
    return planted


def write_nights(store: Path, slower: float = 1.2) -> None:
    """Forty nights of one version; from the thirtieth on an allreduce of 64 KiB takes so much longer."""
    rng = np.random.default_rng(1)
    for night in range(40):
        rows = []
        for size in (8, 1024, 65536):
            factor = slower if size == 65536 and night >= 30 else 1.0
            time = (2 + size / 8000) * factor * float(np.exp(rng.normal(0, 0.01)))
            rows.append(made_up("allreduce", size, 8, VERSIONS[0], time, None, rng))
        _write_run(store, f"night-{night}", VERSIONS[0], FIRST + timedelta(days=night), rows)


def _write_run(store: Path, run: str, version: str, started: datetime, rows: list[dict[str, Any]]) -> None:
    """Write the one launch of a run."""
    for row in rows:
        row |= {"run_id": run, "launch_id": f"{run}-0", "started_at": started.isoformat()}
    facts = {"library": LIBRARY, "library_version": version, "launch": {"launch_id": f"{run}-0"}}
    write_launch(store, rows, facts)


def _added(planted: Faults, name: str, size: int, ranks: int, version: str, time: float) -> float:
    added = 0.0
    if name == planted.regression and version == VERSIONS[-1] and size in planted.sizes and ranks in planted.ranks:
        added += np.log(REGRESSION)
    if name == planted.step and VERSIONS.index(version) >= VERSIONS.index(planted.step_at):
        added += np.log(STEP)
    if name == planted.drift:
        added += np.log(DRIFT) * time
    return float(added)


def made_up(
    name: str, size: int, ranks: int, version: str, time: float, slow: str | None, rng: np.random.Generator
) -> dict[str, Any]:
    """A row of a collective: its median is `time` in µs; every rank of node `slow`, if given, is late."""
    hosts = [f"node{rank // PER_NODE}" for rank in range(ranks)]
    share = rng.dirichlet(np.full(ranks, 50.0))
    if slow is not None:
        late = np.array([host == slow for host in hosts])
        share = np.where(late, LATE_SHARE * share / share[late].sum(), (1 - LATE_SHARE) * share / share[~late].sum())
    return collective_row(
        name,
        size,
        ranks,
        PER_NODE,
        time,
        library=LIBRARY,
        library_version=version,
        device="cpu",
        buffer="numpy",
        dtype="char",
        timing="local_max",
        ess=400.0,
        rank_mean_us=[float(v) for v in time * (0.9 + share)],
        slowest_rank_share=[float(v) for v in share],
        hosts=hosts,
        environment_key=f"environment of {version}",
    )


def judged(lines: list[str], planted: Expecting | None) -> tuple[dict[str, bool], list[str]]:
    """Which faults a line names, and the lines that name none."""
    expected = planted.expected() if planted else {}
    naming = {
        fault: [line for line in lines if all(word in line for word in words)] for fault, words in expected.items()
    }
    known = {line for several in naming.values() for line in several}
    return {fault: len(several) == 1 for fault, several in naming.items()}, [
        line for line in lines if line not in known
    ]
