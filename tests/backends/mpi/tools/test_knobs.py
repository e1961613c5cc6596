"""What MPI_T lists, read as each vendor means it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.backends.capabilities import Choice
from omb_py.backends.mpi.tools import knobs
from omb_py.launchers.mpi_library import MPILibrary
from tests.support.planted_knobs import MPICH, OPEN_MPI, intel, mpich, open_mpi


def test_open_mpi_is_set_by_its_prefix_and_has_real_enumerations() -> None:
    knob = open_mpi().knob("coll_tuned_allreduce_algorithm")
    assert knob is not None and knob.type == "enum" and knob.value == "ignore"
    assert knob.variable == "OMPI_MCA_coll_tuned_allreduce_algorithm"
    assert knob.choice("ring") == Choice("ring", "4") and knob.choice("tree") is None
    constant = open_mpi().knob("coll_tuned_major_version")
    assert constant is not None and constant.variable == "", "what is built in cannot be set"
    assert open_mpi().knob("OMPI_MCA_coll_tuned_priority") == open_mpi().knob("coll_tuned_priority")


def test_mpich_lists_its_values_in_the_description_and_the_number_is_the_place_in_it() -> None:
    knob = mpich().knob("mpir_cvar_allreduce_intra_algorithm")
    assert knob is not None and knob.value == "auto" and knob.variable == "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"
    assert [choice.word for choice in knob.choices] == ["auto", "nb", "recexch", "ring", "tree", "ccl"]
    assert knob.choice("ring") == Choice("ring", "Force ring algorithm")


@pytest.mark.parametrize(
    ("type", "text", "words"),
    [
        ("CHAR", "Tree type kary - kary tree type knomial_1 - grows from the left", ["kary", "knomial_1"]),
        ("CHAR", "Defines the location of tuning file.", []),
        ("INT", "Select 0 Auto selection 1 NM + SHM between rank 0 and root 2 NM only", ["0", "1", "2"]),
        ("INT", "A value of 0 disables it. Use 1 For one", []),
        ("INT", "Select 2 Rings", []),
        ("INT", "", []),
    ],
)
def test_values_in_one_line(type: str, text: str, words: list[str]) -> None:
    assert [choice.word for choice in knobs.choices_in(text, type)] == words


def test_intel_names_its_variable_in_a_tag() -> None:
    radix = intel().knob("I_MPI_ADJUST_BCAST_NODE_KARY_RADIX")
    assert radix is not None and radix.name == "MPIR_CVAR_BCAST_NODE_KARY_RADIX"
    assert (radix.value, radix.verbosity, radix.description) == ("-1", "expert", "K value")
    pin = intel().knob("I_MPI_PIN")
    assert pin is not None and pin.variable == "I_MPI_PIN" and pin.source == ""
    declared = intel().knob("I_MPI_ADJUST_ALLREDUCE")
    assert declared is not None and declared.choice("8") == Choice("8", "ring") and "Intel" in declared.source


def test_an_unknown_library_is_listed_and_nobody_claims_to_know_how_it_is_set() -> None:
    listed = knobs.knobs_of({**OPEN_MPI, "library": "Other MPI"})
    assert {knob.variable for knob in listed.knobs} == {""}


def test_a_library_without_variables_says_so() -> None:
    nothing = knobs.knobs_of({**MPICH, "cvars": []})
    assert nothing.knobs == () and nothing.reason == "MPICH 5.0.2 has MPI_T, which lists no control variable"
    without = knobs.knobs_of({"library": "Old MPI", "version": "1", "reason": "Old MPI has no MPI_T_init_thread"})
    assert without.reason == "Old MPI has no MPI_T_init_thread" and without.fix


def test_a_child_that_dies_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    library = MPILibrary("MPICH", "5.0.2", path="/nowhere/libmpi.so")
    monkeypatch.setattr(knobs, "mpi_library", lambda: library)
    monkeypatch.setattr(knobs, "answer_of", lambda module, timeout: {"error": "signal 11"})
    knobs.library_knobs.cache_clear()
    assert knobs.library_knobs().reason == "MPICH 5.0.2 did not list its variables (signal 11)"
    knobs.library_knobs.cache_clear()
    monkeypatch.setattr(knobs, "mpi_library", lambda: MPILibrary(reason="no MPI", fix="install one"))
    assert (knobs.library_knobs().reason, knobs.library_knobs().fix) == ("no MPI", "install one")
    knobs.library_knobs.cache_clear()


def test_trees_that_are_built_in(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so"
    library.write_bytes(b'\x7fELF\0{"collective=bcast":{}}\0rest\0{"collective=barrier":{}}\0')
    assert knobs.built_in_trees(library) == ('{"collective=bcast":{}}', '{"collective=barrier":{}}')
    assert knobs.built_in_trees(tmp_path / "absent") == ()
