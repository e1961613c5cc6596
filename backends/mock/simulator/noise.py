"""Random factors of operations: a stream for each rank, independent of the order in which ranks are simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from omb_py.backends.mock.config import Config

_BLOCK, _BLOCK_WITH_SPIKES = 1 << 12, 1 << 16
"""Number of factors that are drawn at a time, over all ranks.

Without spikes it changes no factor, since one stream gives them all; with spikes another number would give other ones.
"""


def launch_factor(config: Config, seed: int, launch_index: int) -> float:
    """The factor of all operations of a launch: a log-normal effect of the launch, times the drift."""
    z = float(np.random.default_rng(_entropy(seed, launch_index)).standard_normal()) if config.launch else 0.0
    return math.exp(config.launch * z) * (1 + config.drift) ** launch_index


class Noise:
    """Factors with median 1: log-normal, some of them spikes.

    Draw k of rank r is element (k, r) of one random table that depends on the seeds alone.
    """

    def __init__(self, config: Config, seeds: Sequence[int], ranks: int) -> None:
        self._sd = config.noise
        self._share, self._factor = config.spike
        self._random = np.random.default_rng(_entropy(*seeds))
        self._ranks = ranks
        self._rows = max(16, (_BLOCK_WITH_SPIKES if self._share else _BLOCK) // ranks)
        self._blocks: list[NDArray[np.float64]] = []
        self._lists: list[list[list[float]]] = []
        self._start = 0
        self.used = [0] * ranks
        """Draws so far of each rank."""
        self.active = bool(self._sd or self._share)

    def forget(self) -> None:
        """Free the draws that every rank has used."""
        keep = min(self.used) // self._rows
        drop = min(keep - self._start, len(self._blocks))
        del self._blocks[:drop], self._lists[:drop]
        self._start += drop

    def draw(self, rank: int) -> float:
        """The next factor of one rank."""
        k = self.used[rank]
        self.used[rank] = k + 1
        block, row = divmod(k, self._rows)
        self._grow(block)
        lists = self._lists[block - self._start]
        if not lists:
            lists.extend(self._blocks[block - self._start].T.tolist())
        return lists[rank][row]

    def row(self, k: int) -> NDArray[np.float64]:
        """Factor k of every rank. It does not count as used: the caller sets `used` at the end."""
        block, row = divmod(k, self._rows)
        self._grow(block)
        factors: NDArray[np.float64] = self._blocks[block - self._start][row]
        return factors

    def _grow(self, block: int) -> None:
        while block - self._start >= len(self._blocks):
            shape = (self._rows, self._ranks)
            factors = np.exp(self._sd * self._random.standard_normal(shape))
            if self._share:
                factors[self._random.random(shape) < self._share] *= self._factor
            self._blocks.append(factors)
            self._lists.append([])


def _entropy(*seeds: int) -> list[int]:
    """Distinct seeds for NumPy, which takes no negative ones."""
    return [2 * s if s >= 0 else -2 * s - 1 for s in seeds]
