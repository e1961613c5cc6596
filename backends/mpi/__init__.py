"""MPI through whatever library mpi4py loads: Open MPI, MPICH, Intel MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omb_py.backends.capabilities import Backend
from omb_py.backends.mpi.capabilities import CAPABILITIES

if TYPE_CHECKING:
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session


def _connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.mpi.session import MpiSession  # initialises MPI

    return MpiSession(spec)


BACKEND = Backend(CAPABILITIES, _connect)
