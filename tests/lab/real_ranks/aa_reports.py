"""Reports of a library against itself on real ranks, and the share of them with an alarm.

    python -m tests.lab.real_ranks.aa_reports [--runs 8] [--store DIR]

Each run is one ``omb-py aa`` of many cells in 2 x 8 launches, order drawn. Its cells are dealt into reports of two, each
judged alone as ``omb-py compare`` would: launches of one run are in all of its reports, runs have launches of their own.
Prints the share of reports with any alarm, by the rules of compare and where any change counts. Exit code 1 where more
reports have one than 1 % can explain. Stored runs are judged, too: ``--runs 0 --store DIR`` prints the table again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from omb_py.results.compare.judge import CompareRound, CompareRules, judge
from omb_py.results.compare.match import match
from omb_py.results.compare.select_launches import read_comparison
from omb_py.results.store.runs import runs as runs_of
from tests.lab.error_rates.accept import rate
from tests.lab.quiet import Others
from tests.support.synthetic import lower

SUITE = """name = "aa"
description = "many cells, measured quickly"
[defaults]
ranks = 2
iterations = 100
warmup = 10
[[entry]]
benchmarks = ["latency", "allreduce", "bcast"]
message-size = "1:128K"
"""
CELLS_A_REPORT, LAUNCHES = 2, 8
"""Eight pairs are the fewest that can show a change at 1 % in one round."""
USUAL, ANY = CompareRules(), CompareRules(delta=1e-9, tail_delta=1e-9)
"""The rules of compare for one round, and rules by which any change counts, however small."""


def reports(cells: Sequence[Sequence[CompareRound]]) -> list[Sequence[Sequence[CompareRound]]]:
    """Deal cells into reports: the first beside the one half way through the list, and so on."""
    apart = len(cells) // CELLS_A_REPORT
    return [cells[place : apart * CELLS_A_REPORT : apart] for place in range(apart)]


def alarms(cells: Sequence[Sequence[CompareRound]], rules: CompareRules) -> int:
    """Reports with any SLOWER or FASTER."""
    return sum(any(judged.alarm for judged in judge(report, rules)) for report in reports(cells))


def measure(runs: int, store: Path) -> None:
    """Make runs of ``omb-py aa``; a run that fails ends the bench."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as suite:
        suite.write(SUITE)
        suite.flush()
        for number in range(runs):
            line = [sys.executable, "-m", "omb_py", "aa", suite.name, "--launches", str(LAUNCHES), "--rounds", "1"]
            # exit code 1: an alarm, which is what is counted here
            ended = subprocess.run([*line, "--quiet", "--store", str(store)], stdout=subprocess.DEVNULL, check=False)
            if ended.returncode not in (0, 1):
                raise SystemExit(f"run {number + 1} ended with exit code {ended.returncode}")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--store", type=Path, help="keep the launches here, and judge all runs that it holds")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder)
        others = Others.start()
        measure(given.runs, store)
        busy = others.cores() if given.runs else None
        print("| library | runs | reports | with an alarm | if any change counts |\n|---|---|---|---|---|")
        counts: dict[str, list[int]] = {}
        for run in (each.run_id for each in runs_of(store)):
            base, new = read_comparison(run, store)
            if min(base.count, new.count) < LAUNCHES:  # it was interrupted: fewer pairs than this can show nothing
                continue
            cells = [cell.rounds for cell in match(base.rows, new.rows).cells]
            library = f"{base.rows[0]['library']} {base.rows[0]['library_version']}"
            mine = counts.setdefault(library, [0, 0, 0, 0])
            for place, more in enumerate((1, len(reports(cells)), alarms(cells, USUAL), alarms(cells, ANY))):
                mine[place] += more
    broken = False
    for library, (runs, made, usual, any_change) in counts.items():
        print(f"| {library} | {runs} | {made} | {rate(usual, made)} | {rate(any_change, made)} |")
        broken |= lower(any_change, made) > ANY.alpha
    if busy is not None:
        print(f"\nother processes kept {busy:.2f} cores busy")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
