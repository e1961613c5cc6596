"""How often a sweep over healthy nodes names anyone, and how often it finds a node 6 % slow: many simulated fleets.

python -m tests.bench.links_fleet --sweeps 400
"""

from __future__ import annotations

import argparse
import sys

from tests.support.machines.fleet import Fleet, found_in

MOST_FALSE, MOST_DRAWN, LEAST_FOUND = 0.05, 0.01, 0.99


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 16, 64, 1024])
    given = parser.parse_args(words)
    bad = False
    print(f"{given.sweeps} sweeps; nodes differ by 0.8 %, a measurement by 1.5 % (standard deviations)", flush=True)
    for n in given.nodes:
        noisy = {} if n > 16 else {"passes": 5}
        false = sum(bool(found_in(Fleet(n, **noisy), seed)) for seed in range(given.sweeps)) / given.sweeps
        hit = extra = 0
        for seed in range(given.sweeps):
            found = {(one.kind, one.ends) for one in found_in(Fleet(n, slow={n // 3: 1.06}, **noisy), seed)}
            hit += ("node", (n // 3,)) in found
            extra += bool(found - {("node", (n // 3,))})
        share = hit / given.sweeps
        drawn = Fleet(n, passes=5, drawn=0.1)
        chance = sum(bool(found_in(drawn, seed, fresh=True)) for seed in range(given.sweeps)) / given.sweeps
        steady = Fleet(n, passes=5, drawn=0.1, links={(0, 2): 1.3})
        link = sum(
            ("link", (0, 2)) in {(one.kind, one.ends) for one in found_in(steady, seed, fresh=True)}
            for seed in range(given.sweeps)
        )
        print(
            f"{n:5} nodes: healthy, someone named {false:6.2%}; one 6 % slow, found {share:7.2%}, "
            f"another named {extra / given.sweeps:.2%}",
            flush=True,
        )
        print(
            f"{n:5} nodes, five launches, each slows a tenth of the pairs by 30 %: someone named {chance:6.2%}; "
            f"a link 30 % slow in all, found {link / given.sweeps:7.2%}",
            flush=True,
        )
        bad = bad or chance > MOST_DRAWN or false > MOST_FALSE or (n >= 64 and share < LEAST_FOUND)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
