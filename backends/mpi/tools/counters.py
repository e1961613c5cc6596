"""Performance variables of a rank that MPI_T reads between timed loops (``--pvar``)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.backends.mpi.tools.interface import Interface, Variable
from omb_py.errors import EnvironmentProblem, nearest

_by = ctypes.byref


@dataclass(frozen=True, slots=True)
class _Open:
    """A variable with its handle and room for its values."""

    handle: Any
    values: Any


class Counters:
    """A session of MPI_T with one handle for each variable.

    Raises:
        EnvironmentProblem: the library has no such variable now, or one that belongs to something else than the process
            or a communicator.
    """

    def __init__(self, mpi: Any, vendor: str, names: Sequence[str], comm: Any) -> None:
        self._interface = Interface(mpi, vendor)
        self._session = ctypes.c_void_p()
        self._interface.call("pvar_session_create", _by(self._session))
        # handles of Open MPI are pointers, those of MPICH numbers; MPI_T wants the address of the handle
        self._comm = self._interface.handle_type(mpi._handleof(comm))
        known = {variable.name: variable for variable in self._interface.performance_variables()}
        self._open = {name: self._opened(_known(name, known, vendor)) for name in names}

    def _opened(self, variable: Variable) -> _Open:
        if variable.object not in ("", "communicator"):
            raise EnvironmentProblem(f"{variable.name} belongs to a {variable.object}, and --pvar reads none of it")
        handle, count = ctypes.c_void_p(), ctypes.c_int()
        of = _by(self._comm) if variable.object else None
        self._interface.call("pvar_handle_alloc", self._session, variable.index, of, _by(handle), _by(count))
        if not variable.continuous:
            self._interface.call("pvar_start", self._session, handle)
        return _Open(handle, (self._interface.c_type(variable) * max(1, count.value))())

    def read(self) -> Mapping[str, float]:
        """Each variable on this rank; of one with several values, as one for each peer, their sum."""
        out = {}
        for name, opened in self._open.items():
            self._interface.call("pvar_read", self._session, opened.handle, opened.values)
            out[name] = float(sum(opened.values))
        return out


def _known(name: str, known: Mapping[str, Variable], vendor: str) -> Variable:
    if name in known:
        return known[name]
    if "_monitoring_" in name:  # Open MPI closes this component when nobody wants it
        raise EnvironmentProblem(f"{vendor} counts {name} with monitoring alone: set OMPI_MCA_pml_monitoring_enable=1")
    raise EnvironmentProblem(f"{vendor} has no performance variable {name!r} here: {nearest(name, known)}")
