"""A common clock: each rank's linear model of rank 0's, by HCA3.

HCA3 [Hunold and Carpen-Amarie, *Hierarchical Clock Synchronization in MPI*, IEEE CLUSTER 2018]: in round k ranks 2^k to
2^(k+1) - 1 each learn the clock of the rank 2^k below them, which has its model already, so that ⌈log2 p⌉ rounds are
enough. A child takes fit points by ping-pong, each from the one with the shortest round trip of some, and fits a line.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

POINTS: Final = 40
PINGS: Final = 10
"""Ping-pongs a fit point."""
_PAUSE_S: Final = 0.0005
_SIGNIFICANT: Final = 3.0
"""A slope under this number of its standard errors counts as 0: its noise over minutes would exceed the drift."""
_TAG: Final = 11
Clock = Callable[[], int]
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Model:
    """The common time of a local one, in ns: ``local + intercept + slope * (local - origin)``."""

    slope: float = 0.0
    intercept: float = 0.0
    origin: float = 0.0
    error: float = 0.0
    """Standard deviation of the fit points around the line, ns."""

    def common(self, local: float) -> float:
        """The common time of a local one."""
        return local + self.intercept + self.slope * (local - self.origin)


def fit(local: NDArray[np.float64], offset: NDArray[np.float64]) -> Model:
    """The line through fit points: local times, and how much the common clock is ahead, in ns."""
    origin = float(local.mean())
    x = local - origin
    spread = float((x**2).sum())
    slope = float((x * offset).sum() / spread) if spread else 0.0
    mean = float(offset.mean())
    residuals = offset - mean - slope * x
    error = float(np.sqrt((residuals**2).sum() / max(1, len(x) - 2)))
    if not spread or abs(slope) < _SIGNIFICANT * error / spread**0.5:
        slope, mean = 0.0, float(np.median(offset))
    return Model(slope, mean, origin, error)


def synchronise(comm: Any, clock: Clock) -> Model:
    """This rank's model of rank 0's clock. All ranks of `comm` call it; it takes some 30 ms a round."""
    rank, size = comm.Get_rank(), comm.Get_size()
    model, distance = Model(), 1
    while distance < size:
        if distance <= rank < 2 * distance:
            model = _learn(comm, rank - distance, clock)
        elif rank < distance and rank + distance < size:
            _serve(comm, rank + distance, clock, model)
        distance *= 2
    return model


def _serve(comm: Any, child: int, clock: Clock, model: Model) -> None:
    remote = np.zeros(1, np.float64)
    for _ in range(POINTS * PINGS):
        comm.Recv(remote, child, _TAG)
        remote[0] = model.common(clock())
        comm.Send(remote, child, _TAG)


def _learn(comm: Any, parent: int, clock: Clock) -> Model:
    remote = np.zeros(1, np.float64)
    points = np.zeros((POINTS, 2))
    for number in range(POINTS):
        best = 1 << 62
        for _ in range(PINGS):
            began = clock()
            comm.Send(remote, parent, _TAG)
            comm.Recv(remote, parent, _TAG)
            ended = clock()
            if ended - began < best:
                best, middle = ended - began, (began + ended) / 2
                points[number] = middle, remote[0] - middle
        time.sleep(_PAUSE_S)
    return fit(points[:, 0], points[:, 1])


def announced_ahead(comm: Any, clock: Clock) -> int:
    """The lead of an announced start, in ns: three times the time of a broadcast (ReproMPI's k = 3)."""
    from mpi4py import MPI

    payload, total, rounds = np.zeros(1, np.int64), 0, 10
    for _ in range(rounds):
        comm.Barrier()
        began = clock()
        comm.Bcast(payload, 0)
        total += clock() - began
    slowest = np.array([float(total)])
    result = np.empty_like(slowest)
    comm.Allreduce(slowest, result, MPI.MAX)
    return int(3 * result[0] / rounds)
