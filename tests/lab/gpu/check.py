"""NCCL, MPI and Gloo on the memory of one GPU, every byte checked: ``make gpu-check``, or ``pytest -m gpu``.

Needs a machine with a GPU, its driver, CuPy, an NCCL library (of CuPy's or torch's wheels, or in OMB_PY_NCCL), mpi4py
and an MPI library; PyTorch for Gloo. Prints what each part costs and a table for each launch, and writes Parquet.
``python -m tests.lab.gpu.check [--store FOLDER] [--sizes M] [--limit S] … [DEVICE [PART…]]``: where time is short, parts
can be run one by one. A part that the time limit leaves out fails by name. With another device (``sim``, and the
stand-in library in OMB_PY_NCCL) it tries itself. What is run is in :mod:`tests.lab.gpu.parts`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

import omb_py
from omb_py.engine.program.buffers import ON_DEVICE
from omb_py.launchers.mpi_library import mpi_library
from omb_py.printing.tables import results_table
from tests.lab.gpu.cells import run_group
from tests.lab.gpu.parts import RANKS, Part, absent, arrays, parts, suite_text
from tests.lab.gpu.processes import run_within
from tests.support.machines.mpi import environment

SIZES, ITERATIONS, WARMUP = "8,64K,1M", 20, 5
LIMIT_S, PART_LIMIT_S = 450.0, 150.0
"""Seconds of all parts together and of one, where the command line says nothing: with the table, within 8 minutes."""
ONE_RANK = "nccl with one rank"
WIDTH = 240
"""Columns of the tables."""


@dataclass(slots=True)
class Budget:
    """Seconds that parts may take, and those that they took."""

    limit_s: float = LIMIT_S
    part_limit_s: float = PART_LIMIT_S
    clock: Callable[[], float] = time.monotonic
    spent: dict[str, float] = field(default_factory=dict)
    """Part -> seconds."""

    def left(self) -> float:
        """Seconds that the next part may take; 0 where all are spent."""
        return max(0.0, min(self.part_limit_s, self.limit_s - sum(self.spent.values())))

    def take(self, name: str, run: Callable[[float], str]) -> str:
        """Run a part with the seconds that are left, and say what it cost. Returns what failed, or nothing."""
        left = self.left()
        if not left:
            return f"not begun: the {self.limit_s:g} s of --limit were spent"
        began = self.clock()
        problem = run(left)
        self.spent[name] = self.clock() - began
        print(f"{name:<40} {self.spent[name]:7.1f} s  {'FAILED' if problem else 'ok'}", flush=True)
        return problem


@dataclass(frozen=True, slots=True)
class Check:
    """A device, and how much is measured on it."""

    device: str
    store: Path
    sizes: str = SIZES
    iterations: int = ITERATIONS
    warmup: int = WARMUP
    budget: Budget = field(default_factory=Budget)

    def words(self, part: Part) -> list[str]:
        """The command line of a part, after ``omb-py``. Writes its suite into the store's folder."""
        if part.command:
            where = ["-d", self.device, "--share-device", "-n", str(RANKS), "-m", self.sizes]
            counts = ["-i", str(self.iterations), "-x", str(self.warmup), "-c", "--format", "table"]
            return [part.command[0], *where, *counts, "--store", str(self.store), *part.command[1:]]
        self.store.mkdir(parents=True, exist_ok=True)
        file = self.store / f"{part.name.replace(' ', '-')}.toml"
        file.write_text(suite_text(part, self.device, self.sizes, self.iterations, self.warmup))
        return ["run", str(file), "--store", str(self.store)]

    def run(self, part: Part) -> str:
        """Run a part; returns what failed, or nothing."""
        return self.budget.take(part.name, lambda limit_s: self._run(part, limit_s))

    def _run(self, part: Part, limit_s: float) -> str:
        words = [sys.executable, "-m", "omb_py", *self.words(part)]
        code, _, err = run_within(limit_s, words, environment(**part.environ))
        if code is None:
            return f"not done within {limit_s:.0f} s"
        skipped = [line for line in err.splitlines() if "skipped" in line]
        if code:
            return f"exit status {code}: {err[-1000:]}"
        return f"exit status 0, but {skipped}" if skipped else ""


