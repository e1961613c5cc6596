"""``make test`` many times in a row, on a machine that is not always the same: ``python -m tests.lab.tiers.again --times 20``.

The runs take turns: nothing else, four processes that compute beside them, tests in a random order, a last-level cache of 480 MiB,
one of 8 MiB. Ends with 1 when a run is red; each run's output is kept.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from omb_py.engine.measuring.cache_rotation import CACHE_BYTES
from tests.lab.computing import beside
from tests.lab.tiers.shuffled import VARIABLE as ORDER

LOAD = "a load of four"
MACHINES: dict[str, dict[str, str]] = {
    "nothing else": {},
    LOAD: {},
    "random order": {"PYTEST_ADDOPTS": "-p tests.lab.tiers.shuffled"},
    "480 MiB of cache": {CACHE_BYTES: str(480 << 20)},
    "8 MiB of cache": {CACHE_BYTES: str(8 << 20)},
}
"""What differs -> the variables that make it so."""


def passed(output: str) -> list[int]:
    """How many tests passed, of each pytest of a run."""
    return [int(number) for number in re.findall(r"^=*\s*(?:\d+ \w+, )*?(\d+) passed", output, re.M)]


def main(words: Sequence[str] | None = None) -> int:
    """Run, a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", choices=MACHINES, action="append", help="these kinds of runs, in turns")
    parser.add_argument("--first", type=int, default=1, help="number of the first run; of a series that was cut off")
    parser.add_argument("--logs", type=Path, default=Path("build/again"))
    asked = parser.parse_args(words)
    asked.logs.mkdir(parents=True, exist_ok=True)
    kinds, red = asked.only or list(MACHINES), 0
    for number in range(asked.first, asked.times + 1):
        kind = kinds[(number - 1) % len(kinds)]
        order = {ORDER: str(number)} if "PYTEST_ADDOPTS" in MACHINES[kind] else {}
        log = asked.logs / f"{number}.log"
        began = time.monotonic()
        with beside(4 if kind == LOAD else 0), log.open("w") as file:
            code = subprocess.call(
                ["make", "test"], stdout=file, stderr=subprocess.STDOUT, env=os.environ | MACHINES[kind] | order
            )
        red += code != 0
        counts = " + ".join(f"{count:,}" for count in passed(log.read_text()))
        minutes, seconds = divmod(round(time.monotonic() - began), 60)
        print(
            f"{number} of {asked.times}  {kind:<16}  {'RED' if code else 'green'}  {counts} passed  {minutes}:{seconds:02}  {log}",
            flush=True,
        )
    print(f"red: {red} of {asked.times - asked.first + 1}")
    return int(red > 0)


if __name__ == "__main__":
    sys.exit(main())
