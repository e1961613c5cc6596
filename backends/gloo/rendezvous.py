"""Rendezvous of the ranks of Gloo: a TCP store, and the source of its address.

In this order: the line to the supervisor, where omb-py started the ranks; ``MASTER_ADDR`` and ``MASTER_PORT``, which
torchrun sets; the MPI world of the mpiexec or srun around us, which carries the address and is then left.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from omb_py.engine.rank.launcher_variables import TORCHRUN, environment_rank
from omb_py.errors import EnvironmentProblem

Meet = Callable[[int | None], tuple[str, int]]
"""Rank 0 gives the port of its store; all get host and port (:meth:`omb_py.engine.rank.link.Link.meet`)."""
JOINING: Final = timedelta(minutes=5)
"""Time that a rank waits for the others at the store. A supervised launch ends earlier, by ``--timeout``."""
WORKING: Final = timedelta(days=7)
"""Time limit of an operation: the supervisor finds ranks that hang, and a slow step is no error."""


def place(environ: Mapping[str, str], ranks: int) -> tuple[int, int]:
    """(rank, size) of this process by the launcher's variables. Raises EnvironmentProblem."""
    rank, size = environment_rank(environ)
    if rank is None:
        if ranks == 1:
            return 0, 1
        raise EnvironmentProblem(
            "the launcher does not say which rank this process is: start it with torchrun, mpiexec or srun, or set "
            "RANK and WORLD_SIZE"
        )
    return rank, size or ranks


def store(rank: int, size: int, spec: Mapping[str, Any], environ: Mapping[str, str]) -> Any:
    """The store at which the ranks meet; None where PyTorch finds it by the environment. Raises EnvironmentProblem."""
    meet: Meet | None = spec.get("meet")
    if meet is not None:
        return _opened(rank, size, meet)
    if environ.keys() >= set(TORCHRUN.address):
        return None
    return _opened(rank, size, _by_mpi)


def _opened(rank: int, size: int, meet: Meet) -> Any:
    TCPStore = import_module("torch.distributed").TCPStore
    try:
        if rank == 0:
            opened = TCPStore("0.0.0.0", 0, size, True, timeout=JOINING, wait_for_workers=False)
            meet(opened.port)
            return opened
        host, port = meet(None)
        return TCPStore(host, port, size, False, timeout=JOINING, wait_for_workers=False)
    except RuntimeError as error:
        raise EnvironmentProblem(f"the ranks of Gloo cannot meet: {str(error).splitlines()[0]}") from error


def _by_mpi(port: int | None) -> tuple[str, int]:
    """The address over the MPI world that the launcher made."""
    from omb_py.backends.mpi.start import initialise

    try:
        mpi, _ = initialise("single")
    except EnvironmentProblem as problem:
        raise EnvironmentProblem(
            f"the ranks of Gloo have no address to meet at: set MASTER_ADDR and MASTER_PORT for all of them ({problem})"
        ) from None
    comm = mpi.COMM_WORLD
    _, announced = environment_rank(os.environ)
    if announced not in (None, comm.Get_size()):
        raise EnvironmentProblem(
            f"the ranks of Gloo have no address to meet at: the launcher started {announced} processes, but the MPI "
            f"world of mpi4py has {comm.Get_size()}: set MASTER_ADDR and MASTER_PORT for all of them, or use torchrun"
        )
    names = comm.allgather(socket.gethostname())
    host = "127.0.0.1" if len(set(names)) == 1 else names[0]
    address: tuple[str, int] = comm.bcast((host, port))
    mpi.Finalize()
    return address
