"""One test over every backend × benchmark, with each binding, type and buffer: right bytes, sane samples.

The simulated backend runs in this process. Real MPI is launched once for 2, 3 and 4 ranks; a launch runs all
combinations (where ranks are more than cores, a binding for each benchmark in turn) and reports what was wrong with
each. The quick launch takes one benchmark of each kind, and few types; what it tries in full is not tried again.
A second library has one launch of two ranks: all benchmarks, with the types of the quick one.
"""

from __future__ import annotations

from functools import cache

import pytest

from omb_py.backends.registry import find
from omb_py.engine.program.benchmark import Cell
from omb_py.launchers.mpi_library import mpi_library
from omb_py.suites.registry import BENCHMARKS
from tests.support import conformance
from tests.support.capabilities import benchmarks_of
from tests.support.machines.mpi import report

QUICK = (
    *("latency", "mbw_mr", "latency_mt", "partitioned_latency", "bw_persistent", "allreduce", "scatterv", "ialltoallw"),
    *("reduce_scatter_block_persistent", "neighbor_allgatherv", "put_latency", "get_acc_latency", "cas_latency"),
    *("corandom", "exchange_put", "sendrecv_replace", "comm_split"),
)
"""A benchmark of each kind of call. The other quick launches take more of them, with one type."""
OF_MPI = benchmarks_of("mpi")


def of_two_ranks(name: str, quick: bool) -> list[Cell]:
    return list(conformance.cells("mpi", "native", name, 2, quick=quick))


REST_OF_MPI = tuple(n for n in OF_MPI if n not in QUICK or of_two_ranks(n, True) != of_two_ranks(n, False))
"""Benchmarks of which the quick launch leaves cells out."""


@cache
def is_second_library() -> bool:
    """Whether CI has run all types with another library."""
    return mpi_library().vendor != "MPICH"


@cache
def launched(ranks: int, names: tuple[str, ...], quick: bool) -> dict[str, list[str]] | AssertionError:
    """What one launch of real MPI said: benchmark -> complaints. A failed launch is not tried again."""
    if ranks == 4:
        names = tuple(name for name in names if not BENCHMARKS[name].ranks.admits(3))
    try:
        complaints: dict[str, list[str]] = report("tests.support.conformance", ranks, names, quick)
    except AssertionError as error:
        return error
    return complaints


def complaints_on_mpi(name: str, ranks: int, names: tuple[str, ...], quick: bool = False) -> list[str]:
    complaints = launched(ranks, OF_MPI, True) if is_second_library() else launched(ranks, names, quick)
    if isinstance(complaints, AssertionError):
        raise complaints
    return complaints[name]


@pytest.mark.mpi
@pytest.mark.each_library
@pytest.mark.parametrize("name", QUICK)
def test_two_ranks_of_mpi_move_bytes_of_each_kind(name: str) -> None:
    assert complaints_on_mpi(name, 2, QUICK, quick=True) == []


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.each_library
@pytest.mark.parametrize("name", REST_OF_MPI)
def test_two_ranks_of_mpi_move_every_byte(name: str) -> None:
    assert complaints_on_mpi(name, 2, REST_OF_MPI) == []


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.parametrize("name", OF_MPI)
def test_more_ranks_of_mpi_move_every_byte(name: str) -> None:
    """Three ranks, or four where a benchmark does not admit three."""
    assert complaints_on_mpi(name, 3 if BENCHMARKS[name].ranks.admits(3) else 4, OF_MPI) == []


@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (3, 4))])
def test_simulated_ranks_move_every_byte(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omb_py.engine.measuring.validate.ITERATIONS", 3)  # here as on real ranks
    session = find("mock").connect({"ranks": ranks})
    complaints = {name: conformance.check(session, "mock", "native", name, crowded=ranks != 3) for name in BENCHMARKS}
    assert {name: texts for name, texts in complaints.items() if texts} == {}
