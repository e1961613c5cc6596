"""How often a sweep over healthy nodes names anyone, and how often it finds a node 6 % slow: many simulated fleets.

python -m tests.lab.error_rates.links --sweeps 400 [--effects]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from omb_py.results.checks.links import ALPHA
from tests.lab.error_rates.accept import rate
from tests.support.machines.fleet import KINDS, Fleet, found_in
from tests.support.synthetic import lower

MOST_FALSE, MOST_DRAWN, LEAST_FOUND = 0.05, 0.01, 0.99
EFFECTS = (4, 8, 16, 32, 64)
"""Nodes for which every kind of launch is tried."""
RACKS: Mapping[int, tuple[int, ...]] = {8: (6, 2), 16: (12, 4), 32: (20, 12), 64: (40, 20, 4)}
"""Nodes -> unequal racks."""


def kinds(nodes: int) -> Iterator[tuple[str, Fleet]]:
    """Healthy fleets, five launches each."""
    yield from ((kind, Fleet(nodes, passes=5, launches=kind)) for kind in KINDS)
    yield "a tenth of the pairs 30 % slower in each launch", Fleet(nodes, passes=5, drawn=0.1)
    if nodes in RACKS:
        yield f"racks of {', '.join(map(str, RACKS[nodes]))}", Fleet(nodes, passes=5, racks=RACKS[nodes])


def effects(sweeps: int, fleets: Sequence[int], only: str = "", first: int = 0) -> bool:
    """Print how often anyone is named in healthy fleets, and a slow node and link are; True where over 1 % of links."""
    heads = (
        "launches",
        "nodes",
        "sweeps that name anyone",
        "of the links",
        "node 6 % slow, found",
        "link 30 % slow, found",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n| promised | | 1 % | | | |")
    broken = False
    for nodes in fleets:
        for name, fleet in ((name, fleet) for name, fleet in kinds(nodes) if name.startswith(only)):
            named = [found_in(fleet, seed, fresh=True) for seed in range(first, first + sweeps)]
            if fleet.racks:  # two racks are a group behind an uplink; what else is named is wrong
                named = [[one for one in found if one.kind != "group"] for found in named]
            false, links = sum(map(bool, named)), sum(one.kind == "link" for found in named for one in found)
            seeds = range(first, first + sweeps // 4)
            slow = _ends(replace(fleet, slow={nodes // 3: 1.06}), seeds, ("node", (nodes // 3,)))
            link = _ends(replace(fleet, links={(0, 2): 1.3}), seeds, ("link", (0, 2)))
            shown = " | ".join(f"{count / len(seeds):.0%}" for count in (slow, link))
            of_links = links / (sweeps * nodes * (nodes - 1) // 2)
            print(f"| {name} | {nodes} | {rate(false, sweeps)} | {of_links:.3%} | {shown} |", flush=True)
            broken |= of_links > MOST_DRAWN or lower(false, sweeps) > ALPHA
    return broken


def _ends(fleet: Fleet, seeds: range, wanted: tuple[str, tuple[int, ...]]) -> int:
    return sum(wanted in {(one.kind, one.ends) for one in found_in(fleet, seed, fresh=True)} for seed in seeds)


GROUPS = (((6, 2), 1.2), ((4, 4), 1.2), ((6, 2), 1.1), ((9, 3), 1.5), ((12, 4), 1.2), ((20, 12), 1.2), ((56, 8), 1.2))
"""Sizes of a fleet's groups, of which the last is behind an uplink, and how much longer its links take."""


def groups(sweeps: int) -> None:
    """Print how often a group behind an uplink is named, and nothing else; and of healthy fleets any group."""
    print("| nodes | behind an uplink | its links take | named, and nothing else |\n|---|---|---|---|")
    for sizes, factor in GROUPS:
        nodes = sum(sizes)
        fleet, wanted = Fleet(nodes, passes=5, racks=sizes, between=factor), ("group", tuple(range(sizes[0], nodes)))
        found = [{(one.kind, one.ends) for one in found_in(fleet, seed, fresh=True)} for seed in range(sweeps)]
        print(f"| {nodes} | {sizes[1]} | × {factor} | {rate(found.count({wanted}), sweeps)} |", flush=True)
    print("\n| healthy nodes | any group named |\n|---|---|")
    for nodes in (6, 8, 16):
        looked = [(kind, seed) for kind in KINDS for seed in range(sweeps)]
        named = sum(
            any(one.kind == "group" for one in found_in(Fleet(nodes, passes=5, launches=kind), seed, fresh=True))
            for kind, seed in looked
        )
        print(f"| {nodes} | {rate(named, len(looked))} |", flush=True)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=400)
    parser.add_argument("--nodes", type=int, nargs="+", help="(default: 4 8 16 64, without --effects 1024 too)")
    parser.add_argument("--effects", action="store_true", help="launches of every kind instead, 4 to 64 nodes")
    parser.add_argument("--only", default="", help="with --effects: kinds whose name begins so")
    parser.add_argument("--first", type=int, default=0, help="with --effects: first seed (default: %(default)s)")
    parser.add_argument("--groups", action="store_true", help="groups behind an uplink instead")
    given = parser.parse_args(words)
    if given.groups:
        groups(given.sweeps)
        return 0
    if given.effects:
        return int(effects(given.sweeps, given.nodes or EFFECTS, given.only, given.first))
    bad = False
    print(f"{given.sweeps} sweeps; nodes differ by 0.8 %, a measurement by 1.5 % (standard deviations)", flush=True)
    for n in given.nodes or (*EFFECTS, 1024):
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
