"""Are the violations of a library the same on disjoint launches?  ``python -m tests.lab.real_ranks.guidelines_repeat``.

Checks all guidelines twice, on launches of its own each, and compares the sets of what is violated.  The sets are the
same where no cell is VIOLATED by one report and HOLDS by another (docs/statistics.md, Guidelines: by construction this
happens with a chance of at most 4 alpha).  A cell so near the limit that a report leaves it UNCLEAR is in no set; those
that only some reports leave so are printed with their ratios, and must be few against what all name.  Exit code 0 where
that is so and anything is violated, else 1.  For a quiet machine; ``--minutes`` bounds the time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.options.request import Request
from omb_py.orchestrate.checks.guidelines import check_guidelines
from omb_py.results.checks.guideline_report import GuidelineReport, headline, measured_text, title
from omb_py.results.checks.guidelines import GuidelineRules

Cell = tuple[str, int]
FEW = 0.1
"""Part of all violations that may be undecided in some report."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What several reports say of the same cells."""

    everywhere: list[Cell]
    """Violated in all."""
    contradicted: list[Cell]
    """Violated in one, and another says that it holds."""
    undecided: list[Cell]
    """Violated in one, and another cannot say."""

    @property
    def same(self) -> bool:
        """Whether the reports name the same, and name anything."""
        every = len(self.everywhere) + len(self.undecided)
        return bool(self.everywhere) and not self.contradicted and len(self.undecided) <= max(1, FEW * every)


def verdicts(report: GuidelineReport) -> dict[Cell, str]:
    """Guideline and size -> verdict."""
    return {(one.pair.name, one.pair.size_bytes): one.verdict for one in report.judged}


def compared(reports: Sequence[GuidelineReport]) -> Compared:
    """The cells that any report calls violated, sorted by what the others say."""
    every = [verdicts(report) for report in reports]
    words = {cell: {found.get(cell, "UNCLEAR") for found in every} for found in every for cell in found}
    violated = sorted(cell for cell, said in words.items() if "VIOLATED" in said)
    return Compared(
        [cell for cell in violated if words[cell] == {"VIOLATED"}],
        [cell for cell in violated if "HOLDS" in words[cell]],
        [cell for cell in violated if "UNCLEAR" in words[cell] and "HOLDS" not in words[cell]],
    )


def lines(cells: Sequence[Cell], reports: Sequence[GuidelineReport]) -> list[str]:
    """A line a cell: what each report says of it, with its ratio and interval."""
    told = []
    for cell in cells:
        found = [one for report in reports for one in report.judged if (one.pair.name, one.pair.size_bytes) == cell]
        said = ", ".join(
            f"{o.verdict} {o.ratio:.2f} ({o.low:.2f} … {o.high:.2f}, {o.launches} launches)" for o in found
        )
        told.append(f"  {title(found[0])}: {said}")
    return told


def main() -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("-m", "--sizes", default="8:512K:16")
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=6.0, help="of all repeats together")
    parser.add_argument("--backend", default="mpi")
    parser.add_argument("--store", type=Path, default=Path("omb-results"))
    parser.add_argument("--mock", default="")
    parser.add_argument("which", nargs="*")
    given = parser.parse_args()
    request = Request(
        "gl1_allgather",
        backends=(given.backend,),
        ranks=given.ranks,
        sizes=given.sizes,
        store=given.store,
        settings={"mock": given.mock},
    )
    reports = []
    for number in range(given.repeats):
        began = time.monotonic()
        rules, within = GuidelineRules(rounds=given.rounds), given.minutes * 60 / given.repeats
        report = check_guidelines(request, given.which, rules, given.launches, within)
        took = f"{time.monotonic() - began:.0f} s"
        print(f"{number + 1}: {measured_text(report)}, {took}: {headline(report)}", flush=True)
        reports.append(report)
    found = compared(reports)
    for what, cells in (
        ("violated in all", found.everywhere),
        ("contradicted", found.contradicted),
        ("violated in one, undecided in another", found.undecided),
    ):
        print("\n".join([f"{what}: {len(cells)}", *lines(cells, reports)]))
    print(f"the same set: {'yes' if found.same else 'no'}")
    return 0 if found.same else 1


if __name__ == "__main__":
    sys.exit(main())
