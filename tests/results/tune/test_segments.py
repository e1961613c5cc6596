"""Ranges of sizes: joined from the choices, cut back to what fresh launches show."""

from __future__ import annotations

import math

from omb_py.results.compare.judge import Answer, Verdict
from omb_py.results.tune.rules import LibrarySetting
from omb_py.results.tune.segments import SizeRange, proved, rule_of, segments

SIZES = (8, 16, 32, 64, 128, 256)


def answer(verdict: Verdict, ratio: float = 0.8) -> Answer:
    low, high = ratio - 0.1, ratio + 0.1
    return Answer(verdict, "median", 10.0, 8.0, ratio, low, high, 0.0, 0.0, 0.01, 1, (10, 10), True, 1.05, None)


def test_a_range_reaches_to_the_next_setting_but_not_beyond_what_was_measured() -> None:
    found = segments({0: 1, 2: 1, 3: 2, 5: 2}, SIZES)
    assert found == [SizeRange(1, 8, 63, (0, 2)), SizeRange(2, 64, 256, (3, 5))]


def test_nothing_is_said_between_sizes_that_were_not_bisected() -> None:
    assert segments({0: 1, 2: 2}, SIZES) == [SizeRange(1, 8, 8, (0,)), SizeRange(2, 32, 32, (2,))]
    assert segments({0: 1, 3: 0, 5: 1}, SIZES) == [SizeRange(1, 8, 8, (0,)), SizeRange(1, 256, 256, (5,))]
    assert segments({0: 0, 5: 0}, SIZES) == []


def test_the_proof_cuts_back_to_what_is_faster() -> None:
    found = [SizeRange(1, 8, 255, (0, 2, 4))]
    assert proved(found, {p: answer("FASTER") for p in (0, 2, 4)}, SIZES) == found
    cut = proved(found, {0: answer("UNCLEAR"), 2: answer("FASTER"), 4: answer("SAME")}, SIZES)
    assert cut == [SizeRange(1, 32, 32, (2,))]
    assert proved(found, {p: answer("SAME") for p in (0, 2, 4)}, SIZES) == []


def test_an_unclear_size_between_faster_ones_stays_and_a_slower_one_splits() -> None:
    found = [SizeRange(1, 8, 128, (0, 2, 4))]
    stays = {0: answer("FASTER"), 2: answer("UNCLEAR"), 4: answer("FASTER")}
    assert proved(found, stays, SIZES) == found
    splits = stays | {2: answer("SLOWER", 1.3)}
    assert proved(found, splits, SIZES) == [SizeRange(1, 8, 8, (0,)), SizeRange(1, 128, 128, (4,))]


def test_a_rule_has_the_mean_ratio_and_an_interval_that_holds_all() -> None:
    rule = rule_of(
        SizeRange(1, 8, 63, (0, 2)),
        {0: answer("FASTER", 0.5), 2: answer("FASTER", 0.8)},
        LibrarySetting("ring"),
        "bcast",
        4,
    )
    assert math.isclose(rule.ratio, math.sqrt(0.4))
    assert (rule.low, rule.high) == (0.4, 0.9)
    assert (rule.collective, rule.ranks, rule.first_bytes, rule.last_bytes) == ("bcast", 4, 8, 63)
