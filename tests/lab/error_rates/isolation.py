"""How often ``links --isolate`` names exactly what is slow among 1,024 simulated nodes, and an innocent one.

python -m tests.lab.error_rates.isolation --searches 200 [--nodes 1024 --per-switch 32 --slower 1.5 --faults "a link"]
"""

from __future__ import annotations

import argparse
import sys

from tests.lab.error_rates.accept import rate
from tests.support.machines.slow_groups import FAULTS, KINDS, broken, searched, switches_of

LEAST_EXACT, MOST_INNOCENT = 0.95, 0.01


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("searches", 200), ("nodes", 1024), ("per-switch", 32), ("first", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--slower", type=float, default=1.5)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    asked = parser.parse_args(arguments)
    print("| slow | launches | named exactly | innocents named | launches, mean and most |\n|---|---|--:|--:|--:|")
    print(f"| promised | | {LEAST_EXACT:.0%} | {MOST_INNOCENT:.0%} | 34, and 6 around them |")
    right = True
    switches = switches_of(asked.nodes, asked.per_switch)
    possible = FAULTS if switches else FAULTS[:-2]
    for fault in (fault for fault in asked.faults if fault in possible):
        for kind in KINDS:
            exact, innocent, launches = 0, 0, []
            for seed in range(asked.first, asked.first + asked.searches):
                machine, wanted = broken(fault, asked.nodes, asked.per_switch, kind, seed, asked.slower)
                search = searched(machine, switches, seed)
                exact += set(search.named) == wanted
                innocent += bool(set(search.named) - wanted)
                launches.append(search.launches)
            shown = f"{rate(exact, asked.searches)} | {rate(innocent, asked.searches)}"
            print(f"| {fault} | {kind} | {shown} | {sum(launches) / len(launches):.0f}, {max(launches)} |", flush=True)
            right &= exact >= LEAST_EXACT * asked.searches and innocent <= MOST_INNOCENT * asked.searches
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
