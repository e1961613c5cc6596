"""How often an acceptance says PASS or FAIL where it must not, for launches and nights of many kinds.

``python -m tests.lab.error_rates.accept [contracts] [power] [baselines]`` prints the tables of evidence/accept.md: seeded,
the same everywhere. ``contracts --only nights --times 5`` prints one row of more reports.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv

from omb_py.results.accept.decision import NightBound, may_miss, shared
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
    Floats,
    autoregressive,
    drifting,
    halves,
    normal,
)

Ints = NDArray[np.int_]
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
    "AR(1), 0.7": autoregressive(0.7),
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
BY_SPREAD = ("normal", "10 % twice as slow", "AR(1), 0.3", "AR(1), 0.5")
"""Kinds of launches whose power is shown at other spreads too; what is twice as slow is so by the spread's factor."""
NIGHTLY: Mapping[int, int] = {1: 1000, 40: 100, 1000: 10}
"""Cells of a report -> reports that are drawn."""


def counts_of(reports: Floats, rule: AcceptRule) -> tuple[Ints, Ints]:
    """Judge criteria with limit 0, all launches of all reports at once, as ``accept`` does it round after round.

    Args:
        reports: shape (reports, criteria, launches); NaN where a launch was lost.
        rule: the declared rule.

    Returns:
        Of each criterion 1 for PASS, -1 for FAIL, 0 for MARGINAL, and the launches that were made of it.
    """
    words, made = np.zeros(reports.shape[:2], int), np.zeros(reports.shape[:2], int)
    lost = np.isnan(reports).any()
    for number in range(1, rule.rounds + 1):
        left, n = words == 0, min(rule.most, number * rule.launches)
        made[left] = n
        correlations = [pooled_correlation(map(_kept, report, of)) for report, of in zip(reports, made, strict=True)]
        beyond, within = (reports[..., :n] > 0).sum(axis=2), (reports[..., :n] <= 0).sum(axis=2)
        if lost:
            misses = _misses_one_by_one(reports, rule, number, correlations)
        else:
            looks = tuple(min(rule.most, k * rule.launches) for k in range(1, number + 1))
            misses = np.array(
                [_misses(rule, report[:, :n], looks, c) for report, c in zip(reports, correlations, strict=True)]
            )
        passing = left & (beyond <= misses[..., 0])
        words[passing] = 1
        words[left & ~passing & (within <= misses[..., 1])] = -1
    return words, made


def _kept(launches: Floats, made: int) -> Floats:
    own = launches[:made]
    kept: Floats = own[~np.isnan(own)]
    return kept


def _misses(rule: AcceptRule, report: Floats, looks: tuple[int, ...], correlation: float) -> Ints:
    """The counts of the criteria of a report, shape (criteria, 2)."""
    least, most = report.min(axis=1), report.max(axis=1)
    beyond = np.maximum(0, least) - np.maximum(0, -most)
    counting = shared(correlation, beyond, most - least, looks[-1], len(report))
    far, near = (may_miss(rule, len(report), looks, c) for c in (0.0, correlation))
    return np.where((counting == 0)[:, None], far, near)


def _misses_one_by_one(reports: Floats, rule: AcceptRule, number: int, correlations: Sequence[float]) -> Ints:
    """The counts of criteria that lack launches, each of which has looks of its own."""
    ends = [min(rule.most, k * rule.launches) for k in range(1, number + 1)]
    seen = np.stack([(~np.isnan(reports[..., :end])).sum(axis=2) for end in ends], axis=2)
    return np.array(
        [
            [may_miss(rule, len(report), tuple(looks.tolist()), c) for looks in report]
            for report, c in zip(seen, correlations, strict=True)
        ]
    )


def drawn(draw: Draw, questions: int, reports: int, seed: Sequence[int], shift: float = 0.0) -> tuple[Ints, Ints]:
    """Judge so many reports of so many criteria that are so far from their bounds: words and launches."""
    rng, rule = np.random.default_rng(seed), AcceptRule()
    logs = draw(rng, reports * questions, rule.most).reshape(reports, questions, rule.most)
    return counts_of(logs + shift, rule)


def passed(draw: Draw, questions: int, reports: int, seed: int = 1) -> int:
    """Criteria with PASS whose median is their bound, of reports of so many criteria."""
    return int((drawn(draw, questions, reports, [seed])[0] == 1).sum())


def failed(draw: Draw, questions: int, reports: int, seed: int = 1) -> int:
    """Reports with any FAIL of so many criteria, each with its median at its bound."""
    return int((drawn(draw, questions, reports, [seed, questions])[0] == -1).any(axis=1).sum())


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


def sign_test(draw: Draw, questions: int, reports: int, shift: float) -> tuple[float, float]:
    """Share of criteria that a sign test of all launches at once passes, and fails after Bonferroni's correction."""
    rng, rule = np.random.default_rng([2]), AcceptRule()
    beyond = (draw(rng, reports * questions, rule.most) + shift > 0).sum(axis=1)
    alpha = 1 - rule.confidence
    fail = bdtr(rule.most - beyond, rule.most, 0.5) <= alpha / questions
    return float((bdtr(beyond, rule.most, 0.5) <= alpha).mean()), float(fail.mean())


def _power(only: str, times: int) -> None:
    """Beside a sign test of all 24 launches, which knows of no correlation."""
    heads = ("spread", "launches", "criteria", "3 % inside: PASS", "5 % inside: PASS", "sign test", "launches made")
    heads += ("5 % beyond: FAIL", "sign test", "10 % beyond: FAIL", "30 % beyond: FAIL", "launches made")
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    kinds = [(name, draw) for name, draw in EFFECTS.items() if name.startswith(only)]
    for spread, (name, draw), questions in product((0.02, 0.05, 0.20), kinds, (1, QUESTIONS)):
        if spread == SPREAD or name in BY_SPREAD:
            print(f"| {spread:.0%} | {name} | {questions} | {_power_of(draw, spread, questions, times)} |", flush=True)


def _power_of(draw: Draw, spread: float, questions: int, times: int) -> str:
    """Cells of a row. Distances are shrunk instead of widening the launches: it is the same to a count."""
    of, scale = times * 660 // questions, SPREAD / spread
    inside, near, beyond, far, farthest = (
        drawn(draw, questions, of, [2], scale * math.log(shift)) for shift in (1 / 1.03, 1 / 1.05, 1.05, 1.1, 1.3)
    )
    of_signs = [sign_test(draw, questions, of, scale * math.log(shift)) for shift in (1 / 1.05, 1.05)]
    shares = [(inside[0] == 1).mean(), (near[0] == 1).mean(), of_signs[0][0], (beyond[0] == -1).mean()]
    shares += [of_signs[1][1], (far[0] == -1).mean(), (farthest[0] == -1).mean()]
    cells = [f"{share:.0%}" for share in shares]
    return " | ".join([*cells[:3], f"{near[1].mean():.0f}", *cells[3:], f"{farthest[1].mean():.0f}"])


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
