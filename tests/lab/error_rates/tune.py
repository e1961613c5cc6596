"""How often a tuning errs: libraries with planted costs, a whole tuning of each, and what it costs.

python -m tests.lab.error_rates.tune --seeds 200

It ends with 1 if of any kind of launches fewer than 95 % find all boundaries, more than 1 % leave a size over 5 % from
the best, or the mean cost is over 0.4 of the full grid; or if over 1 % of tunings of equal algorithms write a rule.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.support.machines.planted import all_equal, boundaries_right, planted, tune, worst_loss

MOST_COST = 0.4
KINDS = {
    "spread 2 %": {"spread": 0.02},
    "spread 1 %": {"spread": 0.01},
    "spread 5 %": {"spread": 0.05},
    "spread 2 %, one launch in ten 1.5 times as slow": {"spread": 0.02, "slow_share": 0.1},
}
EFFECTS = ("t3", "AR 0.3", "AR 0.5", "AR 0.9", "night", "drift", "ties")
"""Other kinds of launches, of equal algorithms only: what is written is held to its promise by the proof."""
HEADS = ("launches", "boundaries within one doubling", "a size over 5 % from the best", "cost", "launches made")


def planted_costs(seeds: range) -> bool:
    """Print what tunings of planted costs end in; True where a bar is missed."""
    print(f"| {' | '.join(HEADS)} |\n|---|---|---|---|---|", flush=True)
    print(f"| promised | 95 % | 1 % | {MOST_COST} in the mean | |", flush=True)
    bad = False
    for name, noise in KINDS.items():
        began = time.process_time()
        right = wrong = 0
        shares, launches = [], []
        for seed in seeds:
            library = planted(seed, **noise)
            tuned = tune(library, seed)
            right += boundaries_right(library, tuned.chosen)
            wrong += worst_loss(library, tuned.chosen) > 0.05
            shares.append(tuned.share)
            launches.append(tuned.launches)
        n = len(seeds)
        print(
            f"| {name} | {right} of {n} | {wrong} of {n} | {sum(shares) / n:.2f}, at most {max(shares):.2f} | "
            f"{sum(launches) / n:.0f} |",
            flush=True,
        )
        bad = bad or right < 0.95 * n or wrong > 0.01 * n or sum(shares) > MOST_COST * n
        print(f"{time.process_time() - began:.0f} s", file=sys.stderr)
    return bad


def equal_costs(seeds: range) -> bool:
    """Print how often a tuning of equal algorithms writes no rule; True where under 99 % of them."""
    print("\n| launches of equal algorithms | no rule | cost |\n|---|---|---|\n| promised | 99 % | |", flush=True)
    bad = False
    for name, noise in {**KINDS, **{f"spread 2 %, {kind}": {"kind": kind} for kind in EFFECTS}}.items():
        ends = [tune(all_equal(**noise), seed) for seed in seeds]
        none = sum(not end.rules for end in ends)
        print(f"| {name} | {none} of {len(ends)} | {sum(e.share for e in ends) / len(ends):.2f} |", flush=True)
        bad = bad or none < 0.99 * len(ends)
    return bad


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--equal", action="store_true", help="equal algorithms only")
    given = parser.parse_args(words)
    seeds = range(given.first, given.first + given.seeds)
    bad = not given.equal and planted_costs(seeds)
    return int(equal_costs(seeds) or bad)


if __name__ == "__main__":
    sys.exit(main())
