"""How often an acceptance says PASS or FAIL where it must not, for launches and nights of many kinds.

``python -m tests.lab.error_rates.accept [contracts] [power] [baselines]`` prints the tables of evidence/accept.md: seeded,
the same everywhere. ``contracts --only nights --times 5`` prints one row of more reports.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import betaincinv

from omb_py.results.accept.decision import LaunchBound, NightBound
from omb_py.results.statistics.dependence import pooled_correlation
from omb_py.results.statistics.order_statistics import median
from omb_py.results.statistics.sequential import AcceptRule, Word
from tests.lab.error_rates.launch_effects import (
    DRIFT,
    EFFECTS,
    FALLING,
    RISING,
    SPREAD,
    Draw,
    drifting,
    halves,
    normal,
)

QUESTIONS = 33
"""Verdicts of the shipped suite `acceptance` on 4 ranks."""
PASSES: Mapping[int, int] = {1: 2000, QUESTIONS: 121}
"""Verdicts of a report -> reports of which every PASS is counted."""
FAMILIES: Mapping[int, int] = {1: 4000, 10: 400, QUESTIONS: 400, 1000: 20}
"""Verdicts of a report -> reports that are drawn."""
OTHER_MODE = 10
"""Spreads of nights from the usual ones to a night of which a verdict is right: it takes twice or half as long."""
_FIRST = (AcceptRule().launches - 1) / 2
CONTRACTS: Mapping[str, Draw] = {
    **EFFECTS,
    "50 % twice as slow": halves,
    RISING: drifting(DRIFT, _FIRST),
    FALLING: drifting(-DRIFT, _FIRST),
}
"""What drifts is at the bound in the middle of the first round."""
RIGHT = {(RISING, "FAIL"), (FALLING, "PASS")}
"""What later launches make true."""
BASELINES: Mapping[str, Draw] = {
    name: draw for name, draw in EFFECTS.items() if not name.startswith(("15 %", "nights", "30 %", "falling"))
}
"""Nights of a baseline, of which tonight is the last."""
NIGHTLY: Mapping[int, int] = {1: 1000, 40: 100, 1000: 10}
"""Cells of a report -> reports that are drawn."""


def words_of(report: Sequence[Sequence[float]], rule: AcceptRule) -> list[Word]:
    """The words of criteria with limit 0 whose launches come round after round.

    Args:
        report: the launches of each criterion; NaN where one was lost.
        rule: the declared rule.
    """
    words: list[Word] = ["MARGINAL"] * len(report)
    measured: list[tuple[float, ...]] = [()] * len(report)
    looks: list[tuple[int, ...]] = [()] * len(report)
    for number in range(1, rule.rounds + 1):
        left = [k for k, word in enumerate(words) if word == "MARGINAL"]
        for k in left:
            launches = report[k][: min(rule.most, number * rule.launches)]
            measured[k] = tuple(cost for cost in launches if not math.isnan(cost))
            looks[k] = (*looks[k], len(measured[k]))
        correlation = pooled_correlation(measured)
        two_sided = sum(LaunchBound(costs, 0.0, math.exp).has_two_sides for costs in measured)
        for k in left:
            question = LaunchBound(measured[k], 0.0, math.exp, correlation, two_sided)
            words[k] = question.answer(rule, len(report), looks[k]).decision.word
    return words


def passed(draw: Draw, questions: int, reports: int, seed: int = 1) -> int:
    """Criteria with PASS whose median is their bound, of reports of so many criteria."""
    rng, rule = np.random.default_rng(seed), AcceptRule()
    return sum(words_of(draw(rng, questions, rule.most).tolist(), rule).count("PASS") for _ in range(reports))


def failed(draw: Draw, questions: int, reports: int, seed: int = 1) -> int:
    """Reports with any FAIL of so many criteria, each with its median at its bound."""
    rng, rule = np.random.default_rng([seed, questions]), AcceptRule()
    return sum("FAIL" in words_of(draw(rng, questions, rule.most).tolist(), rule) for _ in range(reports))


def share_passed(shift: float, draw: Draw, reports: int) -> tuple[int, int]:
    """Criteria that end in PASS, and in FAIL, of so many reports of :data:`QUESTIONS` that are so far from the bound."""
    rng, rule = np.random.default_rng(2), AcceptRule()
    words = [
        word for _ in range(reports) for word in words_of((draw(rng, QUESTIONS, rule.most) + shift).tolist(), rule)
    ]
    return words.count("PASS"), words.count("FAIL")


def nightly(
    nights: int, spread: float, slower: float, reports: int, draw: Draw = normal, cells: int = 40
) -> tuple[int, int, int]:
    """Reports with any FAIL at a tolerance of 10 %, cells that PASS, and cells; tonight differs by `slower`.

    Cells of which tonight is of the other mode are not counted. `spread`: how much nights differ, where `draw` makes
    them normal.
    """
    rng, rule = np.random.default_rng(3), AcceptRule()
    any_fail = passes = counted = 0
    for _ in range(reports):
        words: list[Word] = []
        level = draw(rng, cells, nights + 1).T[:, :, None] * spread / SPREAD
        launches = level + rng.normal(0, 0.02, (nights + 1, cells, 5))
        for cell in np.flatnonzero(abs(level[-1, :, 0]) < OTHER_MODE * spread):
            medians = [median(launches[night, cell].tolist()) for night in range(nights + 1)]
            question = NightBound(tuple(medians[:-1]), medians[-1] + slower, math.log1p(0.10), math.exp)
            words.append(question.answer(rule, cells, (5,)).decision.word)
        any_fail += "FAIL" in words
        passes += words.count("PASS")
        counted += len(words)
    return any_fail, passes, counted


def rate(count: int, of: int) -> str:
    """A share with its 95 % interval (Clopper and Pearson)."""
    low = betaincinv(count, of - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, of - count, 0.975) if count < of else 1.0
    return f"{count / of:.1%} ({low:.1%} – {high:.1%})"


def _contracts(only: str, times: int) -> None:
    heads = " | ".join(f"any FAIL of {questions}" for questions in FAMILIES)
    heads = " | ".join([*(f"PASS, of {questions}" for questions in PASSES), heads])
    print(f"| launches, their median at the bound | {heads} |\n|---|" + "---|" * (len(PASSES) + len(FAMILIES)))
    print(f"| promised |{' 5 % |' * (len(PASSES) + len(FAMILIES))}")
    for name, draw in ((name, draw) for name, draw in CONTRACTS.items() if name.startswith(only)):
        fails = [rate(failed(draw, m, times * reports), times * reports) for m, reports in FAMILIES.items()]
        passes = [rate(passed(draw, m, times * of), times * of * m) for m, of in PASSES.items()]
        shown = ["–" if (name, "PASS") in RIGHT else cell for cell in passes]
        shown += ["–" if (name, "FAIL") in RIGHT else cell for cell in fails]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


def _power(only: str, times: int) -> None:
    print("\n| launches | 5 % inside the bound: PASS | 5 % beyond: FAIL | 10 % beyond: FAIL | 30 % beyond: FAIL |")
    print("|---|---|---|---|---|")
    reports = times * 12
    for name, draw in ((name, draw) for name, draw in EFFECTS.items() if name.startswith(only)):
        inside, *beyond = [share_passed(math.log(shift), draw, reports) for shift in (1 / 1.05, 1.05, 1.1, 1.3)]
        verdicts = reports * QUESTIONS
        words = [rate(inside[0], verdicts), *(rate(failing, verdicts) for _, failing in beyond)]
        print(f"| {name} | {' | '.join(words)} |", flush=True)


def _baselines(only: str, times: int) -> None:
    print("\n| nights of the baseline | nights differ by | unchanged: any FAIL of 40 cells | 10 % slower: PASS |")
    print("|---|---|---|---|")
    slower = math.log1p(0.10)
    for nights in (2, 3, 5, 10):
        for spread in (0.01, 0.05):
            fails, *_ = nightly(nights, spread, 0.0, 200)
            _, passes, cells = nightly(nights, spread, slower, 100)
            print(f"| {nights} | {spread:.0%} | {rate(fails, 200)} | {rate(passes, cells)} |", flush=True)
    print("\n| 5 nights of a baseline, 2 % | " + " | ".join(f"any FAIL of {m}" for m in NIGHTLY) + " | slower: PASS |")
    print("|---|" + "---|" * (len(NIGHTLY) + 1))
    print(f"| promised |{' 5 % |' * (len(NIGHTLY) + 1)}")
    for name, draw in BASELINES.items():
        fails_of = [rate(nightly(5, SPREAD, 0.0, of, draw, cells)[0], of) for cells, of in NIGHTLY.items()]
        _, passes, of = nightly(5, SPREAD, slower, 50, draw)
        print(f"| {name} | {' | '.join(fails_of)} | {rate(passes, of)} |", flush=True)


PARTS = {"contracts": _contracts, "power": _power, "baselines": _baselines}


def main() -> None:
    """Print the tables of the named parts, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="(default: all)")
    parser.add_argument("--only", default="", help="contracts and power: rows whose name begins so")
    parser.add_argument("--times", type=int, default=1, help="contracts and power: so many times as many reports")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.only, given.times)


if __name__ == "__main__":
    main()
