"""What omb-py prints and stores is what it was: every file under ``data/``, made again and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.capture import ALL, DATA, difference, made

COSTLY = (
    "reports/accept",
    "reports/compare-suite.txt",
    "reports/first-screen.txt",
    "reports/guidelines.txt",
    "errors/suite-files.txt",
)
"""Each runs dozens of launches; the parts that they are made of have golden files and tests of their own."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith(COSTLY)) for name in ALL]
)
def test_it_is_as_it_was(name: str) -> None:
    found = difference(name, made(name))
    assert not found, f"wanted? then python -m tests.golden.capture --update {name}\n{found}"


def test_every_file_is_compared() -> None:
    there = {str(path.relative_to(DATA)) for path in DATA.rglob("*.txt")}
    assert there == set(ALL)


def test_files_are_small_enough_to_be_read() -> None:
    assert sum(path.stat().st_size for path in Path(DATA).rglob("*") if path.is_file()) < 2_000_000
