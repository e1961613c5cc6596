"""Rendezvous of the ranks of Gloo: a store, and how the ranks learn where it is.

The place is told, in this order, over the line to the supervisor, where omb-py started the ranks; by ``MASTER_ADDR``
and ``MASTER_PORT``, which torchrun sets, and there torchrun's own store serves; over the MPI world of the mpiexec or
srun around us, which is then left. Ranks on one machine meet in a file that only this user can open. Others meet at
rank 0, at a socket that lets in who knows the launch's secret (docs/security.md).
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypedDict

from omb_py.engine.rank import scratch
from omb_py.engine.rank.handshake import Stranger, new_secret
from omb_py.engine.rank.launcher_variables import environment_rank, on_one_host
from omb_py.engine.rank.link import LaunchSpec
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.torchrun import TORCHRUN


class MeetingPoint(TypedDict, total=False):
    """Where the store is: a folder, or a socket."""

    folder: str
    host: str
    name: str
    """The name of rank 0's machine, where it listens on all its interfaces."""
    port: int
    secret: str


Meet = Callable[[MeetingPoint | None], MeetingPoint]
"""Rank 0 gives the place of its store; all get it (:meth:`omb_py.engine.rank.link.Link.meet`)."""
LOOPBACK: Final = "lo"
"""Linux's name of the interface that no other machine reaches."""
WORKING: Final = timedelta(days=7)
"""Time limit of an operation: the supervisor finds ranks that hang, and a slow step is no error."""


def rank_and_size(environ: Mapping[str, str], ranks: int) -> tuple[int, int]:
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


def store(rank: int, size: int, spec: LaunchSpec, environ: Mapping[str, str]) -> Any:
    """The store at which the ranks meet; None where PyTorch finds it by the environment. Raises EnvironmentProblem."""
    meet: Meet | None = spec.get("meet")
    if meet is not None:
        return opened(rank, RankSite(bool(spec.get("one_host")), str(spec.get("host") or "")), meet)
    if environ.keys() >= set(TORCHRUN.address):
        if on_one_host(environ):
            stay_here()
        return None
    where, meet, leave = _meet_by_mpi()
    try:
        return opened(rank, where, meet)
    finally:
        leave()


@dataclass(frozen=True, slots=True)
class RankSite:
    """Where the ranks are."""

    one_host: bool
    host: str = ""
    """Name or address of this machine by which the others reach it; rank 0 listens on that interface alone."""


def opened(rank: int, where: RankSite, meet: Meet) -> Any:
    """The store, which rank 0 opens. Raises EnvironmentProblem."""
    distributed = import_module("torch.distributed")
    try:
        if where.one_host:
            stay_here()
            if rank == 0:
                folder = scratch.make()
                atexit.register(scratch.remove, folder)
                meet({"folder": str(folder)})
            else:
                folder = Path(meet(None)["folder"])
            # without the number of ranks: with it the last one to leave looks for the file, which is gone then
            return distributed.FileStore(str(folder / "store"))
        return _open_over_network(rank, where.host, meet)
    except (OSError, RuntimeError, Stranger) as error:
        raise EnvironmentProblem(f"the ranks of Gloo cannot meet: {str(error).splitlines()[0]}") from error


def stay_here() -> None:
    """Let Gloo's own sockets, which take whoever connects, listen on loopback alone, unless the user has chosen."""
    if any(name == LOOPBACK for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)


def _open_over_network(rank: int, host: str, meet: Meet) -> Any:
    from omb_py.backends.gloo.secret_store import SecretStore

    if rank == 0:
        secret = new_secret()
        interface = _interface(host)
        served = SecretStore.served(interface, secret)
        name = socket.gethostname()
        meet({"host": interface or host, "name": "" if interface else name, "port": served.port, "secret": secret})
        return served
    place = meet(None)
    return SecretStore.reached(_address_for(place, socket.gethostname()), place["port"], place["secret"])


def _address_for(place: MeetingPoint, own_name: str) -> str:
    """The address of rank 0 for this machine: loopback, where that is all it gave, serves on its own machine alone.

    There its name need not resolve.
    """
    return str(place["host"] if place["name"] in ("", own_name) else place["name"])


def _interface(host: str) -> str:
    """The address of the interface to listen on; empty, for all, where a machine's own name leads to loopback."""
    with contextlib.suppress(OSError):
        address = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        if not ipaddress.ip_address(address).is_loopback:
            return address
    return ""


def _meet_by_mpi() -> tuple[RankSite, Meet, Callable[[], None]]:
    """Where the ranks are, by the MPI world that the launcher made; how to tell the place there, and to leave it."""
    from omb_py.backends import mpi_values
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
    hosts = mpi_values.share(comm, mpi_values.gather(comm, socket.gethostname()))
    where = RankSite(len(set(hosts)) == 1, hosts[0])
    return where, lambda place: mpi_values.share(comm, place), mpi.Finalize
