"""Which knobs decide how a collective is done."""

from __future__ import annotations

import pytest

from omb_py.backends.capabilities import Knob
from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.tune import knobs
from tests.support.planted_knobs import intel, mpich, nccl, open_mpi


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("MPIR_CVAR_ALLREDUCE_K_REDUCE_SCATTER_ALLGATHER_KVAL", "allreduce"),
        ("coll_libnbc_iallreduce_algorithm", "iallreduce"),
        ("coll_tuned_scan_algorithm", "scan"),
        ("I_MPI_ADJUST_ALLTOALLV", "alltoallv"),
        ("coll_tuned_priority", ""),
        ("NCCL_ALGO", ""),
    ],
)
def test_the_collective_of_a_knob_is_the_first_and_longest_name_in_it(name: str, collective: str) -> None:
    assert knobs.collective_of(Knob(name, "int", "0")) == collective


def names(knobs: list[Knob]) -> list[str]:
    return [knob.name for knob in knobs]


def test_open_mpis_switch_is_listed_since_the_description_names_it() -> None:
    assert names(knobs.of_collective(open_mpi(), "allreduce")) == [
        "coll_tuned_allreduce_algorithm",
        "coll_tuned_use_dynamic_rules",
    ]
    every = names(knobs.of_collective(open_mpi(), "allreduce", every=True))
    assert "coll_tuned_allreduce_algorithm_segmentsize" in every and "coll_tuned_priority" not in every


def test_mpichs_device_switch_counts_and_intercommunicators_do_not() -> None:
    assert names(knobs.of_collective(mpich(), "allreduce")) == [
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
        "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE",
        "MPIR_CVAR_ALLREDUCE_COMPOSITION",
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    ]


def test_without_a_collective_algorithms_alone_or_everything() -> None:
    assert "coll_tuned_use_dynamic_rules" not in names(knobs.of_collective(open_mpi()))
    assert len(knobs.of_collective(open_mpi(), every=True)) == len(open_mpi().knobs)
    assert names(knobs.of_collective(nccl())) == ["NCCL_ALGO", "NCCL_PROTO"]
    assert names(knobs.of_collective(nccl(), "bcast")) == ["NCCL_ALGO", "NCCL_PROTO"]
    assert names(knobs.of_collective(intel(), "gather")) == ["I_MPI_ADJUST_GATHER"]


def test_an_unknown_collective_has_a_nearest_one() -> None:
    assert knobs.check_collective("osu_Allreduce") == "allreduce"
    with pytest.raises(UsageError, match=r"unknown collective 'alreduce': did you mean allreduce\?"):
        knobs.check_collective("alreduce")


def test_a_collective_that_nothing_decides_is_named_with_those_that_have_something() -> None:
    with pytest.raises(EnvironmentProblem, match=r"Open MPI 5.0.11 has no knob that decides the algorithm of scatterv"):
        knobs.check_collective("scatterv", open_mpi())


def test_a_backend_without_a_library_has_no_knobs() -> None:
    with pytest.raises(EnvironmentProblem, match="backend mock has no library, so no knobs"):
        knobs.library_of("mock")
    with pytest.raises(UsageError, match="unknown backend 'mpy'"):
        knobs.library_of("mpy")
