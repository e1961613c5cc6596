"""docs/coverage.md says what is so."""

from __future__ import annotations

import re

import pytest

from omb_py.results.dialects.omb.titles import TITLES
from tests.backends.mpi import test_calls
from tests.support import conformance, coverage
from tests.support.omb_variants import VARIANTS, Variant


def test_the_page_is_as_generated() -> None:
    assert coverage.FILE.read_text() == coverage.page(), "run python -m tests.support.coverage"


def test_every_binary_of_omb_has_a_row_and_no_cell_is_empty() -> None:
    rows = [line.strip("|").split("|") for line in coverage.page().splitlines() if line.startswith("| osu_")]
    assert [row[0].strip().removeprefix("osu_") for row in rows] == list(TITLES)
    assert all(cell.strip() for row in rows for cell in row)


def test_the_tests_that_it_names_have_the_benchmarks() -> None:
    root = coverage.FILE.parents[1]
    for path in set(re.findall(r"`(tests/\S+\.py)`", coverage.page())):
        assert (root / path).is_file(), path
    tried = {what.benchmark for what in conformance.combinations(("native", "mpi4py"))}
    assert set(TITLES) <= tried
    assert {n for n in TITLES if n not in test_calls.EXPECTED} == {"init", "hello", "bw_fan_in", "bw_fan_out"}
    nodes = (root / coverage.NODES).read_text()
    assert "bw_fan_in" in nodes and "bw_fan_out" in nodes


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.words}: {variant.test}")
def test_the_test_of_a_variant_is_there(variant: Variant) -> None:
    text = (coverage.FILE.parents[1] / variant.path).read_text()
    assert f"def {variant.test}(" in text
