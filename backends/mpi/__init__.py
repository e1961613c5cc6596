"""MPI through whatever library mpi4py loads: Open MPI, MPICH, Intel MPI."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.backends.capabilities import Backend
    from omb_py.engine.rank.link import LaunchSpec
    from omb_py.engine.session import Session

    BACKEND: Backend


def connect(spec: LaunchSpec) -> Session:
    from omb_py.backends.mpi.session import MpiSession  # initialises MPI

    return MpiSession(spec)


@cache
def __getattr__(name: str) -> Any:
    if name != "BACKEND":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from omb_py.backends.capabilities import Backend  # ranks need none of it
    from omb_py.backends.mpi.capabilities import CAPABILITIES

    return Backend(CAPABILITIES, connect)
