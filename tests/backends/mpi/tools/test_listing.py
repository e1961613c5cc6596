"""MPI_T of the library that is installed here, asked in a child process."""

from __future__ import annotations

import json

import pytest

from omb_py.backends.capabilities import LibraryKnobs
from omb_py.backends.mpi.tools.interface import SCOPES, VERBOSITIES
from omb_py.backends.mpi.tools.knobs import library_knobs
from omb_py.backends.registry import find

pytestmark = [pytest.mark.mpi, pytest.mark.each_library]


@pytest.fixture(scope="module")
def library() -> LibraryKnobs:
    return library_knobs()


def test_every_knob_is_described_in_words(library: LibraryKnobs) -> None:
    assert library.reason == "" and len(library.knobs) > 100 and library.how == "MPI_T"
    assert len({knob.name for knob in library.knobs}) == len(library.knobs)
    assert {knob.scope for knob in library.knobs} <= {*SCOPES, ""}
    assert {knob.verbosity for knob in library.knobs} <= {*VERBOSITIES, "expert", "hidden"}
    assert all(knob.type and knob.type != "unknown" for knob in library.knobs)
    enumerations = [knob for knob in library.knobs if knob.type == "enum" and knob.value]
    assert len(enumerations) > 10


def test_the_algorithm_of_an_allreduce_can_be_set_and_read_back(
    library: LibraryKnobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"MPICH": "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "Open MPI": "coll_tuned_allreduce_algorithm"}
    knob = library.knob(names[library.library])
    assert knob is not None and knob.choice("ring") and knob.choice(knob.value) and knob.value != "ring"
    assert knob.category
    monkeypatch.setenv(knob.variable, "ring")
    library_knobs.cache_clear()
    changed = library_knobs().knob(knob.name)
    library_knobs.cache_clear()
    assert changed is not None and changed.value == "ring"


def test_the_backend_hands_them_on(library: LibraryKnobs) -> None:
    knobs = find("mpi").capabilities.knobs()
    assert knobs is not None
    assert [knob.name for knob in knobs.knobs] == [knob.name for knob in library.knobs]


def test_what_is_built_into_mpich_is_json(library: LibraryKnobs) -> None:
    trees = [json.loads(tree) for tree in library.trees]
    if library.library != "MPICH":
        assert trees == []
        return
    assert len(trees) == 3 and all("collective=allreduce" in tree for tree in trees)
