"""What a report costs: ``python -m tests.lab.results.report_costs [--cells 10000 1000000]``.

Writes a store of so many made-up cells (:mod:`tests.support.wide_store`) and runs ``omb-py report`` on it in processes
of their own: once as the summary index is made, and again. Prints processor time (user and system, of all threads),
largest memory, bytes and figures of the page, each with its bar; exit code 1 where one is missed. Processor time is
printed because it depends little on what else runs; a busy machine still makes it longer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import wide_store

LARGE = 100_000
"""Cells from which the bars of a large store hold."""
SMALL_BARS = {"cpu": 3.0, "memory": 1000.0, "page": 2.5, "figures": 30.0}
LARGE_BARS = {"cpu": 30.0, "memory": 1000.0, "page": 10.0, "figures": 30.0}
"""Processor seconds, MB of memory, MB of the page, figures."""
RESTED_S = 2.5
"""Seconds after which a file counts as written: the index leaves younger ones out."""


@dataclass(frozen=True)
class Cost:
    """What one run of ``omb-py report`` took and gave."""

    cpu: float
    memory: float
    page: float
    figures: float


def cost(store: Path, page: Path) -> Cost:
    """Run it in a process of its own."""
    words = [sys.executable, "-m", "omb_py", "report", str(store), "-o", str(page)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(words)}")
    text = page.read_text(encoding="utf-8")
    size = len(text.encode()) / 1e6
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, size, text.count('class="plot"'))


def lines(cells: int, folder: Path) -> Iterator[tuple[str, bool]]:
    """The rows of the table for one store, and whether each holds its bars."""
    launches = wide_store.write(folder / "store", cells)
    time.sleep(RESTED_S)
    bars = SMALL_BARS if cells < LARGE else LARGE_BARS
    for when in ("first", "again"):
        taken = cost(folder / "store", folder / "report.html")
        values = {name: getattr(taken, name) for name in bars}
        shown = " | ".join(f"{values[name]:.4g} of {bars[name]:g}" for name in bars)
        yield f"| {launches * wide_store.CELLS} | {when} | {shown} |", all(values[n] <= bars[n] for n in bars)


def main(words: list[str] | None = None) -> int:
    """Write the stores and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="+", default=[10_000, 1_000_000])
    held = True
    print("| cells | time | processor s | memory MB | page MB | figures |\n|--:|---|--:|--:|--:|--:|")
    for cells in parser.parse_args(words).cells:
        with tempfile.TemporaryDirectory() as folder:
            for line, holds in lines(cells, Path(folder)):
                print(line, flush=True)
                held &= holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
