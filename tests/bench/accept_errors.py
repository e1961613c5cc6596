"""How often an acceptance says PASS or FAIL where it must not, for launches and nights of many kinds.

``python -m tests.bench.accept_errors [contracts] [power] [baselines]`` prints the tables of docs/statistics.md: seeded,
the same everywhere. ``contracts --only nights --times 5`` prints one row of more reports, ``--freedom 0.9`` what other
degrees of freedom of the spread would make of it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import betaincinv

from omb_py.results.accept.decision import Launches, Nights
from omb_py.results.statistics import guarded_mean
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sequential import Rule
from omb_py.results.statistics.t_test import Estimate
from tests.bench.launch_effects import DRIFT, EFFECTS, FALLING, RISING, SPREAD, Draw, drifting, normal

REPORTS = 4000
QUESTIONS = 33
"""Verdicts of the shipped suite `acceptance` on 4 ranks."""
FAMILIES: Mapping[int, int] = {1: 4000, QUESTIONS: 400, 1000: 20}
"""Verdicts of a report -> reports that are drawn."""
_FIRST = (Rule().launches - 1) / 2
CONTRACTS: Mapping[str, Draw] = {**EFFECTS, RISING: drifting(DRIFT, _FIRST), FALLING: drifting(-DRIFT, _FIRST)}
"""What drifts is at the bound in the middle of the first round."""
RIGHT = {(RISING, "FAIL"), (FALLING, "PASS")}
"""What later launches make true."""
BASELINES: Mapping[str, Draw] = {
    name: draw for name, draw in EFFECTS.items() if not name.startswith(("15 %", "nights", "30 %", "falling"))
}
"""Nights of a baseline, of which tonight is the last."""
NIGHTLY: Mapping[int, int] = {1: 1000, 40: 100, 1000: 10}
"""Cells of a report -> reports that are drawn."""


def word_of(costs: Sequence[float], rule: Rule, questions: int) -> str:
    """The word of a criterion with limit 0 whose launches come round after round."""
    looks: tuple[int, ...] = ()
    for number in range(1, rule.rounds + 1):
        measured = tuple(cost for cost in costs[: min(rule.most, number * rule.launches)] if not math.isnan(cost))
        looks = (*looks, len(measured))
        word = Launches(measured, 0.0, math.exp).answer(rule, questions, looks).decision.word
        if word != "MARGINAL":
            return word
    return "MARGINAL"


def passed(draw: Draw, reports: int, seed: int = 1) -> int:
    """Reports with PASS of one criterion whose median is its bound."""
    rng, rule = np.random.default_rng(seed), Rule()
    return sum(word_of(costs, rule, QUESTIONS) == "PASS" for costs in draw(rng, reports, rule.most).tolist())


def failed(draw: Draw, questions: int, reports: int, seed: int = 1) -> int:
    """Reports with any FAIL of so many criteria, each with its median at its bound."""
    rng, rule = np.random.default_rng([seed, questions]), Rule()
    return sum(
        any(word_of(costs, rule, questions) == "FAIL" for costs in draw(rng, questions, rule.most).tolist())
        for _ in range(reports)
    )


def share_passed(shift: float, draw: Draw, reports: int) -> tuple[int, int]:
    """Acceptances that end in PASS, and in FAIL, where the median is so far from the bound."""
    rng, rule = np.random.default_rng(2), Rule()
    words = [word_of(costs, rule, QUESTIONS) for costs in (draw(rng, reports, rule.most) + shift).tolist()]
    return words.count("PASS"), words.count("FAIL")


def nightly(
    nights: int, spread: float, slower: float, reports: int, draw: Draw = normal, cells: int = 40
) -> tuple[int, int]:
    """Reports with any FAIL of the cells at a tolerance of 10 %, and cells that PASS; tonight differs by `slower`.

    `spread`: how much nights differ, where `draw` makes them normal.
    """
    rng, rule = np.random.default_rng(3), Rule()
    any_fail = passes = 0
    for _ in range(reports):
        words = []
        level = draw(rng, cells, nights + 1).T[:, :, None] * spread / SPREAD
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


def _contracts(only: str, times: int) -> None:
    heads = " | ".join(f"any FAIL of {questions}" for questions in FAMILIES)
    print(f"| launches, their median at the bound | PASS | {heads} |\n|---|---|" + "---|" * len(FAMILIES))
    print(f"| promised | 5 % |{' 5 % |' * len(FAMILIES)}")
    for name, draw in ((name, draw) for name, draw in CONTRACTS.items() if name.startswith(only)):
        fails = [rate(failed(draw, m, times * reports), times * reports) for m, reports in FAMILIES.items()]
        shown = ["–" if (name, "PASS") in RIGHT else rate(passed(draw, times * REPORTS), times * REPORTS)]
        shown += ["–" if (name, "FAIL") in RIGHT else cell for cell in fails]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


def _power(only: str, times: int) -> None:
    print("\n| launches | 5 % inside the bound: PASS | 5 % beyond: FAIL | 10 % beyond: FAIL | 30 % beyond: FAIL |")
    print("|---|---|---|---|---|")
    reports = times * 400
    for name, draw in ((name, draw) for name, draw in EFFECTS.items() if name.startswith(only)):
        inside, *beyond = [share_passed(math.log(shift), draw, reports) for shift in (1 / 1.05, 1.05, 1.1, 1.3)]
        words = [rate(inside[0], reports), *(rate(failing, reports) for _, failing in beyond)]
        print(f"| {name} | {' | '.join(words)} |", flush=True)


def _baselines(only: str, times: int) -> None:
    print("\n| nights of the baseline | nights differ by | unchanged: any FAIL of 40 cells | 10 % slower: PASS |")
    print("|---|---|---|---|")
    slower = math.log1p(0.10)
    for nights in (2, 3, 5, 10):
        for spread in (0.01, 0.05):
            fails, _ = nightly(nights, spread, 0.0, 200)
            _, passes = nightly(nights, spread, slower, 100)
            print(f"| {nights} | {spread:.0%} | {rate(fails, 200)} | {rate(passes, 100 * 40)} |", flush=True)
    print("\n| 5 nights of a baseline, 2 % | " + " | ".join(f"any FAIL of {m}" for m in NIGHTLY) + " | slower: PASS |")
    print("|---|" + "---|" * (len(NIGHTLY) + 1))
    for name, draw in BASELINES.items():
        fails_of = [rate(nightly(5, SPREAD, 0.0, of, draw, cells)[0], of) for cells, of in NIGHTLY.items()]
        _, passes = nightly(5, SPREAD, slower, 50, draw)
        print(f"| {name} | {' | '.join(fails_of)} | {rate(passes, 50 * 40)} |", flush=True)


def _with_freedom(share: float) -> None:
    """Let the spread of launches count as this share of its degrees of freedom."""
    usual = guarded_mean.widened

    def fewer(estimate: Estimate, launches: int) -> Estimate:
        widened = usual(estimate, launches)
        return replace(widened, freedom=share * widened.freedom)

    guarded_mean.widened = fewer


PARTS = {"contracts": _contracts, "power": _power, "baselines": _baselines}


def main() -> None:
    """Print the tables of the named parts, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="(default: all)")
    parser.add_argument("--only", default="", help="contracts and power: rows whose name begins so")
    parser.add_argument("--times", type=int, default=1, help="contracts and power: so many times as many reports")
    parser.add_argument(
        "--freedom", type=float, default=1.0, help="share of the spread's degrees of freedom that counts"
    )
    given = parser.parse_args()
    if given.freedom != 1:
        _with_freedom(given.freedom)
    for part in given.parts or PARTS:
        PARTS[part](given.only, given.times)


if __name__ == "__main__":
    main()
