"""``python -m tests.mutation --count 60 --seed 1``: which of that many small mistakes do the quick tests find?

Places are drawn by the seed from engine, backends, results, orchestrate and dashboards. Each mutant is tried in a copy
of the tree, with the tests nearest to its module first and then those that go through all of omb-py
(:mod:`tests.mutation.related`).
Exit code 1 where one survived.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.graph import ROOT
from tests.mutation.known import known
from tests.mutation.mutants import Mutant, all_mutants
from tests.mutation.related import far, near
from tests.mutation.trial import QUICK, Trial, copied, tried
from tests.support.machines.namespace import apart

FOLDERS = ("omb_py/engine", "backends", "results", "omb_py/orchestrate", "dashboards")
PURE = f"{QUICK} and not mpi"


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Small mistakes and who finds them.")
    parser.add_argument("--count", type=int, default=60, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--rows", type=rows, default=None, help="only these of them, as 0-99 or 7,12,40-45")
    parser.add_argument("--limit", type=float, default=None, help="seconds for the tests of a stage; unfinished after")
    parser.add_argument("--only", default="", help="a part of the path, as results/store")
    parser.add_argument("--known", action="store_true", help="instead, those that no test noticed once")
    parser.add_argument("--near", action="store_true", help="only the tests nearest to the module")
    parser.add_argument("--no-mpi", action="store_true", help="without tests that start real ranks")
    return parser.parse_args(words)


def rows(text: str) -> frozenset[int]:
    """The numbers that ``3,7-9`` names. Raises ValueError."""
    ends = (part.split("-") for part in text.split(","))
    return frozenset(number for end in ends for number in range(int(end[0]), int(end[-1]) + 1))


def drawn(count: int, seed: int, only: str = "", root: Path = ROOT) -> list[Mutant]:
    """So many mutants, the same for a seed while the source is the same."""
    everything = [m for m in all_mutants(root, FOLDERS) if only in m.path.relative_to(root).as_posix()]
    return random.Random(seed).sample(everything, min(count, len(everything)))


def line_of(trial: Trial, number: int, root: Path = ROOT) -> str:
    """A row of the table."""
    mutant = trial.mutant
    place = f"{mutant.path.relative_to(root).as_posix()}:{mutant.line}"
    change = f"`{mutant.before}` → `{mutant.after}`".replace("\n", " ").replace("|", "\\|")
    return f"| {number} | {place} | {mutant.kind} | {change:.80} | {trial.verdict} | {trial.by} |"


def main(words: Sequence[str] | None = None) -> int:
    """Try the mutants and print the table."""
    given = arguments(words)
    apart()  # said before anything is copied
    chosen = list(enumerate(known() if given.known else drawn(given.count, given.seed, given.only)))
    if given.rows is not None:
        chosen = [(number, mutant) for number, mutant in chosen if number in given.rows]
    markers = PURE if given.no_mpi else QUICK
    print("| | place | kind | change | verdict | by |\n|---|---|---|---|---|---|", flush=True)
    trials = []
    with copied(ROOT) as copy:
        for number, mutant in chosen:
            stages = [near(mutant.path)] + [far(mutant.path)] * (not given.near)
            trials.append(tried(copy, ROOT, mutant, stages, markers, given.limit))
            print(line_of(trials[-1], number), flush=True)
    verdicts = Counter(trial.verdict for trial in trials)
    print(f"\n{len(trials)} mutants: {', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items()))}")
    for kind in sorted({trial.mutant.kind for trial in trials}):
        of_kind = [trial for trial in trials if trial.mutant.kind == kind]
        print(f"  {kind}: {sum(t.verdict == 'killed' for t in of_kind)} of {len(of_kind)} killed")
    return int(len(trials) > verdicts["killed"])


if __name__ == "__main__":
    raise SystemExit(main())
