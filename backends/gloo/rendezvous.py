"""Rendezvous of the ranks of Gloo: a store, and how the ranks learn where it is.

The place is told, in this order, over the line to the supervisor, where omb-py started the ranks; by ``MASTER_ADDR``
and ``MASTER_PORT``, which torchrun sets, and there torchrun's own store serves; over the MPI world of the mpiexec or
srun around us, which is then left. Ranks on one machine meet in a file that only this user can open. Others meet at
rank 0, at a store that lets in who knows the launch's secret (docs/security.md): PyTorch's own TCPStore serves
everybody who connects.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from torch.distributed import Store  # type: ignore[attr-defined]

from omb_py.engine.rank import scratch
from omb_py.engine.rank.handshake import Stranger, new_secret
from omb_py.engine.rank.launcher_variables import environment_rank, on_one_host
from omb_py.engine.rank.secret_socket import Gate, Line, reach
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.torchrun import TORCHRUN

Place = Mapping[str, Any]
"""Where the store is: ``folder``, or ``host``, ``port`` and ``secret``."""
Meet = Callable[[Place | None], Place]
"""Rank 0 gives the place of its store; all get it (:meth:`omb_py.engine.rank.link.Link.meet`)."""
LOOPBACK: Final = "lo"
"""Linux's name of the interface that no other machine reaches."""
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
        return opened(rank, Where(bool(spec.get("one_host")), str(spec.get("host") or "")), meet)
    if environ.keys() >= set(TORCHRUN.address):
        if on_one_host(environ):
            stay_here()
        return None
    where, meet, leave = _by_mpi()
    try:
        return opened(rank, where, meet)
    finally:
        leave()


@dataclass(frozen=True, slots=True)
class Where:
    """Where the ranks are."""

    one_host: bool
    host: str = ""
    """Name or address of this machine by which the others reach it; rank 0 listens on that interface alone."""


def opened(rank: int, where: Where, meet: Meet) -> Any:
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
        return _over_network(rank, where.host, meet)
    except (OSError, RuntimeError, Stranger) as error:
        raise EnvironmentProblem(f"the ranks of Gloo cannot meet: {str(error).splitlines()[0]}") from error


def stay_here() -> None:
    """Let Gloo's own sockets, which take whoever connects, listen on loopback alone, unless the user has chosen."""
    if any(name == LOOPBACK for _, name in socket.if_nameindex()):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)


def _over_network(rank: int, host: str, meet: Meet) -> Any:
    from omb_py.backends.gloo.rendezvous import SecretStore

    if rank == 0:
        secret = new_secret()
        interface = _interface(host)
        served = SecretStore.served(interface, secret)
        name = socket.gethostname()
        meet({"host": interface or host, "name": "" if interface else name, "port": served.port, "secret": secret})
        return served
    place = meet(None)
    return SecretStore.reached(_address(place, socket.gethostname()), place["port"], place["secret"])


def _address(place: Place, own_name: str) -> str:
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


def _by_mpi() -> tuple[Where, Meet, Callable[[], None]]:
    """Where the ranks are, by the MPI world that the launcher made; how to tell the place there, and to leave it."""
    from omb_py.backends import mpi_values
    from omb_py.backends.mpi.library import initialise

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
    where = Where(len(set(hosts)) == 1, hosts[0])
    return where, lambda place: dict(mpi_values.share(comm, place)), mpi.Finalize


JOINING_S: Final = 300.0
"""Seconds that a rank tries to reach the store."""
_LIMIT: Final = timedelta(seconds=JOINING_S)
"""Time limit of a request without one of its own. A supervised launch ends earlier, by ``--timeout``."""
_ASK_AGAIN_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.2


