"""What omb-py prints and stores is what it was: every file under ``data/``, made again and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.capture import ALL, DATA, difference, made
from tests.support.kinds import one_of_each

COSTLY = ("reports/", "old-store-says/", "suites/", "options/", "errors/suite")
"""Each runs many commands or launches; the parts that they are made of have golden files and tests of their own."""


def is_slow(name: str) -> bool:
    """Whether a file is left to ``make test-rest``: a costly one, or one of a benchmark whose kind has another."""
    of_a_benchmark = name.startswith(("benchmarks/", "help/benchmarks/"))
    return name.startswith(COSTLY) or (of_a_benchmark and not one_of_each([Path(name).stem]))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * is_slow(name)) for name in ALL])
def test_it_is_as_it_was(name: str) -> None:
    found = difference(name, made(name))
    assert not found, f"wanted? then python -m tests.golden.capture --update {name}\n{found}"


def test_every_file_is_compared() -> None:
    there = {str(path.relative_to(DATA)) for path in DATA.rglob("*.txt")}
    assert there == set(ALL)


def test_files_are_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in Path(DATA).rglob("*") if path.is_file()) < 2_000_000
