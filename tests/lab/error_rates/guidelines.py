"""How often a report on guidelines says VIOLATED or HOLDS where it must not, for launches of many kinds.

``python -m tests.lab.error_rates.guidelines [KIND]`` prints the tables of evidence/guidelines.md, or the rows of the kinds of
launches whose name begins so; ``… guidelines few`` prints the power in reports of few cells. Seeded, the same everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

import numpy as np

from omb_py.orchestrate.checks.guidelines import launches_for
from omb_py.results.checks.guidelines import GuidelinePair, GuidelineRules, batches, judge
from tests.lab.error_rates.accept import rate
from tests.lab.error_rates.launch_effects import EFFECTS, Draw, bimodal, halves

REPORTS: Mapping[int, int] = {1: 4000, 10: 400, 195: 50, 1000: 5}
"""Cells of a report -> reports that are drawn."""
KINDS: Mapping[str, Draw] = {
    **EFFECTS,
    "45 % twice as slow": bimodal(0.45, 2.0),
    "45 % twice as fast": bimodal(0.45, 0.5),
    "50 % twice as slow": halves,
}


def rounds_of(cells: int) -> list[int]:
    """Fresh launches of each round, as many as ``omb-py guidelines`` makes of so many cells."""
    rules = GuidelineRules()
    first = launches_for(cells, rules)
    return [first * batches(number) for number in range(1, rules.rounds + 1)]


def false_words(draw: Draw, cells: int, reports: int) -> tuple[int, int]:
    """Reports with any HOLDS, and with any VIOLATED, in any round, where the median of every ratio is at the limit."""
    rng, rules, rounds = np.random.default_rng(6), GuidelineRules(), rounds_of(cells)
    holds = violated = 0
    for _ in range(reports):
        words: set[str] = set()
        for number, launches in enumerate(rounds, 1):
            logs = draw(rng, cells, launches) + math.log1p(rules.delta)
            words |= {judged.verdict for judged in judge(_pairs(logs), rules, (number, len(rounds)))}
        holds += "HOLDS" in words
        violated += "VIOLATED" in words
    return holds, violated


def words_at(draw: Draw, ratio: float, reports: int, cells: int = 10) -> tuple[int, int]:
    """Cells that HOLD and that are VIOLATED after all rounds, in reports of ten cells with this median ratio."""
    rng, rules, rounds = np.random.default_rng(7), GuidelineRules(), rounds_of(cells)
    holds = violated = 0
    for _ in range(reports):
        left = cells
        for number, launches in enumerate(rounds, 1):
            if left:
                judged = judge(_pairs(draw(rng, left, launches) + math.log(ratio)), rules, (number, len(rounds)))
                holds += sum(one.verdict == "HOLDS" for one in judged)
                violated += sum(one.verdict == "VIOLATED" for one in judged)
                left = sum(one.verdict == "UNCLEAR" or (number == 1 and one.verdict != "HOLDS") for one in judged)
    return holds, violated


def _pairs(logs: np.ndarray) -> list[GuidelinePair]:
    left = [tuple(x for x in row if not math.isnan(x)) for row in np.exp(logs).tolist()]
    return [GuidelinePair(f"gl{k}", "", 8, row, (1.0,) * len(row)) for k, row in enumerate(left)]


def few() -> None:
    """Print the power in reports of few cells, which show badly whether launches resemble each other."""
    print("| normal launches | of one cell: HOLDS at 1.0, VIOLATED at 1.2 | of three | of ten |\n|---|---|---|---|")
    for spread in (0.02, 0.05):
        shares = []
        for cells in (1, 3, 10):
            words = [words_at(_normal(spread), ratio, 300 // cells, cells) for ratio in (1.0, 1.2)]
            counted = 300 // cells * cells
            shares.append(f"{words[0][0] / counted:.0%}, {words[1][1] / counted:.0%}")
        print(f"| spread {spread:.0%} | {' | '.join(shares)} |", flush=True)


def _normal(spread: float) -> Draw:
    return lambda rng, series, launches: rng.normal(0, spread, (series, launches))


def main(only: str = "") -> None:
    if only == "few":
        few()
        return
    effects = {name: draw for name, draw in KINDS.items() if name.startswith(only)}
    print(
        "| launches, the median ratio at the limit | "
        + " | ".join(f"{m} cells: any HOLDS, any VIOLATED" for m in REPORTS)
        + " |"
    )
    print("|---|" + "---|" * len(REPORTS))
    print(f"| promised |{' 1 %, 1 % |' * len(REPORTS)}")
    for name, draw in effects.items():
        shares = []
        for cells, reports in REPORTS.items():
            holds, violated = false_words(draw, cells, reports)
            shares.append(f"{rate(holds, reports)}, {rate(violated, reports)}")
        print(f"| {name} | {' | '.join(shares)} |", flush=True)
    print("\n| launches | ratio 1.0: HOLDS | ratio 1.2: VIOLATED | ratio 1.5: VIOLATED |\n|---|---|---|---|")
    for name, draw in effects.items():
        words = [words_at(draw, ratio, 20)[ratio > 1.1] for ratio in (1.0, 1.2, 1.5)]
        print(f"| {name} | {' | '.join(rate(count, 200) for count in words)} |", flush=True)
    if not only:
        print()
        few()


if __name__ == "__main__":
    main(*sys.argv[1:])