class Values:
    """The values of a store, in rank 0's memory. Thread-safe."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def do(self, request: Sequence[Any]) -> Any:
        """Do a request: an operation's name and its arguments. None for what is not there."""
        operation, key, *arguments = request
        with self._lock:
            if operation == "get":
                return self._values.get(key)
            if operation == "set":
                self._values[key] = arguments[0]
                return b""
            if operation == "add":
                total = int(self._values.get(key, b"0")) + arguments[0]
                self._values[key] = str(total).encode()
                return total
            if operation == "compare_set":
                expected, desired = arguments
                if self._values.get(key, b"") == expected:
                    self._values[key] = desired
                return self._values.get(key, expected)
            if operation == "delete":
                return self._values.pop(key, None) is not None
            if operation == "count":
                return len(self._values)
        raise ValueError(f"not an operation of a store: {operation!r}")


class SecretStore(Store):
    """The store as one rank sees it: rank 0 holds the values, the others ask it.

    Args:
        values: rank 0's; None elsewhere.
        line: to rank 0; None there.
        gate: rank 0's, kept open for ranks that come late.
    """

    def __init__(self, values: Values | None = None, line: Line | None = None, gate: Gate | None = None) -> None:
        super().__init__()
        self._values, self._line, self._gate = values, line, gate
        self._asking = threading.Lock()

    @classmethod
    def served(cls, host: str, secret: str) -> SecretStore:
        """Rank 0's, which listens on one interface (all of them where `host` is empty). Raises OSError."""
        gate, values = Gate(host, 0, f"store {secret}"), Values()
        threading.Thread(target=_admit, args=(gate, values), name="omb-store", daemon=True).start()
        return cls(values, gate=gate)

    @classmethod
    def reached(cls, host: str, port: int, secret: str) -> SecretStore:
        """Another rank's. Raises OSError and Stranger."""
        return cls(line=reach((host, port), f"store {secret}", {}, JOINING_S))

    @property
    def port(self) -> int:
        """The port on which rank 0 listens."""
        assert self._gate is not None
        return self._gate.port

    def close(self) -> None:
        for end in (self._gate, self._line):
            if end is not None:
                end.close()

    def _ask(self, *request: Any) -> Any:
        if self._values is not None:
            return self._values.do(request)
        assert self._line is not None
        with self._asking:
            self._line.send(list(request))
            return self._line.receive()

    def set(self, key: str, value: bytes | str) -> None:
        """Set a value."""
        self._ask("set", key, value.encode() if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        """A value; waits until it is set. Raises RuntimeError after five minutes."""
        return self._awaited(key, _LIMIT)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all are set. Raises RuntimeError after the time limit."""
        for key in keys:
            self._awaited(key, _LIMIT if timeout is None else timeout)

    def _awaited(self, key: str, limit: timedelta) -> bytes:
        deadline, pause = time.monotonic() + limit.total_seconds(), _ASK_AGAIN_S
        while (value := self._ask("get", key)) is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no rank has set {key} within {limit.total_seconds():g} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return bytes(value)

    def add(self, key: str, amount: int) -> int:
        """Add to a number and return the sum."""
        return int(self._ask("add", key, amount))

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Set a value if it is the expected one; what it is then."""
        return bytes(self._ask("compare_set", key, expected.encode(), desired.encode()))

    def check(self, keys: list[str]) -> bool:
        """Whether all are set."""
        return all(self._ask("get", key) is not None for key in keys)

    def delete_key(self, key: str) -> bool:
        """Delete a value; whether there was one."""
        return bool(self._ask("delete", key))

    def num_keys(self) -> int:
        """How many values there are."""
        return int(self._ask("count", ""))


def _admit(gate: Gate, values: Values) -> None:
    while True:
        _, line = gate.admit(threading.TIMEOUT_MAX)
        threading.Thread(target=_serve, args=(line, values), name="omb-store-line", daemon=True).start()


def _serve(line: Line, values: Values) -> None:
    try:
        while True:
            line.send(values.do(line.receive()))
    except (EOFError, OSError, ValueError, TypeError):
        line.close()
