"""Which C function does a step: the large-count one where a number does not fit into a C int. Nothing is allocated."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.engine import steps
from omb_py.engine.program import Blocks, Region, Request, Step
from omb_py.errors import EnvironmentProblem

pytestmark = pytest.mark.mpi
G = 1 << 30


@pytest.fixture(scope="module")
def calls() -> Any:
    import mpi4py

    mpi4py.rc.initialize = False
    from omb_py.backends.mpi import calls

    return calls


class FourRanks:
    def Get_size(self) -> int:
        return 4


def region(nbytes: int, name: str = "send") -> Region:
    return Region(name, 0, nbytes)


def blocks(*sizes: int) -> Blocks:
    return Blocks.packed("recv", sizes)


CASES = [
    (steps.bcast(region(2 * G - 1), 0, "char"), "MPI_Bcast"),
    (steps.bcast(region(2 * G), 0, "char"), "MPI_Bcast_c"),
    (steps.bcast(region(4 * G), 0, "int32"), "MPI_Bcast"),
    (steps.bcast(region(8 * G), 0, "int32"), "MPI_Bcast_c"),
    (steps.send(region(2 * G), 1, "char"), "MPI_Send_c"),
    (steps.irecv(region(2 * G), 1, "char", Request(0)), "MPI_Irecv_c"),
    (steps.persistent(steps.send(region(2 * G), 1, "char"), Request(0)), "MPI_Send_init_c"),
    (steps.nonblocking(steps.bcast(region(2 * G), 0, "char"), Request(0)), "MPI_Ibcast_c"),
    # what counts is the number that is passed: a block, not the whole buffer
    (steps.allgather(region(G), region(4 * G, "recv"), "char"), "MPI_Allgather"),
    (steps.alltoall(region(4 * G), region(4 * G, "recv"), "char"), "MPI_Alltoall"),
    (steps.alltoall(region(8 * G), region(8 * G, "recv"), "char"), "MPI_Alltoall_c"),
    (steps.gather(region(G), region(4 * G, "recv"), 0, "char"), "MPI_Gather"),
    (steps.scatter(region(4 * G), region(G, "recv"), 0, "char"), "MPI_Scatter"),
    (steps.reduce_scatter_block(region(8 * G), region(2 * G, "recv"), "int8", "sum"), "MPI_Reduce_scatter_block_c"),
    (steps.reduce_scatter(region(4 * G), region(G, "recv"), (G,) * 4, "int8", "sum"), "MPI_Reduce_scatter"),
    # a displacement is passed as an int too
    (steps.allgatherv(region(G), blocks(G, G), "char"), "MPI_Allgatherv"),
    (steps.allgatherv(region(G), blocks(G, G, G), "char"), "MPI_Allgatherv_c"),
    (steps.allgatherv(region(G), blocks(G, G, G), "int32"), "MPI_Allgatherv"),
    # alltoallw displaces by bytes; over neighbors it does so by MPI_Aint, which is wide
    (steps.alltoallw(blocks(4, 2 * G, 4), blocks(4, 2 * G, 4), "int32"), "MPI_Alltoallw_c"),
    (steps.neighbor("alltoallw", blocks(4, 2 * G, 4), blocks(4, 2 * G, 4), "int32", (1, 2, 3), (1, 2, 3)),
     "MPI_Neighbor_alltoallw"),
    (steps.neighbor("alltoall", region(6 * G), region(6 * G, "recv"), "char", (1, 2, 3), (1, 2, 3)),
     "MPI_Neighbor_alltoall_c"),
    (steps.barrier(), "MPI_Barrier"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "function"), CASES, ids=[f"{k}-{name}" for k, (_, name) in enumerate(CASES)])
def test_the_function_follows_from_the_numbers_it_is_given(calls: Any, step: Step, function: str) -> None:
    assert calls.function_of(step, lambda step: FourRanks())[0] == function


def test_arrays_of_counts_are_as_wide_as_the_function_reads_them(calls: Any) -> None:
    from mpi4py import MPI

    from omb_py.engine.memory import HostMemory

    class Memory(HostMemory):
        def address(self, name: str) -> int:
            return 4096

    resolver = calls.Resolver(lambda step: MPI.COMM_WORLD, Memory("numpy"), 0)
    resolver(steps.alltoallv(blocks(8, 8), blocks(8, 8), "char"))
    assert {array.itemsize for array in resolver._arrays} == {4}
    try:
        resolver(steps.alltoallv(blocks(8, 3 * G), blocks(8, 3 * G), "char"))
    except EnvironmentProblem as problem:
        assert MPI.VERSION < 4 and "MPI_Alltoallv_c, which is missing in " in str(problem)
    else:
        assert resolver._arrays[-1].itemsize == 8 and resolver._arrays[-4].tolist() == [8, 3 * G]


def test_each_function_that_takes_a_count_has_a_large_count_form_or_says_what_is_missing(calls: Any) -> None:
    from mpi4py import MPI

    for function, words in calls.CALLS.values():
        if any(word in calls._NUMBERS for word in words.split()):
            try:
                assert calls.address_of(f"{function}_c")
            except EnvironmentProblem as problem:
                assert MPI.VERSION < 4, problem
                assert f"needs {function}_c, which is missing in Open MPI" in str(problem) or "Intel" in str(problem)
