"""``python -m tests.lab.torture.crowd [--writers 16] [--launches 20]``: a store that many change at once.

Processes write launches of two rows, one merges all days, one removes launches, and this one reads. Every reading has
whole launches, each once, and none that was removed before it began. In the end the store holds each launch that was
written and not removed, once, with its provenance, and is whole. Exit code 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from omb_py.errors import EnvironmentProblem
from omb_py.results.store.compaction import compact, prune
from omb_py.results.store.integrity import verify
from omb_py.results.store.paths import files
from omb_py.results.store.provenance import provenances
from omb_py.results.store.read import load
from tests.architecture.graph import ROOT

WRITER = ROOT / "tests" / "results" / "store" / "writers.py"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
"""After the days that the writers give their launches."""
PAUSE_S = 0.05


def launches_in(store: Path, wrong: list[str]) -> list[str]:
    """The launches of one reading."""
    frame = load(store, columns=["launch_id", "size_bytes"], on_skip=lambda path, why: wrong.append(f"{path}: {why}"))
    if frame.duplicated().any():
        wrong.append("a row stands twice in a reading")
    counted = frame.launch_id.value_counts()
    if (counted != 2).any():
        wrong.append(f"a reading has parts of launches: {counted[counted != 2].to_dict()}")
    return sorted(counted.index)


def merging(store: Path, over: Path) -> None:
    """Merge until the others are done; prints how many files were made."""
    made = 0
    (over.parent / "merges").touch()
    while not over.exists():
        with suppress(EnvironmentProblem):  # the other one removes: the call may be repeated
            made += len(compact(store, timedelta(days=1), now=NOW))
        time.sleep(PAUSE_S)
    print(made)


def removing(store: Path, over: Path) -> None:
    """Remove every third launch once it is there, until the others are done; prints each when it is gone."""
    gone: set[str] = set()
    (over.parent / "removes").touch()
    while not over.exists():
        found = {name for name in launches_in(store, []) if int(name.partition("-")[2]) % 3 == 0} - gone
        try:
            prune(store, sorted(found))
        except EnvironmentProblem:  # the other one merges
            time.sleep(PAUSE_S)
            continue
        gone |= found
        print("".join(f"{name}\n" for name in sorted(found)), end="", flush=True)


def crowd(store: Path, writers: int, launches: int) -> tuple[str, list[str]]:
    """Let all work at once; what happened, in words, and what is wrong."""
    wrong, over, readings = list[str](), store.parent / "over", 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    lines = [[sys.executable, str(WRITER), str(store), f"w{n}", str(launches)] for n in range(writers)]
    tidy = [
        [sys.executable, "-m", "tests.lab.torture.crowd", "--store", str(store), "--task", t]
        for t in ("merge", "remove")
    ]
    with (store.parent / "removed").open("w") as removed, (store.parent / "merged").open("w") as merged:
        helpers = [
            subprocess.Popen(line, env=environment, stdout=paper, stderr=subprocess.PIPE, cwd=ROOT)
            for line, paper in zip(tidy, (merged, removed), strict=True)
        ]
        while not all((store.parent / name).exists() for name in ("merges", "removes")):
            time.sleep(PAUSE_S)  # they take longer to begin than a writer to end
        running = [subprocess.Popen(line, env=environment, stderr=subprocess.PIPE) for line in lines]
        try:
            while any(process.poll() is None for process in running):
                gone = (store.parent / "removed").read_text().splitlines()
                if back := set(launches_in(store, wrong)) & set(gone):
                    wrong.append(f"removed, and read again: {sorted(back)[:5]}")
                readings += 1
        finally:
            over.touch()
            errors = [process.communicate()[1].decode() for process in (*running, *helpers)]
    wrong += [f"a process failed: {text[-600:]}" for text in errors if text]
    gone = set((store.parent / "removed").read_text().splitlines())
    written = {f"w{n}-{k}" for n in range(writers) for k in range(launches)}
    left = launches_in(store, wrong)
    if set(left) != written - gone:
        wrong.append(
            f"lost: {sorted(written - gone - set(left))[:5]}; too many: {sorted(set(left) - (written - gone))[:5]}"
        )
    known = {name for path in files(store) for name in provenances(path)}
    if known != set(left):
        wrong.append(f"launches without a provenance, or the other way round: {sorted(known ^ set(left))[:5]}")
    wrong += [f"{checked.path}: {checked.state}" for checked in verify(store) if checked.state != "ok"]
    made = (store.parent / "merged").read_text().strip()
    return (
        f"{writers} writers wrote {len(written)} launches, {len(gone)} were removed, {made} files merged, "
        f"{readings} readings; {2 * len(left)} rows stored of {2 * len(written - gone)}; wrong: {len(wrong)}"
    ), wrong


def main(words: Sequence[str] | None = None) -> int:
    """Print what happened."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.torture.crowd", description="Many change one store at once."
    )
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--launches", type=int, default=20, help="of each writer")
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--task", choices=("merge", "remove"), help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.task:
        (merging if given.task == "merge" else removing)(given.store, given.store.parent / "over")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        store.mkdir()
        said, wrong = crowd(store, given.writers, given.launches)
    print("\n".join([*dict.fromkeys(wrong), said]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
