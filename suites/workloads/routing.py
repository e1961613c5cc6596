"""Tokens whose experts are drawn one by one, so that the copies that travel are counted and not estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Counts: TypeAlias = "NDArray[np.int64]"


def distinct(ranks: int, top: int, experts: int) -> float:
    """Ranks that a token goes to, on average, when its `top` of all `experts` are drawn at random.

    A rank with E/n of E experts has none of the k drawn ones with the chance C(E − E/n, k) / C(E, k).
    """
    return ranks * (1 - comb(experts - experts // ranks, top) / comb(experts, top))


@dataclass(frozen=True, slots=True)
class Routing:
    """How each token of a rank chooses its experts."""

    experts: int
    """In all, equally many on each rank, in order."""
    top: int
    """Experts of a token."""
    tokens: int
    """Tokens of a rank."""
    ranks: int
    node: int
    """Ranks of a node."""
    limit: int
    """Nodes of a token at most; 0: any number."""
    seed: int

    def chosen(self, rank: int, weights: Sequence[float]) -> Counts:
        """The experts of the tokens of a rank, shape (tokens, top).

        They are drawn without replacement in proportion to `weights`. With a limit M the nodes come first: those whose
        k/M best experts have the largest sum of affinities (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
        """
        import numpy as np

        random = np.random.default_rng((self.seed, rank))
        # the largest of these are a draw without replacement (Gumbel's trick)
        scores = np.log(np.maximum(weights, 1e-300)) + random.gumbel(size=(self.tokens, self.experts))
        nodes = self.ranks // self.node
        if self.limit and self.limit < nodes:
            affinity = 1 / (1 + np.exp(-scores.reshape(self.tokens, nodes, -1)))
            best = np.sort(affinity, axis=2)[:, :, -max(1, self.top // self.limit) :].sum(axis=2)
            kept = np.argsort(best, axis=1)[:, nodes - self.limit :]
            closed = np.ones((self.tokens, nodes), bool)
            np.put_along_axis(closed, kept, False, axis=1)
            scores[np.repeat(closed, self.experts // nodes, axis=1)] = -np.inf
        return np.argpartition(scores, self.experts - self.top, axis=1)[:, self.experts - self.top :]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of tokens, by the rank that has the token."""

    to_expert: Counts
    """[source, rank]: one for each expert."""
    to_rank: Counts
    """[source, rank]: one for each rank that has an expert of the token."""
    to_node: Counts
    """[source, node]: one for each node that has."""


@lru_cache(maxsize=16)
def draw_copies(routing: Routing, weights: tuple[float, ...]) -> Copies:
    """Count the copies of all tokens of all ranks."""
    import numpy as np

    n, node = routing.ranks, routing.node
    to_expert, to_rank = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    to_node = np.zeros((n, n // node), np.int64)
    for source in range(n):
        ranks = routing.chosen(source, weights) // (routing.experts // n)
        to_expert[source] = np.bincount(ranks.ravel(), minlength=n)
        to_rank[source] = _distinct(ranks, n)
        to_node[source] = _distinct(ranks // node, n // node)
    return Copies(to_expert, to_rank, to_node)


def _distinct(places: NDArray[Any], number: int) -> Counts:
    import numpy as np

    hit = np.zeros((len(places), number), bool)
    np.put_along_axis(hit, places, True, axis=1)
    counts: Counts = hit.sum(axis=0)
    return counts
