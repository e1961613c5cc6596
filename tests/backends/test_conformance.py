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

RANKS = (2, 3, 4)


@cache
def launched(ranks: int) -> dict[str, list[str]] | AssertionError:
    """What one launch of real MPI said: combination -> complaints. A failed launch is not tried again."""
    try:
        found: dict[str, list[str]] = report("tests.support.conformance", ranks, timeout_s=400)
    except AssertionError as error:
        return error
    return found


def on_mpi(what: Combination) -> list[str]:
    found = []
    for ranks in RANKS:
        told = launched(ranks)
        if isinstance(told, AssertionError):
            raise told
        found += told[str(what)]
    return found


def on_mock(what: Combination) -> list[str]:
    return [
        text
        for ranks in (*RANKS, 5)
        for text in conformance.check(find("mock").connect({"ranks": ranks}), "mock", what, crowded=ranks != 3)
    ]


@pytest.mark.parametrize(
    ("backend", "what"),
    [
        *(pytest.param("mock", what, id=f"mock-{what}") for what in combinations(("native",))),
        *(
            pytest.param("mpi", what, id=f"mpi-{what}", marks=[pytest.mark.mpi, pytest.mark.timeout(500)])
            for what in combinations(("native", "mpi4py"))
        ),
    ],
)
def test_every_byte_is_right_and_every_sample_sane(
    backend: str, what: Combination, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omb_py.engine.measuring.validate.ITERATIONS", 3)  # here as on real ranks
    found = (on_mpi if backend == "mpi" else on_mock)(what)
    assert found == []
