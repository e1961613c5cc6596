"""Ways of not having measured."""

from __future__ import annotations

import random

import pytest

from omb_py.errors import NoVerdict
from omb_py.orchestrate.programs.measured import Repetitions
from omb_py.results.store.row import Row


def rows(*values: float) -> dict[str, Row]:
    return {str(number): {"value": value} for number, value in enumerate(values)}


def test_a_table_that_comes_twice_was_stored() -> None:
    repetitions = Repetitions()
    table = [1234.56 + number for number in range(6)]
    repetitions.check("BASE", rows(*table))
    with pytest.raises(NoVerdict, match=r"2 launches \(BASE, NEW\) printed the same 6 numbers"):
        repetitions.check("NEW", rows(*table))


def test_a_number_of_full_precision_that_comes_twice_was_stored() -> None:
    repetitions = Repetitions()
    repetitions.check("NEW", rows(0.12345678901234567))
    with pytest.raises(NoVerdict, match="the same 1 number "):
        repetitions.check("NEW", rows(0.12345678901234567))


def test_a_few_digits_come_again_by_chance() -> None:
    noise = random.Random(1)
    for _ in range(200):
        repetitions = Repetitions()
        for _ in range(20):
            repetitions.check("NEW", rows(round(noise.gauss(0.26, 0.005), 2), round(noise.gauss(123.45, 1), 2)))


def test_means_of_coarse_numbers_come_again_by_chance() -> None:
    repetitions = Repetitions()
    for _ in range(2):
        repetitions.check("NEW", {"time": {"value": (0.1 + 0.1 + 0.2) / 3, "iterations": 3}})
