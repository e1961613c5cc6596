"""``python -m tests.lab.torture.series [--runs 300] [--real 6]``: many runs in a row, and what they leave.

In a namespace with a /tmp and a /dev/shm of its own: runs on simulated ranks in one process, then real ones. After each
no file, open descriptor, thread or process may be left that was not there before, and every printed row is stored.
Exit code 1 where something is wrong. Linux and root, or user namespaces.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tests.lab.torture.__main__ import isolated
from tests.lab.torture.moment import everything, processes, rows_of
from tests.lab.torture.workloads import announced
from tests.support.machines.mpi import YIELD, run_command

STORE = Path("/tmp/store")
RUN = ("allreduce", "-m", "8:16", "-i", "10", "--store", str(STORE))
REAL = (*RUN, "--backend", "mpi", "-n", "2", "--timeout", "120")


def held() -> dict[str, int]:
    """What this process holds, by kind: numbers."""
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": threading.active_count()}


def files() -> set[str]:
    """Files in /tmp and /dev/shm beside the store."""
    return {path for path in everything() if not path.startswith(str(STORE))}


def simulated(count: int, wrong: list[str]) -> int:
    """Runs in this process; how many rows they printed. The first one may open what stays, as a library."""
    from omb_py.cli import main

    printed, before, there = 0, dict[str, int](), set[str]()
    for number in range(count):
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            code = main([*RUN, "--backend", "mock"])
        printed += len(announced(out.getvalue()))
        if number == 0:
            before, there = held(), files()
        if code or held() != before or files() != there:
            wrong.append(f"run {number}: exit code {code}, {held()} after {before}, {sorted(files() - there)[:5]}")
    return printed


def real(count: int, wrong: list[str]) -> int:
    """Runs of two MPI processes; how many rows they printed."""
    printed, there = 0, files()
    for number in range(count):
        words = [sys.executable, "-m", "omb_py", *REAL]
        done = run_command(words, **YIELD)
        printed += len(announced(done.stdout))
        left = [*sorted(files() - there), *processes().values()]
        if done.returncode or left:
            wrong.append(f"real run {number}: exit code {done.returncode}, left {left[:5]} {done.stderr[-300:]}")
    return printed


def main(words: Sequence[str] | None = None) -> int:
    """Print what happened."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.torture.series", description="Many runs in a row.")
    parser.add_argument("--runs", type=int, default=300, help="on simulated ranks")
    parser.add_argument("--real", type=int, default=6, help="on two real ranks")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.inside:
        wrong: list[str] = []
        printed = simulated(given.runs, wrong) + real(given.real, wrong)
        print(json.dumps({"printed": printed, "stored": len(rows_of(STORE)), "wrong": wrong}))
        return 0
    options = ("--inside", "--runs", str(given.runs), "--real", str(given.real))
    found = isolated(sys.executable, "tests.lab.torture.series", *options, seconds=7200)
    wrong = found["wrong"]
    if found.get("printed") != found.get("stored"):
        wrong.append("printed rows are not the stored ones")
    print("\n".join(wrong[:20]), end="\n" if wrong else "")
    rows = f"{found.get('printed')} rows printed, {found.get('stored')} stored"
    print(f"{given.runs} runs and {given.real} real ones: {rows}; wrong: {len(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