def alone(part: Part) -> list[Part]:
    """Each benchmark of a part by itself: which of them is it that fails?"""
    return [
        replace(part, name=f"{part.name} {name} {number}", suite=({**entry, "benchmarks": [name]},))
        for number, entry in enumerate(part.suite, 1)
        for name in entry["benchmarks"]
    ]


def one_rank(device: str, limit_s: float) -> str:
    """The collectives of NCCL with a single rank; returns what failed, or nothing."""
    return run_group("collectives", device, limit_s)[1]


def run_all(check: Check, chosen: Sequence[Part] | None = None, one: bool = False) -> dict[str, str]:
    """Run everything, print the tables; returns what failed by name, and what was left out with its reason.

    Args:
        check: device and amounts.
        chosen: some parts instead of all.
        one: run NCCL with one rank before them, as before all.
    """
    budget, problems = check.budget, dict[str, str]()
    if chosen is None or one:
        problems[ONE_RANK] = budget.take(ONE_RANK, lambda limit_s: one_rank(check.device, limit_s))
    vendor = mpi_library().vendor
    for name, why in absent(check.device).items():
        print(f"left out: binding {name}: {why}")
    for name in (name for name in ON_DEVICE if name not in arrays(check.device)):
        print(f"left out: buffer {name}: its package is not here, or not for this device")
    for part in parts(check.device) if chosen is None else chosen:
        if why := part.applies(check.device, vendor):
            print(f"left out: {part.name}: {why}")
            continue
        problems[part.name] = check.run(part)
        if problems[part.name] and part.suite and len(alone(part)) > 1:
            problems |= {single.name: check.run(single) for single in alone(part) if budget.left()}
    print(f"{'all parts':<40} {sum(budget.spent.values()):7.1f} s of {budget.limit_s:g}", flush=True)
    rows = omb_py.load(check.store).to_dict("records") if any(check.store.rglob("*.parquet")) else []
    print_tables(rows)
    return {name: text for name, text in problems.items() if text}


def print_tables(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table for each launch: what its rows share is in the title, so the numbers are not cut."""
    console = Console(width=WIDTH)
    for launch in dict.fromkeys(row["launch_id"] for row in rows):
        console.print(results_table([row for row in rows if row["launch_id"] == launch]))


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a number from 1 on, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"seconds above 0, not {text!r}")
    return value


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; ``parts`` are the chosen parts, None where none is named. Exits with 2 for a wrong word."""
    words = argparse.ArgumentParser(prog="python -m tests.lab.gpu.check")
    words.add_argument("--store", type=Path)
    words.add_argument("--sizes", default=SIZES, metavar="M", help="message sizes, as of -m (%(default)s)")
    words.add_argument("--iterations", type=_count, default=ITERATIONS, metavar="N", help="(%(default)s)")
    words.add_argument("--warmup", type=_count, default=WARMUP, metavar="N", help="(%(default)s)")
    words.add_argument("--limit", type=_seconds, default=LIMIT_S, metavar="S", help="s of all parts (%(default)g)")
    words.add_argument("--part-limit", type=_seconds, default=PART_LIMIT_S, metavar="S", help="of one (%(default)g)")
    words.add_argument("device", nargs="?", default="cuda", choices=("cuda", "rocm", "sim"))
    words.add_argument("part", nargs="*")
    read = words.parse_args(given)
    known = {part.name: part for part in parts(read.device)}
    if unknown := [name for name in read.part if name not in (*known, ONE_RANK)]:
        words.error(f"no part {unknown[0]!r}: {', '.join(map(repr, (ONE_RANK, *known)))}")
    read.parts = [known[name] for name in read.part if name != ONE_RANK] if read.part else None
    return read


def main() -> int:
    """Exit status 1 when anything failed."""
    given = arguments()
    store = given.store or Path(tempfile.mkdtemp(prefix="omb-gpu-check-"))
    budget = Budget(given.limit, given.part_limit)
    check = Check(given.device, store, given.sizes, given.iterations, given.warmup, budget)
    failed = run_all(check, given.parts, one=ONE_RANK in given.part)
    print(f"rows are in {check.store}")
    for name, text in failed.items():
        print(f"FAILED {name}: {text}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
