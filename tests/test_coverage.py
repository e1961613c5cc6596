"""docs/coverage.md names every benchmark of OMB 7.5, and tests run each of them."""

from __future__ import annotations

import re

from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites.registry import BENCHMARKS
from tests.architecture.graph import ROOT
from tests.backends.mpi import test_calls

PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")


def test_the_page_names_every_benchmark() -> None:
    families = PAGE.partition("| family |")[2].partition("\n\n")[0]
    (only_here,) = re.findall(r"^Only here: (.*)\.$", PAGE, re.M)
    assert set(re.findall(r"`(\w+)`", families)) == set(TITLES)
    assert set(re.findall(r"`(\w+)`", only_here)) == set(BENCHMARKS) - set(TITLES)


def test_the_calls_of_every_benchmark_of_omb_are_expected() -> None:
    assert {n for n in TITLES if n not in test_calls.EXPECTED} == {"init", "hello", "bw_fan_in", "bw_fan_out"}
