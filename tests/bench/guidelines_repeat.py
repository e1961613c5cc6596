"""Are the violations of a library the same on disjoint launches?  ``python -m tests.bench.guidelines_repeat``.

Checks all guidelines twice, on launches of its own each, and compares the sets of what is violated.  A cell that only
one of the two calls violated is a contradiction where the other says that it holds, and near the limit where the other
says unclear; both are printed.  Exit code 0 where the sets are equal, 1 where they are not.  For a quiet machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from omb_py.orchestrate.guidelines import check_guidelines
from omb_py.orchestrate.request import Request
from omb_py.results.guideline_forms import Report, headline, preamble, title
from omb_py.results.guidelines import Rules

Cell = tuple[str, int]


def verdicts(report: Report) -> dict[Cell, str]:
    """Guideline and size -> verdict."""
    return {(one.pair.name, one.pair.size_bytes): one.verdict for one in report.judged}


def compared(reports: list[Report]) -> tuple[set[Cell], list[str]]:
    """What all reports call violated, and a line for each cell that only some do."""
    every = [verdicts(report) for report in reports]
    violated = [{cell for cell, word in found.items() if word == "VIOLATED"} for found in every]
    both, any_of = set.intersection(*violated), set.union(*violated)
    names = {(one.pair.name, one.pair.size_bytes): one for report in reports for one in report.judged}
    lines = []
    for cell in sorted(any_of - both):
        words = [found.get(cell, "not measured") for found in every]
        ratios = [f"{one.ratio:.2f}" for report in reports for one in report.judged
                  if (one.pair.name, one.pair.size_bytes) == cell]  # fmt: skip
        lines.append(f"  {title(names[cell])}: {' and '.join(words)}, ratios {', '.join(ratios)}")
    return both, lines


def main() -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("-m", "--sizes", default="8:512K:16")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--store", type=Path, default=Path("omb-results"))
    parser.add_argument("--mock", default="")
    parser.add_argument("which", nargs="*")
    given = parser.parse_args()
    request = Request(
        "gl1_allgather", backends=(given.backend,), ranks=given.ranks, sizes=given.sizes, launches=given.launches,
        store=given.store, mock=given.mock,
    )  # fmt: skip
    reports = []
    for number in range(given.repeats):
        report = check_guidelines(request, given.which, Rules())
        print(f"{number + 1}: {', '.join(preamble(report))}: {headline(report)}", flush=True)
        reports.append(report)
    both, lines = compared(reports)
    print(f"violated in all: {len(both)}")
    print("\n".join(f"  {name} {size} B" for name, size in sorted(both)))
    print(f"violated in some: {len(lines)}")
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
