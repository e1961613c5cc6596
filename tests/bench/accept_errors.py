"""How often an acceptance says PASS or FAIL where it must not, for launches and nights of many kinds.

``python -m tests.bench.accept_errors`` prints the tables of docs/statistics.md: seeded, the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from omb_py.results.accept.decision import Launches, Nights
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sequential import Rule
from tests.bench.launch_effects import EFFECTS

Floats = NDArray[np.float64]
REPORTS = 4000
QUESTIONS = 33
"""Verdicts of the shipped suite `acceptance` on 4 ranks."""


def word_of(costs: Sequence[float], rule: Rule, questions: int) -> str:
    """The word of a criterion with limit 0 whose launches come round after round."""
    looks: tuple[int, ...] = ()
    for number in range(1, rule.rounds + 1):
        looks = (*looks, min(rule.most, number * rule.launches))
        word = Launches(tuple(costs[: looks[-1]]), 0.0, math.exp).answer(rule, questions, looks).decision.word
        if word != "MARGINAL":
            return word
    return "MARGINAL"


def contract(draw: Callable[[np.random.Generator, int, int], Floats], reports: int, seed: int = 1) -> tuple[int, int]:
    """Reports with PASS of one criterion whose median is its bound, and with any FAIL of 33 of which each is."""
    rng, rule = np.random.default_rng(seed), Rule()
    passed = sum(word_of(costs, rule, QUESTIONS) == "PASS" for costs in draw(rng, reports, rule.most).tolist())
    failed = 0
    for _ in range(reports // 10):
        failed += any(word_of(costs, rule, QUESTIONS) == "FAIL" for costs in draw(rng, QUESTIONS, rule.most).tolist())
    return passed, failed


def share_passed(
    shift: float, draw: Callable[[np.random.Generator, int, int], Floats], reports: int
) -> tuple[int, int]:
    """Acceptances that end in PASS, and in FAIL, where the median is so far from the bound."""
    rng, rule = np.random.default_rng(2), Rule()
    words = [word_of(costs, rule, QUESTIONS) for costs in (draw(rng, reports, rule.most) + shift).tolist()]
    return words.count("PASS"), words.count("FAIL")


def nightly(nights: int, spread: float, slower: float, reports: int, cells: int = 40) -> tuple[int, int]:
    """Reports with any FAIL of 40 cells at a tolerance of 10 %, and cells that PASS; tonight differs by `slower`."""
    rng, rule = np.random.default_rng(3), Rule()
    any_fail = passes = 0
    for _ in range(reports):
        words = []
        level = rng.normal(0, spread, (nights + 1, cells, 1))
        launches = level + rng.normal(0, 0.02, (nights + 1, cells, 5))
        for cell in range(cells):
            medians = [median(launches[night, cell].tolist()) for night in range(nights + 1)]
            question = Nights(tuple(medians[:-1]), medians[-1] + slower, math.log1p(0.10), math.exp)
            words.append(question.answer(rule, cells, (5,)).decision.word)
        any_fail += "FAIL" in words
        passes += words.count("PASS")
    return any_fail, passes


def rate(count: int, of: int) -> str:
    """A share with its 95 % interval (Clopper and Pearson)."""
    low = betaincinv(count, of - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, of - count, 0.975) if count < of else 1.0
    return f"{count / of:.1%} ({low:.1%} – {high:.1%})"


def main() -> None:
    print("| launches, their median at the bound | PASS, promised 5 % | any FAIL of 33 verdicts, promised 5 % |")
    print("|---|---|---|")
    for name, draw in EFFECTS.items():
        passed, failed = contract(draw, REPORTS)
        print(f"| {name} | {rate(passed, REPORTS)} | {rate(failed, REPORTS // 10)} |", flush=True)
    print("\n| launches | 5 % inside the bound: PASS | 10 % beyond: FAIL | 30 % beyond: FAIL |\n|---|---|---|---|")
    for name, draw in EFFECTS.items():
        shares = [share_passed(math.log(shift), draw, 400) for shift in (1 / 1.05, 1.1, 1.3)]
        words = [rate(shares[0][0], 400), rate(shares[1][1], 400), rate(shares[2][1], 400)]
        print(f"| {name} | {' | '.join(words)} |", flush=True)
    print("\n| nights of the baseline | nights differ by | unchanged: any FAIL of 40 cells | 10 % slower: PASS |")
    print("|---|---|---|---|")
    for nights in (2, 3, 5, 10):
        for spread in (0.01, 0.05):
            failed, _ = nightly(nights, spread, 0.0, 200)
            _, passed = nightly(nights, spread, math.log1p(0.10), 100)
            print(f"| {nights} | {spread:.0%} | {rate(failed, 200)} | {rate(passed, 100 * 40)} |", flush=True)


if __name__ == "__main__":
    main()
