"""Derived datatypes over real MPI: exactly the bytes of the layout travel, in every benchmark that takes -D."""

from __future__ import annotations

import pytest

from tests.support.machines.mpi import report

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]


@pytest.mark.parametrize(("ranks", "least"), [(2, 180), pytest.param(3, 40, marks=pytest.mark.slow)])
def test_exactly_what_the_layout_says_travels(ranks: int, least: int) -> None:
    told = report("tests.support.sessions.layouts", ranks)
    assert told["wrong"] == []
    assert told["checked"] >= least
    assert told["flipped"][0] is False and told["flipped"][1] > 0
