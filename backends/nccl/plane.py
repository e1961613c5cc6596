"""Control plane of NCCL's ranks: over MPI where an MPI launcher has started them, torchrun's store, or TCP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any, Final, TypeVar

from omb_py.backends import mpi_values
from omb_py.engine.rank import plain_values
from omb_py.engine.rank.control_plane import JOINING_S, Plane, TcpPlane
from omb_py.engine.rank.launcher_variables import environment_rank, started_by_mpi
from omb_py.engine.rank.link import TOKEN_VARIABLE, LaunchSpec
from omb_py.engine.samples import Values
from omb_py.engine.session import Session
from omb_py.errors import EnvironmentProblem
from omb_py.launchers.torchrun import TORCHRUN

T = TypeVar("T")
PIECE: Final = 4 << 20
"""Bytes of a value that one key holds: PyTorch's store takes no more than 8 MiB."""
_WORKING: Final = timedelta(days=7)
"""Time limit of a request once all have come: the supervisor finds ranks that hang, and a slow step is no error."""
_FOLDER: Final = "omb-py/plane"


def has_store(environ: Mapping[str, str]) -> bool:
    """Whether torchrun has started these ranks and serves them a store."""
    return environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


class StorePlane(Plane):
    """A star whose messages are values of a store, as JSON: a key a message, which is deleted when all have read it.

    Args:
        store: of PyTorch's; it waits for keys that are not there yet.
        name: of this plane; another plane of the same store has another.

    Raises:
        EnvironmentProblem: the ranks do not meet.
    """

    opened = 0
    """Planes that this process has opened."""

    def __init__(self, rank: int, size: int, store: Any, name: str) -> None:
        self.rank, self.size = rank, size
        self._store, self._name = store, name
        self._count = 0
        self._shared: list[str] = []
        try:
            store.set_timeout(timedelta(seconds=JOINING_S))
            self.barrier()
            store.set_timeout(_WORKING)
        except RuntimeError as error:
            raise EnvironmentProblem(
                f"rank {rank} of {size} did not meet all others at torchrun's store within {JOINING_S:g} s "
                f"({str(error).splitlines()[0]})"
            ) from None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> StorePlane:
        (rank,), (size,), (host, port) = TORCHRUN.rank, TORCHRUN.size, TORCHRUN.address
        address = environ[host], int(environ[port])
        try:
            store = import_module("torch.distributed").TCPStore(*address, None, False)
        except (ImportError, RuntimeError) as error:
            raise EnvironmentProblem(
                f"torchrun's store at {address[0]}:{address[1]} does not answer ({str(error).splitlines()[0]}): set "
                f"{TOKEN_VARIABLE} to the same random text on every rank, and they meet without it"
            ) from None
        cls.opened += 1  # ranks that torchrun starts again must not read what was left before
        name = f"{_FOLDER}/{environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{cls.opened}"
        return cls(int(environ[rank]), int(environ[size]), store, name)

    def gather(self, value: T) -> list[T]:
        key = self._next()
        if self.rank:
            self._write(f"{key}/{self.rank}", value)
            return []
        values = [value]
        for rank in range(1, self.size):
            values.append(self._read(f"{key}/{rank}"))
            self._delete(f"{key}/{rank}")
        # who has sent its part of this has read all that was shared before
        for shared in self._shared:
            self._delete(shared)
        self._shared.clear()
        return values

    def share(self, value: T) -> T:
        key = self._next()
        if self.rank:
            value = self._read(key)
            return value
        self._write(key, value)
        self._shared.append(key)
        return value

    def close(self) -> None:
        """Leave. What was shared last stays in the store, which ends with torchrun: others may not have read it."""
        self._store = None

    def _next(self) -> str:
        self._count += 1
        return f"{self._name}/{self._count}"

    def _write(self, key: str, value: object) -> None:
        text = plain_values.encode(value)
        pieces = range(0, len(text), PIECE)
        for number, start in enumerate(pieces):
            self._store.set(f"{key}/{number}", text[start : start + PIECE])
        self._store.set(key, str(len(pieces)))  # the last: who waits for it finds the pieces

    def _read(self, key: str) -> Any:
        pieces = range(int(self._store.get(key)))
        return plain_values.decode(b"".join(self._store.get(f"{key}/{number}") for number in pieces))

    def _delete(self, key: str) -> None:
        for number in range(int(self._store.get(key))):
            self._store.delete_key(f"{key}/{number}")
        self._store.delete_key(key)


class MpiPlane(mpi_values.MpiAgreement):
    """A communicator of mpi4py, for host data only."""

    def __init__(self) -> None:
        from omb_py.backends.mpi.start import initialise

        self.mpi, _ = initialise("funneled")
        self.comm = self.mpi.COMM_WORLD.Dup()
        self.rank: int = self.comm.Get_rank()
        self.size: int = self.comm.Get_size()

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


def plane_without_mpi(spec: LaunchSpec) -> Plane:
    """The plane by which ranks that omb-py starts meet without MPI; else :func:`plane`. Raises EnvironmentProblem."""
    rank, size = environment_rank(os.environ)
    if rank is None or size is None or "meet" not in spec:
        return plane()
    host = "127.0.0.1" if spec.get("one_host") else str(spec.get("host") or "")
    return TcpPlane.met(rank, size, host, spec["meet"])


class PlaneSession(Session):
    """A session whose ranks tell each other values over a control plane."""

    _plane: Plane

    def _meet(self, plane: Plane) -> None:
        self._plane, self.size, self.rank, self.local = plane, plane.size, plane.rank, (plane.rank,)

    def barrier(self) -> None:
        self._plane.barrier()

    def maximum(self, values: Values) -> Values:
        return self._plane.maximum(values)

    def total(self, values: Values) -> Values:
        return self._plane.total(values)

    def gather(self, value: T) -> list[T]:
        return self._plane.gather(value)

    def share(self, value: T) -> T:
        return self._plane.share(value)
