from __future__ import annotations

import numpy as np
import pytest

from omb_py.engine.dtypes import DTYPES, OMB_ALL, OMB_NAMES, parse_dtype, reduction_dtype
from omb_py.errors import UsageError


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_s_type_is_as_large(name: str) -> None:
    assert np.dtype(DTYPES[name].numpy).itemsize == DTYPES[name].itemsize


@pytest.mark.parametrize("name", DTYPES)
def test_integers_are_exact_as_far_as_is_said(name: str) -> None:
    kind, exact = np.dtype(DTYPES[name].numpy), DTYPES[name].exact
    assert int(np.array(exact, kind)) == exact
    assert int(np.array(exact - 1, kind)) == exact - 1
    if kind.kind in "iu":
        assert exact <= np.iinfo(kind).max
    else:  # one further, and an odd number is lost
        assert int(np.array(exact + 1, kind)) != exact + 1


@pytest.mark.parametrize("name", DTYPES)
def test_each_name_is_read_back_in_any_case(name: str) -> None:
    assert parse_dtype(name) == parse_dtype(f" {name.upper()} ") == name


@pytest.mark.parametrize(
    ("omb", "ours", "mpi"),
    [
        ("mpi_char", "char", "MPI_CHAR"),
        ("mpi_int", "int32", "MPI_INT"),
        ("MPI_FLOAT", "float32", "MPI_FLOAT"),
        ("mpi_double", "float64", "MPI_DOUBLE"),
    ],
)
def test_omb_s_names_are_accepted(omb: str, ours: str, mpi: str) -> None:
    assert parse_dtype(omb) == ours
    assert DTYPES[ours].mpi == mpi


def test_all_means_what_it_means_in_omb() -> None:
    assert [DTYPES[name].mpi for name in OMB_ALL] == ["MPI_CHAR", "MPI_INT", "MPI_FLOAT"]
    assert set(OMB_ALL) <= set(OMB_NAMES.values())


@pytest.mark.parametrize(("word", "near"), [("flaot32", "float32"), ("mpi_itn", "mpi_int"), ("int23", "int32")])
def test_an_unknown_type_is_refused_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown type '{word}': did you mean {near}\?"):
        parse_dtype(word)


def test_reductions_of_characters_are_of_signed_ones() -> None:
    assert reduction_dtype("char") == "int8" and DTYPES["int8"].mpi == "MPI_SIGNED_CHAR"
    assert all(reduction_dtype(name) == name for name in DTYPES if name != "char")
