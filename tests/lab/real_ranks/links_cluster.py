"""How often ``omb-py links`` names what is wrong with emulated hosts, and nothing else: every fault so many times.

    python -m tests.lab.real_ranks.links_cluster --times 20
    python -m tests.lab.real_ranks.links_cluster --gross --isolate --nodes 4 6 8 --faults "a late node"

Needs a machine that allows network namespaces, and nothing else to do; with ``--gross`` it may be busy. Every sweep is
printed, none is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from tests.support.machines.cluster import FAULTS, broken, named
from tests.support.machines.nodes import why_not


def count(nodes: int, fault: str, times: int, gross: bool, more: Sequence[str]) -> int:
    """How many of so many sweeps name what is wrong and nothing else; the hosts are made once."""
    wanted, right = FAULTS[fault].names, 0
    with broken(nodes, fault, gross=gross) as sweep:
        for number in range(times):
            began = time.monotonic()
            code, found, err = sweep("--seed", str(number), *more)
            fine = named(found) == wanted and code == bool(wanted)
            right += fine
            told = ", ".join(sorted(named(found))) or "nothing" if found else f"exit {code}: {err.strip()[-300:]}"
            print(
                f"  {nodes} hosts, {fault}: named {told}{'' if fine else f' (WRONG: {json.dumps(found)})'}, "
                f"{time.monotonic() - began:.1f} s",
                flush=True,
            )
    return right


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--gross", action="store_true", help="faults that other work on the machine does not hide")
    parser.add_argument("--isolate", action="store_true", help="by groups of nodes, not by all pairs")
    given = parser.parse_args(words)
    more = ("--isolate", "allreduce") if given.isolate else ()
    if why_not():
        print(why_not())
        return 3
    bad = 0
    for nodes in given.nodes:
        for fault in given.faults:
            right = count(nodes, fault, given.times, given.gross, more)
            print(f"{nodes} hosts, {fault}: {right} of {given.times}", flush=True)
            bad += given.times - right
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
