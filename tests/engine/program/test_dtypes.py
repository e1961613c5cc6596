from __future__ import annotations

import numpy as np
import pytest

from omb_py.engine.measuring.payload import from_numbers, to_numbers
from omb_py.engine.program.dtypes import DTYPES, OMB_ALL, OMB_NAMES, check_reduction, parse_dtype, reduction_dtype
from omb_py.errors import UsageError


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_s_type_is_as_large(name: str) -> None:
    assert np.dtype(DTYPES[name].numpy).itemsize == DTYPES[name].itemsize


@pytest.mark.parametrize("name", DTYPES)
def test_integers_are_exact_as_far_as_is_said(name: str) -> None:
    kind, exact = DTYPES[name], DTYPES[name].exact

    def there_and_back(number: int) -> int:
        element = from_numbers(np.array([number]), name)
        assert element.dtype == np.dtype(kind.numpy)
        return int(to_numbers(element, name)[0].real)

    assert there_and_back(exact) == exact
    assert there_and_back(exact - 1) == exact - 1
    if kind.kind == "integer":
        assert exact <= np.iinfo(kind.numpy).max
    else:  # one further, and an odd number is lost
        assert there_and_back(exact + 1) != exact + 1


@pytest.mark.parametrize(
    ("dtype", "op", "valid"),
    [
        ("complex64", "min", "sum, prod"),
        ("float32", "band", "sum, prod, min, max"),
        ("bfloat16", "band", "sum, prod, min, max"),
        ("complex64", "avg", "sum, prod"),
    ],
)
def test_a_reduction_that_mpi_does_not_define_is_refused_in_one_line(dtype: str, op: str, valid: str) -> None:
    with pytest.raises(UsageError, match=rf"reduction {op} is not defined for {dtype}: \w+ types take .*{valid}$"):
        check_reduction(dtype, op)


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
