"""The MPI library in this process: its start, its vendor, its datatypes and reductions."""

from __future__ import annotations

import ctypes
import os
import time
import warnings
from functools import cache
from typing import Any, Final

import mpi4py
from mpi4py import MPI

from omb_py.distribution import pip_install
from omb_py.engine.program.datatype_layouts import Derived, derived
from omb_py.engine.program.dtypes import DTYPES, MPI_OPS
from omb_py.engine.program.requirements import LEVELS
from omb_py.errors import EnvironmentProblem


def load() -> Any:
    """The MPI module, nothing initialised. Raises EnvironmentProblem when there is no library."""
    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(
            f"no MPI library can be loaded ({error}); install one: {pip_install('mpich')}"
        ) from error
    return MPI


def initialise(level: str) -> tuple[Any, float]:
    """Load MPI and initialise it at a thread level, unless the program already did.

    Returns:
        the MPI module, and how long MPI_Init_thread took in µs (0 when it was called before).
    """
    MPI = load()
    if not MPI.Is_initialized():
        with warnings.catch_warnings():
            # mpi4py suspects a foreign launcher; we count the ranks of the world and say it in one line
            warnings.filterwarnings("ignore", "suspicious MPI execution environment", RuntimeWarning)
            began = time.perf_counter_ns()
            MPI.Init_thread(LEVELS.index(level))
            return MPI, (time.perf_counter_ns() - began) / 1000
    return MPI, 0.0


def initialise_session(level: str) -> tuple[Any, Any, Any, float]:
    """Begin with a session instead of MPI_Init (``-I``), and make a communicator of all processes from it.

    Returns:
        the MPI module, the session, the communicator, and how long both took in µs.

    Raises:
        EnvironmentProblem: the library has no sessions.
    """
    MPI = load()
    began = time.perf_counter_ns()
    try:
        info = MPI.Info.Create()
        info.Set("thread_level", f"MPI_THREAD_{level.upper()}")
        session = MPI.Session.Init(info)
        group = session.Create_group("mpi://WORLD")
        comm = MPI.Intracomm.Create_from_group(group, "omb-py")
    except NotImplementedError:
        raise missing_in(MPI, "MPI_Session_init") from None
    took = (time.perf_counter_ns() - began) / 1000
    info.Free()
    group.Free()
    return MPI, session, comm, took


def allow_forks() -> None:
    """Tell libraries that pin memory, which look when they start, that this process will fork."""
    for name in ("RDMAV_FORK_SAFE", "IBV_FORK_SAFE"):
        os.environ.setdefault(name, "1")


def missing_in(mpi: Any, function: str) -> EnvironmentProblem:
    """The error for a function that the library does not have."""
    name, version = vendor(mpi)
    if function.endswith("_c"):
        return EnvironmentProblem(
            f"a count above {(1 << 31) - 1} elements needs {function}, which is missing in {name} {version} "
            f"(MPI-{mpi.VERSION}.{mpi.SUBVERSION}) and there since MPI-4.0: a newer library, a smaller -m or a wider -T"
        )
    return EnvironmentProblem(
        f"{function} is missing in {name} {version}, which implements MPI-{mpi.VERSION}.{mpi.SUBVERSION}: "
        "it is there since MPI-4.0: use a newer library"
    )


def vendor(mpi: Any) -> tuple[str, str]:
    """Name and version of the MPI library, as we store it."""
    name, version = mpi.get_vendor()
    return str(name), ".".join(map(str, version))


OPS: Final[dict[str, Any]] = {name: getattr(MPI, name.upper()) for name in MPI_OPS}

_MPICH_HANDLES: Final = {"float16": 0x4C000246, "bfloat16": 0x4C00024C}
"""``MPIX_C_FLOAT16`` and ``MPIX_BFLOAT16`` in MPICH's mpi.h since 5.0; a wrong handle would abort an older one."""
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
        return _derived_datatype(layout)
    kind = DTYPES[name]
    if not kind.mpi.startswith("MPIX_"):
        predefined: MPI.Datatype = getattr(MPI, kind.mpi.removeprefix("MPI_"))
        return predefined
    library, version = vendor(MPI)
    handle = 0
    if library == "MPICH" and int(version.split(".")[0]) >= _MPICH_SINCE:
        handle = _MPICH_HANDLES.get(name, 0)
    elif library == "Open MPI" and name in _OPEN_MPI_SYMBOLS:
        handle = _address(_OPEN_MPI_SYMBOLS[name])
    if handle:
        half = MPI.Datatype.fromhandle(handle)
        if half != MPI.DATATYPE_NULL and half.Get_size() == _HALF_BYTES:
            return half
    raise EnvironmentProblem(
        f"{library} {version} has no {kind.mpi}, so no -T {name}: MPI defines no floats of 8 or 16 bits; "
        "MPICH 5 has float16 and bfloat16, Open MPI 5 with the extension shortfloat float16"
    )


def _derived_datatype(kind: Derived) -> MPI.Datatype:
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
