"""How often a report's first screen names every planted fault, and nothing that is sound.

``python -m tests.lab.error_rates.first_screen [SEEDS]`` writes stores of one library and of several, SEEDS of each (20),
in which the faults lie elsewhere each time. The exit code is 1 where one is not named or a sound one is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from omb_py.dashboards.base.reading import StoreSelection
from omb_py.dashboards.base.view import MOST_ITEMS
from omb_py.dashboards.report.build import report
from tests.support import planted_cluster, planted_store

STORES: dict[str, tuple[ModuleType, str]] = {
    "one library": (planted_store, ""),
    "several libraries": (planted_cluster, "faster with NCCL 2.27.3"),
}
"""The module that plants faults, and words of a line that is right and names no fault."""
FIRST_SEED = 201


def judge(plant: ModuleType, true: str, seed: int) -> tuple[list[str], list[str]]:
    """The faults that no line of the first screen names, or more than one does; and the lines that name none."""
    with tempfile.TemporaryDirectory() as folder:
        planted = plant.write(Path(folder), seed)
        lines = [item.text for item in report(Path(folder), StoreSelection()).changes][:MOST_ITEMS]
    named, others = planted_store.judged(lines, planted)
    return [fault for fault, once in named.items() if not once], [
        line for line in others if not true or true not in line
    ]


def main(words: Sequence[str]) -> int:
    """Print a line for each store that fails, and a table of both kinds."""
    seeds = range(FIRST_SEED, FIRST_SEED + (int(words[0]) if words else 20))
    table = []
    for name, (plant, true) in STORES.items():
        right = 0
        for seed in seeds:
            missed, innocent = judge(plant, true, seed)
            right += not missed and not innocent
            for text in [*(f"missed: {fault}" for fault in missed), *(f"innocent: {line}" for line in innocent)]:
                print(f"{name}, seed {seed}: {text}", flush=True)
        table.append((name, right))
    print("| store | stores | every fault named, nothing else |\n|---|--:|--:|")
    for name, right in table:
        print(f"| {name} | {len(seeds)} | {right} |")
    return int(any(right < len(seeds) for _, right in table))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
