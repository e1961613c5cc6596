"""MPI through whatever library mpi4py loads: Open MPI, MPICH, Intel MPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omb_py.engine.session import Probe, Session


class MpiBackend:
    """The backend as the registry sees it; the library is loaded only when asked for."""

    name = "mpi"

    def probe(self) -> Probe:
        """Ask a child process what MPI is here, so that a broken library cannot take this process down."""
        from omb_py.backends.mpi.library import probe

        return probe()

    def connect(self, spec: Mapping[str, Any]) -> Session:
        """Initialise MPI with the thread level of the launch. Raises EnvironmentProblem."""
        from omb_py.backends.mpi.session import MpiSession

        return MpiSession(spec)


BACKEND = MpiBackend()
