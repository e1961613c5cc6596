"""The rates of ``omb-py history``: python -m tests.lab.error_rates.history counts them with more series."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from omb_py.errors import UsageError
from omb_py.results.analysis.history import enough, history
from omb_py.results.analysis.series import SIDE, Series, SeriesPoint, series, side_of
from omb_py.results.statistics.change_points import ALPHA
from tests.lab.error_rates.history import CASES, rate, series_of
from tests.support.tiers import few_quick

COUNTS = {30: 80, 20: 100, 40: 80, 100: 25}
"""Nights of a series -> series that are judged: the test takes time with the square of the nights, and more."""
LONGEST = "100 nights, AR(1) 0.3"
"""Left to tests.lab.error_rates.history: 40 nights that resemble each other are judged here, and 100 others."""
FALSE = [case for case in CASES if not case.step and case.promised and case.name != LONGEST]


@pytest.mark.slow
@pytest.mark.parametrize("case", few_quick(FALSE, 4), ids=lambda case: case.name)
def test_false_changes_are_as_rare_as_said(case) -> None:
    """The bound is what 1 % gives by chance in 999 of 1000 tests."""
    count = COUNTS[int(case.name.split()[0])]
    assert round(count * rate(case, count)) <= stats.binom.ppf(0.999, count, ALPHA)


@pytest.mark.slow
def test_a_change_of_ten_percent_over_nights_is_found() -> None:
    case = next(case for case in CASES if case.step == 0.1)
    assert rate(case, 40) >= 0.9


@pytest.mark.slow
def test_one_night_five_times_as_slow_hides_no_change() -> None:
    """None of 40 was found."""
    beside = [case for case in CASES if case.step == 0.1 and "5 times as long" in case.name]
    assert len(beside) == 2 and all(rate(case, 40) >= 0.9 for case in beside)


def test_levels_count_nights_and_launches_and_name_the_launches_around_a_step() -> None:
    logs = np.repeat(np.linspace(0, 0.001, 20)[:, None], 3, axis=1)
    found = history(series_of(logs, 0.2), lambda launch: {})
    assert (found.unit, [level.units for level in found.levels]) == ("night", [10, 10])
    assert [level.launches for level in found.levels] == [30, 30]
    (step,) = found.steps
    assert (step.before.launch_id, step.after.launch_id) == ("r9-2-0", "r10-0-0")
    assert step.ratio == pytest.approx(1.2, rel=0.01)


def test_one_night_is_judged_by_runs_and_one_run_not_at_all() -> None:
    night = series_of(np.concatenate([np.zeros((1, 10)), np.full((1, 10), 0.2)], axis=1).reshape(1, 20))
    assert history(night, lambda launch: {}).unit == "run" and len(history(night, lambda launch: {}).steps) == 1
    one_run = tuple(dataclasses.replace(point, run_id="r") for point in night.points)
    whole = dataclasses.replace(night, points=one_run)
    assert not enough(whole) and enough(whole, "launch")
    with pytest.raises(UsageError, match="20 launches of allreduce in 1 run, 10 runs are needed, since launches of"):
        history(whole, lambda launch: {})
    assert len(history(whole, lambda launch: {}, unit="launch").steps) == 1


def test_the_sides_of_a_comparison_are_series_apart(make_row) -> None:
    rows = []
    for number in range(12):
        side = "NEW" if number % 2 else "BASE"
        for tags in ({"compare_side": side}, {}):
            row = make_row(run_id=f"r{number}{len(tags)}", launch_id=f"r{number}{len(tags)}-0", tags=tags)
            rows.append({**row, "library": "MPICH", "statistic": "median", "time_us": 2.0 if number % 2 else 1.0})
    parts: list[Series] = series(rows)
    assert sorted(str(part.facts[SIDE]) for part in parts) == ["BASE", "NEW", "None"]
    sizes = {part.facts[SIDE]: [round(np.exp(point.log_time), 6) for point in part.points] for part in parts}
    assert sizes["BASE"] == [1.0] * 6 and sizes["NEW"] == [2.0] * 6 and len(sizes[None]) == 12
    assert all(isinstance(point, SeriesPoint) for part in parts for point in part.points)


def test_the_side_of_a_comparison_is_read_from_tags_as_text_too() -> None:
    assert side_of({"tags": {"compare_side": "NEW", "rack": "a3"}}) == "NEW"
    assert side_of({"tags": "compare_side=NEW, rack=a3"}) == "NEW"
    assert side_of({"tags": "rack=a3"}) is None
    assert side_of({"tags": None}) is None
