"""How often a rank is named as a straggler: by chance, and where one is late. The table of evidence/stragglers.md.

``python -m tests.lab.error_rates.stragglers [--runs N]`` prints it: seeded, the same everywhere.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from omb_py.results.analysis.stragglers import Last, stragglers

AGAIN = (0.0, 0.5, 0.9, 0.97, 0.99)
"""Probabilities that the last rank stays the last without a draw."""
SETTINGS = tuple((ranks, calls, cells) for ranks in (2, 4, 16) for calls in (100, 1000) for cells in (1, 4))


def last_ranks(draw: np.random.Generator, ranks: int, calls: int, again: float, odds: float = 1.0) -> NDArray[np.int64]:
    """The rank that is last in each call: with `again` that of the call before, else drawn.

    `odds`: how many times as often rank 0 is drawn as another.
    """
    weights = np.ones(ranks)
    weights[0] = odds
    drawn = draw.choice(ranks, calls, p=weights / weights.sum())
    new = np.where(draw.random(calls) >= again, np.arange(calls), 0)
    chosen: NDArray[np.int64] = drawn[np.maximum.accumulate(new)]
    return chosen


def cell(last: NDArray[np.int64], ranks: int) -> Last:
    """What a cell says of its calls."""
    shares = [float((last == rank).mean()) for rank in range(ranks)]
    return Last(shares, last.size, float((last[1:] != last[:-1]).sum()))


def rate(ranks: int, calls: int, cells: int, again: float, runs: int, odds: float = 1.0) -> float:
    """Share of runs in which any rank is named; with `odds` above 1: in which rank 0 and no other is."""
    named, draw = 0, np.random.default_rng([ranks, calls, cells, round(1000 * again)])
    for _ in range(runs):
        late = stragglers([cell(last_ranks(draw, ranks, calls, again, odds), ranks) for _ in range(cells)])
        named += [straggler.rank for straggler in late] == [0] if odds > 1 else bool(late)
    return named / runs


def main(words: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    args = parser.parse_args(words)
    print("| ranks | calls | cells | " + " | ".join(f"{again:g}" for again in AGAIN) + " | rank 0 late, 0 | 0.9 |")
    print("|---" * (5 + len(AGAIN)) + "|")
    print("| promised | | " + "| 1 % " * len(AGAIN) + "| | |")
    for ranks, calls, cells in SETTINGS:
        false = [rate(ranks, calls, cells, again, args.runs) for again in AGAIN]
        # last in nine draws of ten
        power = [rate(ranks, calls, cells, again, args.runs // 10, 9.0 * (ranks - 1)) for again in (0.0, 0.9)]
        shown = " | ".join([*(f"{share:.1%}" for share in false), *(f"{share:.0%}" for share in power)])
        print(f"| {ranks} | {calls} | {cells} | {shown} |".replace("%", " %"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
