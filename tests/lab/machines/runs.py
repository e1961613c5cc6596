"""Real runs on a machine, with all that comes after them: ``python -m tests.lab.machines.runs [small-shm]`` prints JSON.

Two ranks measure with every byte checked, ``--cache rotate`` takes memory that was not touched, and the store is read.
With little shared memory a library may end the run; then the last lines must name /dev/shm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.machines.mpi import YIELD

TAKEN_S = 200
"""Seconds after which a run hangs."""
RANKS = ("--backend", "mpi", "-n", "2", "-i", "20", "--timeout", "120")
RUNS = (
    ("latency", "-m", "8:1024:8", "-c", *RANKS),
    ("allreduce", "-m", "1024:1024", "--cache", "rotate", *RANKS),
    ("doctor",),
    ("results", "list"),
    ("results", "verify"),
)
"""Words of the commands, in order; each gets the same store where it takes one."""


def wrong_with(words: Sequence[str], folder: Path, small_shm: bool) -> str:
    """What is wrong with a run; nothing where it went well."""
    store = () if words[0] == "doctor" else ("--store", str(folder / "a store"))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "omb_py", *words, *store],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=TAKEN_S,
            env={**os.environ, **YIELD},
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(words)}: it did not end within {TAKEN_S} s"
    said = done.stderr + done.stdout
    if "Traceback" in said:
        return f"{' '.join(words)}: a traceback: {said[-600:]}"
    if done.returncode and not (small_shm and done.returncode == 3 and "/dev/shm" in done.stderr):
        return f"{' '.join(words)}: exit code {done.returncode}: {said[-600:]}"
    return ""


def main(words: Sequence[str]) -> None:
    """Make all runs."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = [wrong_with(run, Path(folder), "small-shm" in words) for run in RUNS]
    print(json.dumps({"runs": len(RUNS), "wrong": [text for text in wrong if text]}))


if __name__ == "__main__":
    main(sys.argv[1:])
