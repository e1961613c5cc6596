"""NCCL, MPI and Gloo on the memory of one GPU, every byte checked: ``make gpu-check``, or ``pytest -m gpu``.

Needs a machine with a GPU, its driver, CuPy, an NCCL library (of CuPy's or torch's wheels, or in OMB_PY_NCCL), mpi4py
and an MPI library; PyTorch for Gloo. Prints one table and writes Parquet. ``python -m tests.gpu.check [--store FOLDER]
[DEVICE [PART…]]``: where time is short, parts can be run one by one. With another device (``sim``, and the stand-in
library in OMB_PY_NCCL) it tries itself. What is run is in :mod:`tests.gpu.parts`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

import omb_py
from omb_py.backends.mpi_library import mpi_library
from omb_py.dashboards.terminal.tables import results_table
from omb_py.engine.program.buffers import ON_DEVICE
from tests.gpu.parts import COLLECTIVES, RANKS, Part, absent, arrays, parts, suite_text
from tests.support.machines.mpi import ROOT, environment

LONGEST_S, ALONE_S = 600, 300


@dataclass(frozen=True, slots=True)
class Check:
    """A device, and how much is measured on it."""

    device: str
    store: Path
    sizes: str = "8,1K,64K,1M"
    iterations: int = 50

    def words(self, part: Part) -> list[str]:
        """The command line of a part, after ``omb-py``. Writes its suite into the store's folder."""
        if part.command:
            where = ["-d", self.device, "--share-device", "-n", str(RANKS), "-m", self.sizes]
            counts = ["-i", str(self.iterations), "-c", "--format", "table"]
            return [part.command[0], *where, *counts, "--store", str(self.store), *part.command[1:]]
        self.store.mkdir(parents=True, exist_ok=True)
        file = self.store / f"{part.name.replace(' ', '-')}.toml"
        file.write_text(suite_text(part, self.device, self.sizes, self.iterations))
        return ["run", str(file), "--store", str(self.store)]

    def run(self, part: Part) -> str:
        """Run a part; returns what failed, or nothing."""
        words = self.words(part)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "omb_py", *words],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=LONGEST_S,
                env=environment(**part.environ),
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return f"not done within {LONGEST_S} s"
        skipped = [line for line in done.stderr.splitlines() if "skipped" in line]
        if done.returncode:
            return f"exit status {done.returncode}: {done.stderr[-1000:]}"
        return f"exit status 0, but {skipped}" if skipped else ""


def alone(part: Part) -> list[Part]:
    """Each benchmark of a part by itself: which of them is it that fails?"""
    return [
        replace(part, name=f"{part.name} {name} {number}", suite=({**entry, "benchmarks": [name]},))
        for number, entry in enumerate(part.suite, 1)
        for name in entry["benchmarks"]
    ]


def one_rank(device: str) -> str:
    """NCCL with a single rank, which the command line does not start; returns what failed, or nothing."""
    cells = json.dumps([{"benchmark": name, "size": 65536} for name in COLLECTIVES])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.sessions.nccl_cells", cells],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env=environment(OMB_PY_TEST_DEVICE=device),
            stdin=subprocess.DEVNULL,
            timeout=ALONE_S,
        )
    except subprocess.TimeoutExpired:  # the other parts are worth running
        return f"not done within {ALONE_S} s"
    if done.returncode:
        return f"exit status {done.returncode}: {done.stderr[-2000:]}"
    bad = [
        f"{name}: {cell}"
        for name, cell in zip(COLLECTIVES, json.loads(done.stdout.splitlines()[-1]), strict=True)  # NCCL may print, too
        if cell.get("wrong") != 0
    ]
    return "; ".join(bad)


def run_all(check: Check, chosen: Sequence[Part] | None = None) -> dict[str, str]:
    """Run everything, print the table; returns what failed by name, and what was left out with its reason."""
    told = {"nccl with one rank": one_rank(check.device)} if chosen is None else {}
    vendor = mpi_library().vendor
    for name, why in absent(check.device).items():
        print(f"left out: binding {name}: {why}")
    for name in (name for name in ON_DEVICE if name not in arrays(check.device)):
        print(f"left out: buffer {name}: its package is not here, or not for this device")
    for part in parts(check.device) if chosen is None else chosen:
        if why := part.applies(check.device, vendor):
            print(f"left out: {part.name}: {why}")
            continue
        told[part.name] = check.run(part)
        if told[part.name] and part.suite and len(alone(part)) > 1:
            told |= {single.name: check.run(single) for single in alone(part)}
    rows = omb_py.load(check.store).to_dict("records") if any(check.store.rglob("*.parquet")) else []
    Console(width=240).print(results_table(rows))
    return {name: text for name, text in told.items() if text}


def main() -> int:
    """Exit status 1 when anything failed."""
    words = argparse.ArgumentParser(prog="python -m tests.gpu.check")
    words.add_argument("--store", type=Path)
    words.add_argument("device", nargs="?", default="cuda", choices=("cuda", "rocm", "sim"))
    words.add_argument("part", nargs="*")
    given = words.parse_args()
    known = {part.name: part for part in parts(given.device)}
    if unknown := [name for name in given.part if name not in known]:
        words.error(f"no part {unknown[0]!r}: {', '.join(map(repr, known))}")
    check = Check(given.device, given.store or Path(tempfile.mkdtemp(prefix="omb-gpu-check-")))
    failed = run_all(check, [known[name] for name in given.part] or None)
    print(f"rows are in {check.store}")
    for name, text in failed.items():
        print(f"FAILED {name}: {text}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
