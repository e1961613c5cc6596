"""Time of an operation of a rank in an iteration, from cost, series, noise and stragglers, in whole nanoseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config
from omb_py.backends.mock.simulator.lower import Op
from omb_py.backends.mock.simulator.noise import Noise

Times = NDArray[np.int64]


class Timing:
    """Durations, for one rank at a time or for all ranks at once; both give the same numbers."""

    def __init__(self, config: Config, ranks: int, scale: float, noise: Noise) -> None:
        self._series = config.series
        self._scale = scale
        self.noise = noise
        self._delays: dict[int, int] = {}
        for rank, delay in config.straggler:
            self._delays[rank] = self._delays.get(rank, 0) + round(delay)
        self._delay = np.zeros(ranks, np.int64)
        for rank, ns in self._delays.items():
            self._delay[rank] = ns
        self._slow = dict(config.slow)
        self._links = {frozenset((a, b)): factor for a, b, factor in config.link}
        self._series_row: NDArray[Any] = np.arange(ranks) % max(1, len(config.series))

    def message(self, rank: int, op: Op, iteration: int) -> tuple[int, int]:
        """(time from start to arrival, time on the sender's link) of a message that `rank` sends, ns."""
        cost, wire = op.cost, op.wire
        if self._series and op.timed:
            cost, wire = self._from_series(rank, iteration), 0.0
        if self._slow or self._links:
            slower = self._slow.get(rank, 1.0) * self._slow.get(op.peer, 1.0)
            slower *= self._links.get(frozenset((rank, op.peer)), 1.0)
            cost, wire = cost * slower, wire * slower
        if self.noise.active:
            factor = self.noise.draw(rank)
            return round(cost * factor), round(wire * factor)
        return round(cost), round(wire)

    def collective(self, rank: int, op: Op, iteration: int) -> int:
        """Time from the opening of a collective until `rank` leaves it, ns."""
        cost = self._from_series(rank, iteration) if self._series and op.timed else op.cost
        if self.noise.active:
            cost = cost * self.noise.draw(rank)
        return round(cost) + (self._delays.get(rank, 0) if op.timed else 0)

    def collectives(self, op: Op, iteration: int, draw: int) -> Times:
        """:meth:`collective` of all ranks, each with its noise factor number `draw`."""
        cost: Any = op.cost
        if self._series and op.timed:
            row = [times[iteration % len(times)] * self._scale for times in self._series]
            cost = np.array(row)[self._series_row]
        if self.noise.active:
            cost = cost * self.noise.row(draw)
        elif not op.timed or not (self._series or self._delays):
            return np.full(self._delay.shape, round(cost), np.int64)
        times = np.rint(cost).astype(np.int64)
        return times + self._delay if op.timed else np.broadcast_to(times, self._delay.shape)

    def _from_series(self, rank: int, iteration: int) -> float:
        times = self._series[rank % len(self._series)]
        return times[iteration % len(times)] * self._scale
