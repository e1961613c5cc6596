"""MPI's datatypes and reductions by our names; 16-bit floats where a library adds them to MPI."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Final

from mpi4py import MPI

from omb_py.backends.mpi.start import standard_abi, vendor
from omb_py.engine.program.datatype_layouts import Derived, derived
from omb_py.engine.program.dtypes import DTYPES, MPI_OPS
from omb_py.errors import EnvironmentProblem

OPS: Final[dict[str, MPI.Op]] = {name: getattr(MPI, name.upper()) for name in MPI_OPS}

_MPICH_HANDLES: Final = {"float16": 0x4C000246, "bfloat16": 0x4C00024C}
"""``MPIX_C_FLOAT16`` and ``MPIX_BFLOAT16`` in MPICH's mpi.h since 5.0; a wrong handle would abort an older one.
MPI's standard ABI, whose handles are pointers, has neither."""
_MPICH_SINCE: Final = 5
_OPEN_MPI_SYMBOLS: Final = {"float16": "ompi_mpi_short_float"}
"""Open MPI's extension ``shortfloat``: the predefined object behind ``MPIX_C_FLOAT16``; of size 0 where it was not
built for this compiler."""
_HALF_BYTES: Final = 2


@cache
def datatype(name: str) -> MPI.Datatype:
    """mpi4py's datatype of one of our types. Raises EnvironmentProblem when the library has no such type."""
    layout = derived(name)
    if layout:
        return _make_derived_datatype(layout)
    kind = DTYPES[name]
    if not kind.mpi.startswith("MPIX_"):
        predefined: MPI.Datatype = getattr(MPI, kind.mpi.removeprefix("MPI_"))
        return predefined
    library, version = vendor(MPI)
    handle = 0
    if library == "MPICH" and not standard_abi(MPI) and int(version.split(".")[0]) >= _MPICH_SINCE:
        handle = _MPICH_HANDLES.get(name, 0)
    elif library == "Open MPI" and name in _OPEN_MPI_SYMBOLS:
        handle = _address(_OPEN_MPI_SYMBOLS[name])
    if handle:
        half = MPI.Datatype.fromhandle(handle)
        if half != MPI.DATATYPE_NULL and half.Get_size() == _HALF_BYTES:
            return half
    if standard_abi(MPI):
        raise EnvironmentProblem(
            f"MPI's standard ABI has no {kind.mpi}, so no -T {name}: use the usual mpi4py, which calls {library}'s own"
        )
    raise EnvironmentProblem(
        f"{library} {version} has no {kind.mpi}, so no -T {name}: MPI defines no floats of 8 or 16 bits; "
        "MPICH 5 has float16 and bfloat16, Open MPI 5 with the extension shortfloat float16"
    )


def _make_derived_datatype(kind: Derived) -> MPI.Datatype:
    """A committed type; kept, as the next size's or type's program may name it again."""
    base, item = datatype(kind.base), DTYPES[kind.base].itemsize
    if kind.pieces == ((0, kind.span),):
        combined = base.Create_contiguous(kind.times * kind.span)
    elif len(kind.pieces) == 1 and kind.pieces[0][0] == 0:
        combined = base.Create_vector(kind.times, kind.pieces[0][1], kind.span)
    else:
        places, lengths = ([piece[j] for piece in kind.pieces] for j in (0, 1))
        repetition = base.Create_indexed(lengths, places).Create_resized(0, kind.span * item)
        combined = repetition.Create_contiguous(kind.times)
    return combined.Create_resized(0, kind.extent).Commit()


def _address(symbol: str) -> int:
    """Address of an object of the MPI library; 0 where there is none."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(MPI.__file__), symbol))
    except ValueError:
        return 0
