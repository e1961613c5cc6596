"""One test over every backend × binding × benchmark × type × buffer: right bytes, sane samples.

The simulated backend runs in this process. Real MPI is launched once for 2, 3 and 4 ranks; a launch runs all
combinations and reports what was wrong with each.
"""

from __future__ import annotations

from functools import cache

import pytest

from omb_py.backends.registry import find
from tests.support import conformance
from tests.support.conformance import Combination, combinations
from tests.support.machines.mpi import report

FEW, MORE = (2,), (3, 4)
"""Numbers of ranks on real MPI: in every run of the tests, and in the long one."""


MPI = [pytest.mark.mpi]


@cache
def launched(ranks: int) -> dict[str, list[str]] | AssertionError:
    """What one launch of real MPI said: combination -> complaints. A failed launch is not tried again."""
    try:
        found: dict[str, list[str]] = report("tests.support.conformance", ranks)
    except AssertionError as error:
        return error
    return found


def on_mpi(what: Combination, rank_counts: tuple[int, ...]) -> list[str]:
    found = []
    for ranks in rank_counts:
        told = launched(ranks)
        if isinstance(told, AssertionError):
            raise told
        found += told[str(what)]
    return found


def on_mock(what: Combination, rank_counts: tuple[int, ...]) -> list[str]:
    return [
        text
        for ranks in rank_counts
        for text in conformance.check(find("mock").connect({"ranks": ranks}), "mock", what, crowded=ranks != 3)
    ]


@pytest.mark.parametrize(
    ("backend", "rank_counts", "what"),
    [
        *(pytest.param("mock", FEW, what, id=f"mock-{what}") for what in combinations(("native",))),
        *(
            pytest.param("mock", (*MORE, 5), what, id=f"mock-more-{what}", marks=pytest.mark.slow)
            for what in combinations(("native",))
        ),
        *(
            pytest.param("mpi", ranks, what, id=f"mpi-{ranks[0]}-{what}", marks=[*MPI, ring])
            for ranks, ring in ((FEW, pytest.mark.each_library), (MORE, pytest.mark.slow))
            for what in combinations(("native", "mpi4py"))
        ),
    ],
)
def test_every_byte_is_right_and_every_sample_sane(
    backend: str, rank_counts: tuple[int, ...], what: Combination, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.engine.measuring.validate.ITERATIONS", 3)  # here as on real ranks
    found = (on_mpi if backend == "mpi" else on_mock)(what, rank_counts)
    assert found == []
