"""Clocks of MPI processes, and the skew with which a synchronisation lets ranks go."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Final

from omb_py.engine.measuring.process_sync import skew_program
from omb_py.engine.measuring.statistics import median_of
from omb_py.engine.program.benchmark import World
from omb_py.engine.samples import lap_of

if TYPE_CHECKING:
    import numpy as np
    from mpi4py import MPI
    from numpy.typing import NDArray

    from omb_py.backends.gloo.session import GlooSession
    from omb_py.backends.mpi.session import MpiSession

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
class ClockModel:
    """The common time of a local one, in ns: ``local + intercept + slope * (local - origin)``."""

    slope: float = 0.0
    intercept: float = 0.0
    origin: float = 0.0
    error: float = 0.0
    """Standard deviation of the fit points around the line, ns."""

    def common(self, local: float) -> float:
        """The common time of a local one."""
        return local + self.intercept + self.slope * (local - self.origin)


def fit(local: NDArray[np.float64], offset: NDArray[np.float64]) -> ClockModel:
    """The line through fit points: local times, and how much the common clock is ahead, in ns."""
    import numpy as np

    origin = float(local.mean())
    x = local - origin
    spread = float((x**2).sum())
    slope = float((x * offset).sum() / spread) if spread else 0.0
    mean = float(offset.mean())
    residuals = offset - mean - slope * x
    error = float(np.sqrt((residuals**2).sum() / max(1, len(x) - 2)))
    if not spread or abs(slope) < _SIGNIFICANT * error / spread**0.5:
        slope, mean = 0.0, float(np.median(offset))
    return ClockModel(slope, mean, origin, error)


def synchronise(comm: MPI.Intracomm, clock: Clock) -> ClockModel:
    """This rank's model of rank 0's clock. All ranks of `comm` call it; it takes some 30 ms a round."""
    rank, size = comm.Get_rank(), comm.Get_size()
    model, distance = ClockModel(), 1
    while distance < size:
        if distance <= rank < 2 * distance:
            model = _learn(comm, rank - distance, clock)
        elif rank < distance and rank + distance < size:
            _serve(comm, rank + distance, clock, model)
        distance *= 2
    return model


def _serve(comm: MPI.Intracomm, child: int, clock: Clock, model: ClockModel) -> None:
    remote = array("d", [0.0])
    for _ in range(POINTS * PINGS):
        comm.Recv(remote, child, _TAG)
        remote[0] = model.common(clock())
        comm.Send(remote, child, _TAG)


def _learn(comm: MPI.Intracomm, parent: int, clock: Clock) -> ClockModel:
    import numpy as np

    remote = array("d", [0.0])
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


def announced_ahead(comm: MPI.Intracomm, clock: Clock) -> int:
    """The lead of an announced start, in ns: three times the time of a broadcast (ReproMPI's k = 3)."""
    from mpi4py import MPI

    payload, total, rounds = array("q", [0]), 0, 10
    for _ in range(rounds):
        comm.Barrier()
        began = clock()
        comm.Bcast(payload, 0)
        total += clock() - began
    slowest, result = array("d", [float(total)]), array("d", [0.0])
    comm.Allreduce(slowest, result, MPI.MAX)
    return int(3 * result[0] / rounds)


ROUNDS = 60
FEWEST = 5
LIMIT_S = 0.5
"""Seconds for the rounds, as far as FEWEST allows: 64 ranks on two loaded cores take 0.4 s for one barrier."""
WARMUPS = 20
"""One warm-up for so many rounds."""
PING_PONGS = 30


def measured_skew(session: MpiSession | GlooSession, kind: str) -> float:
    """Median over rounds of (last exit - first exit) of a synchronisation (``KINDS``), in µs.

    Exit times are read right after it.  Ranks on rank 0's host share its clock; for
    the others the offset is taken from the ping-pong with the shortest round trip (SKaMPI's rule), so there the
    result carries an error of up to half that round trip. There are 60 rounds, and fewer where a barrier takes longer
    than 8 ms, as where many ranks share a core.
    """
    program, cell = skew_program(World(session.rank, session.size, session.hosts), kind)
    runner = session.load(cell, {session.rank: program})
    runner.enter(0, {})
    rounds = affordable_rounds(session)
    warmup = -(-rounds // WARMUPS)
    session.barrier()
    runner.run(0, -warmup, warmup)
    stamps = runner.run(0, 0, rounds)[session.rank]
    runner.leave(0)
    laps, offset = program.stages[0].laps, clock_offset(session)
    exits = [ns - offset for ns in lap_of(stamps, laps.index("exit"))]
    missed = list(lap_of(stamps, laps.index("late"))) if "late" in laps else [0] * rounds
    gathered = session.gather((exits, missed))
    if not gathered:
        return 0.0
    apart = [max(of_round) - min(of_round) for of_round in zip(*(times for times, _ in gathered), strict=True)]
    in_time = [max(of_round) <= 0 for of_round in zip(*(late for _, late in gathered), strict=True)]
    return median_of(list(compress(apart, in_time)) or apart) / 1000


def affordable_rounds(session: MpiSession | GlooSession) -> int:
    """How many barriers fit into LIMIT_S, by the second of two: FEWEST to ROUNDS, the same on every rank."""
    session.barrier()
    began = time.perf_counter()
    session.barrier()
    each = time.perf_counter() - began
    return int(session.share(ROUNDS if each * ROUNDS <= LIMIT_S else max(FEWEST, int(LIMIT_S / each))))


def clock_offset(session: MpiSession | GlooSession) -> int:
    """This rank's clock minus rank 0's, in ns; 0 on rank 0's host."""
    traffic, offset = session.traffic, 0
    for rank in range(1, session.size):
        if session.hosts[rank] == session.hosts[0]:
            continue
        if session.rank == 0:
            for _ in range(PING_PONGS):
                traffic.recv(rank, tag=7)
                traffic.send(time.monotonic_ns(), rank, tag=7)
        elif session.rank == rank:
            best = 1 << 62
            for _ in range(PING_PONGS):
                start = time.monotonic_ns()
                traffic.send(0, 0, tag=7)
                remote = traffic.recv(0, tag=7)
                stop = time.monotonic_ns()
                if stop - start < best:
                    best, offset = stop - start, (start + stop) // 2 - remote
    return offset
