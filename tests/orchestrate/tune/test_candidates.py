"""The settings of a collective that are worth a try."""

from __future__ import annotations

import pytest

from omb_py.errors import EnvironmentProblem, UsageError
from omb_py.orchestrate.tune.candidates import candidates, parse_knob
from tests.support.planted_knobs import intel, mpich, nccl, open_mpi

TUNED = "OMPI_MCA_coll_tuned"
LAYER = ("MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE", "0")


def test_open_mpi_needs_its_switch_and_no_component_above() -> None:
    settings = {setting.name: dict(setting.variables) for setting in candidates(open_mpi(), "allreduce")}
    assert list(settings) == ["basic_linear", "nonoverlapping", "recursive_doubling", "ring"]
    assert settings["ring"] == {
        f"{TUNED}_allreduce_algorithm": "ring",
        f"{TUNED}_use_dynamic_rules": "1",
        "OMPI_MCA_coll_han_priority": "0",
    }
    nonblocking = {setting.name: dict(setting.variables) for setting in candidates(open_mpi(), "iallreduce")}
    assert list(nonblocking) == ["ring", "binomial"]
    assert f"{TUNED}_use_dynamic_rules" not in nonblocking["ring"]


def test_mpichs_device_must_not_take_the_call() -> None:
    settings = {setting.name: setting.variables for setting in candidates(mpich(), "allreduce")}
    assert list(settings) == ["nb", "recexch", "ring", "tree", "mpir"], "without auto, and without ccl for GPUs"
    assert settings["ring"] == (LAYER, ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "ring"))
    assert settings["mpir"] == (LAYER,), "the MPI layer chooses"


def test_other_libraries() -> None:
    assert [s.name for s in candidates(intel(), "gather")] == ["1", "2", "3", "4"]
    assert candidates(intel(), "gather")[0].variables == (("I_MPI_ADJUST_GATHER", "1"),)
    pairs = candidates(nccl(), "allreduce", {"NCCL_ALGO": ("ring", "tree")})
    assert [s.name for s in pairs] == [f"{a} {p}" for a in ("ring", "tree") for p in ("ll", "ll128", "simple")]
    assert pairs[0].variables == (("NCCL_ALGO", "ring"), ("NCCL_PROTO", "ll"))


def test_chosen_values_go_with_each_algorithm() -> None:
    segments = {"coll_tuned_allreduce_algorithm_segmentsize": ("0", "8192")}
    names = [s.name for s in candidates(open_mpi(), "allreduce", {**segments, "coll_tuned_allreduce_algorithm": ["4"]})]
    assert names == ["4 segsize=0", "4 segsize=8192", "segsize=0", "segsize=8192"]
    every = candidates(mpich(), "allreduce", {"MPIR_CVAR_ALLREDUCE_RECEXCH_KVAL": ["2", "4"]})
    assert "recexch recexch_kval=4" in [s.name for s in every] and len(every) == 2 * (4 + 1)
    assert len({s.variables for s in every}) == len(every)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"coll_tuned_allreduce_algoritm": ["ring"]}, "did you mean coll_tuned_allreduce_algorithm"),
        ({"coll_tuned_allreduce_algorithm": ["rign"]}, "coll_tuned_allreduce_algorithm takes no 'rign': did you mean"),
        ({"coll_tuned_allreduce_algorithm_segmentsize": ["8K"]}, "takes a whole number, not '8K'"),
        ({"coll_tuned_major_version": ["6"]}, "cannot be set: it is built in"),
        ({"!": ["1"]}, "omb-py knobs --all lists them"),
    ],
)
def test_a_wrong_knob_or_value_has_a_nearest_one(chosen: dict[str, list[str]], text: str) -> None:
    with pytest.raises(UsageError, match=text.replace("?", r"\?")):
        candidates(open_mpi(), "allreduce", chosen)


def test_a_collective_without_knobs_or_of_another_name() -> None:
    with pytest.raises(EnvironmentProblem, match="has no knob that decides the algorithm of scatterv"):
        candidates(open_mpi(), "scatterv")
    with pytest.raises(UsageError, match="unknown collective 'alreduce'"):
        candidates(open_mpi(), "alreduce")


@pytest.mark.parametrize("text", ["", "a", "a=", "=1", "a=1,,2"])
def test_a_knob_on_the_command_line(text: str) -> None:
    with pytest.raises(UsageError, match="--knob takes NAME=VALUE"):
        parse_knob(text)
    assert parse_knob(" a = 1, 2,1 ") == ("a", ("1", "2"))
