"""Control plane of NCCL's ranks: over MPI where an MPI launcher has started them, torchrun's store, or TCP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.backends import mpi_values
from omb_py.backends.nccl.store_plane import StorePlane, has_store
from omb_py.engine.rank.control_plane import Plane, TcpPlane
from omb_py.engine.rank.launcher_variables import started_by_mpi
from omb_py.engine.rank.link import TOKEN_VARIABLE


class MpiPlane:
    """A communicator of mpi4py, for host data only."""

    def __init__(self) -> None:
        from omb_py.backends.mpi.start import initialise

        self.mpi, _ = initialise("funneled")
        self.comm = self.mpi.COMM_WORLD.Dup()
        self.rank: int = self.comm.Get_rank()
        self.size: int = self.comm.Get_size()

    def barrier(self) -> None:
        self.comm.Barrier()

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._reduced(values, self.mpi.MAX)

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._reduced(values, self.mpi.SUM)

    def _reduced(self, values: NDArray[np.float64], op: Any) -> NDArray[np.float64]:
        result = np.empty_like(values)
        self.comm.Allreduce(values, result, op)
        return result

    def gather(self, value: Any) -> list[Any]:
        return mpi_values.gather(self.comm, value)

    def share(self, value: Any) -> Any:
        return mpi_values.share(self.comm, value)

    def close(self) -> None:
        self.comm.Free()
        if not self.mpi.Is_finalized():
            self.mpi.Finalize()


def plane(environ: Mapping[str, str] = os.environ) -> Plane:
    """The plane that fits the launcher. Raises EnvironmentProblem."""
    if started_by_mpi(environ):
        return MpiPlane()
    if has_store(environ) and not environ.get(TOKEN_VARIABLE):
        return StorePlane.from_environment(environ)
    return TcpPlane.from_environment(environ)
