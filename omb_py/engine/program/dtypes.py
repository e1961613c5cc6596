"""Element types: our names, OMB's names, MPI's names, and how far integers stay exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omb_py.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class DType:
    """A type of elements, by its names in MPI and NumPy."""

    name: str
    """Name as stored: ``char int8 … complex128``."""
    mpi: str
    """The MPI datatype, as printed in OMB's ``# Datatype:`` line."""
    itemsize: int
    numpy: str
    """NumPy's type; for bfloat16 and fp8, which NumPy does not know, that of their bits."""
    exact: int
    """Largest integer up to which every integer is exact, for validation of reductions."""
    kind: Literal["integer", "float", "bfloat", "fp8", "complex"] = "integer"


_ALL = (
    DType("char", "MPI_CHAR", 1, "int8", 2**7 - 1),
    DType("int8", "MPI_SIGNED_CHAR", 1, "int8", 2**7 - 1),
    DType("uint8", "MPI_UNSIGNED_CHAR", 1, "uint8", 2**8 - 1),
    DType("int16", "MPI_SHORT", 2, "int16", 2**15 - 1),
    DType("uint16", "MPI_UNSIGNED_SHORT", 2, "uint16", 2**16 - 1),
    DType("int32", "MPI_INT", 4, "int32", 2**31 - 1),
    DType("uint32", "MPI_UNSIGNED", 4, "uint32", 2**32 - 1),
    DType("int64", "MPI_INT64_T", 8, "int64", 2**62),
    DType("uint64", "MPI_UINT64_T", 8, "uint64", 2**62),
    DType("float16", "MPIX_C_FLOAT16", 2, "float16", 2**11, "float"),
    DType("bfloat16", "MPIX_BFLOAT16", 2, "uint16", 2**8, "bfloat"),
    DType("float8e4m3", "MPIX_FLOAT8_E4M3", 1, "uint8", 2**4, "fp8"),
    DType("float8e5m2", "MPIX_FLOAT8_E5M2", 1, "uint8", 2**3, "fp8"),
    DType("float32", "MPI_FLOAT", 4, "float32", 2**24, "float"),
    DType("float64", "MPI_DOUBLE", 8, "float64", 2**53, "float"),
    DType("complex64", "MPI_C_FLOAT_COMPLEX", 8, "complex64", 2**24, "complex"),
    DType("complex128", "MPI_C_DOUBLE_COMPLEX", 16, "complex128", 2**53, "complex"),
)
"""MPI has no 16-bit floats: they are there where a library adds them under a name of its own (MPIX). None has fp8."""
FP8 = tuple(d.name for d in _ALL if d.kind == "fp8")
"""Floats of 8 bits: four of exponent and three of mantissa without infinities, or five and two (OCP 8-bit formats)."""

MPI_OPS = ("sum", "prod", "min", "max", "land", "lor", "lxor", "band", "bor", "bxor")
FACTORED = ("avg", "mulsum")
"""Sums with a factor, which NCCL has and MPI has not: the average, and a sum of elements times :func:`factor`."""
OPS = (*MPI_OPS, *FACTORED)
OPS_OF: Mapping[str, tuple[str, ...]] = {
    "integer": MPI_OPS,
    "float": MPI_OPS[:4],
    "bfloat": MPI_OPS[:4],
    "fp8": MPI_OPS[:4],
    "complex": MPI_OPS[:2],
}
"""MPI's reductions of each kind of type."""
DTYPES = {d.name: d for d in _ALL}
OMB_NAMES = {"mpi_char": "char", "mpi_int": "int32", "mpi_float": "float32", "mpi_double": "float64"}
C_NAMES = {"int": "int32", "half": "float16", "float": "float32", "double": "float64"}
"""As C and nccl-tests name them."""
OMB_ALL = ("char", "int32", "float32")
"""The types of ``-T all`` in OMB 7.5."""


def parse_dtype(text: str) -> str:
    """Our name of a type given as ours, as OMB's (``mpi_int``) or as C's (``float``). Raises UsageError."""
    word = text.strip().lower()
    word = OMB_NAMES.get(word, C_NAMES.get(word, word))
    if word not in DTYPES:
        raise UsageError(f"unknown type {text!r}: {nearest(word, [*DTYPES, *OMB_NAMES, 'all'])}")
    return word


def parse_reductions(text: str) -> tuple[str, ...]:
    """Our names of reductions with commas between them, also as MPI's (``MPI_SUM``). Raises UsageError.

    >>> parse_reductions("MPI_SUM,max")
    ('sum', 'max')
    """
    words = [word.strip().lower().removeprefix("mpi_") for word in text.split(",")]
    if unknown := [word for word in words if word not in OPS]:
        raise UsageError(f"unknown operation {unknown[0]!r}: {nearest(unknown[0], OPS)}")
    return tuple(dict.fromkeys(words))


def reduction_dtype(name: str) -> str:
    """The type a reduction uses: MPI defines no arithmetic on MPI_CHAR, so it means MPI_SIGNED_CHAR (OMB 7.5)."""
    return "int8" if name == "char" else name


def check_reduction(dtype: str, op: str) -> None:
    """Raises UsageError when a reduction is not defined for a type (MPI-4.1, section 6.9.2; nccl.h has no complex)."""
    kind = DTYPES[dtype].kind
    if op not in OPS_OF[kind] and (op not in FACTORED or kind == "complex"):
        raise UsageError(f"reduction {op} is not defined for {dtype}: {kind} types take {', '.join(OPS_OF[kind])}")


def factor(rank: int) -> int:
    """The number that ``mulsum`` multiplies the elements of a rank by: 1 on even ranks, 2 on odd ones.

    So do nccl-tests (ncclVerifiablePremulScalar in verifiable.h).
    """
    return 1 + rank % 2
