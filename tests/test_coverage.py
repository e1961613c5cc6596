"""Every benchmark of OMB 7.5 is here under its name, as docs/coverage.md says, and tests expect its calls."""

from __future__ import annotations

from omb_py.results.dialects.omb.titles import TITLES
from omb_py.suites.registry import BENCHMARKS
from tests.backends.mpi import test_calls


def test_every_benchmark_of_omb_is_here() -> None:
    assert set(TITLES) <= set(BENCHMARKS)
    assert {n for n in TITLES if n not in test_calls.EXPECTED} == {"init", "hello", "bw_fan_in", "bw_fan_out"}
