"""What a report costs: ``python -m tests.lab.results.report_costs [CELLS…]``.

Writes stores of about so many cells (three libraries, eight benchmarks, six numbers of GPUs), runs ``omb-py report`` on
each in a process of its own, and prints processor time, largest memory and size of the page with the bars of 10 000 and
1 000 000 cells. Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import gpu_store

BENCHMARKS = tuple("allreduce allgather alltoall bcast reduce gather scatter reduce_scatter".split())
EACH = len(BENCHMARKS) * len(gpu_store.SIZES) * len(gpu_store.GPUS) * len(gpu_store.SIDES)
"""Cells of a launch of each side and number of GPUs."""
SMALL, LARGE = 10_000, 1_000_000
BARS = {SMALL: (3.0, math.inf), LARGE: (30.0, 1000.0)}
"""Cells -> seconds of processor time, and MB, at most."""
PAGE_MB = 2.5


def cost(folder: Path, cells: int) -> tuple[float, float, float]:
    """Processor seconds, MB of memory and MB of the page."""
    store, page = folder / "store", folder / "report.html"
    gpu_store.write(store, benchmarks=BENCHMARKS, launches=math.ceil(cells / EACH))
    command = [sys.executable, "-m", "omb_py", "report", str(store), "-o", str(page)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"omb-py report ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, page.stat().st_size / 1e6


def main() -> int:
    missed = False
    for cells in [int(word) for word in sys.argv[1:]] or [SMALL]:
        with tempfile.TemporaryDirectory() as folder:
            seconds, memory, page = cost(Path(folder), cells)
        most_seconds, most_memory = BARS[LARGE if cells > SMALL else SMALL]
        missed |= seconds > most_seconds or memory > most_memory or page > PAGE_MB
        real = math.ceil(cells / EACH) * EACH
        print(
            f"{real} cells: {seconds:.2f} s of processor time ({most_seconds:g}), {memory:.0f} MB, page {page:.2f} MB"
        )
    return int(missed)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
