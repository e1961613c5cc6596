"""Efficiency over ranks, to exact values."""

from __future__ import annotations

import pytest

from omb_py.errors import UsageError
from omb_py.results.analysis.efficiency import efficiencies

WEAK = {2: (80.0, 20.0), 4: (80.0, 45.0), 8: (80.0, 80.0)}


def test_weak() -> None:
    two, four, eight = efficiencies(WEAK, "weak")
    assert [one.ranks for one in (two, four, eight)] == [2, 4, 8]
    assert [one.step_us for one in (two, four, eight)] == [100, 125, 160]
    assert [one.efficiency for one in (two, four, eight)] == [1, pytest.approx(0.8), pytest.approx(0.625)]
    assert [one.alone for one in (two, four, eight)] == [0.8, pytest.approx(0.64), 0.5]
    assert [one.speedup for one in (two, four, eight)] == [1.6, pytest.approx(2.56), 4]


def test_strong() -> None:
    """Perfect: half the time on twice the ranks."""
    perfect = efficiencies({4: (25.0, 5.0), 2: (50.0, 10.0), 8: (12.5, 12.5)}, "strong")
    assert [one.ranks for one in perfect] == [2, 4, 8]
    assert [one.efficiency for one in perfect] == [1, 1, pytest.approx(2 * 60 / (8 * 25))]
    assert perfect[-1].speedup == 4


def test_one_number_of_ranks_is_too_few() -> None:
    with pytest.raises(UsageError, match="two or more numbers of ranks; there are 2"):
        efficiencies({2: (1.0, 1.0)}, "weak")


def test_computing_nothing() -> None:
    with pytest.raises(UsageError, match="compute=5ms"):
        efficiencies({2: (1.0, 1.0), 4: (0.0, 1.0)}, "weak")
