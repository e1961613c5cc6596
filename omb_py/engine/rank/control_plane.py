"""Control plane: ranks agree beside the measured library, over a star of TCP connections to rank 0, without MPI.

Used where torchrun, or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, has started the ranks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.rank.launcher_variables import TORCHRUN
from omb_py.engine.rank.link import TOKEN_VARIABLE
from omb_py.errors import EnvironmentProblem

PORT_VARIABLE: Final = "OMB_PY_PORT"
"""Port of rank 0; by default the one after MASTER_PORT, which belongs to torchrun."""
PATIENCE_S: Final = 60.0


class Plane(Protocol):
    """The operations by which a session agrees with the other ranks; none of them is timed."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Wait for all ranks."""

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise maximum, on all ranks."""

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum, on all ranks."""

    def gather(self, value: Any) -> list[Any]:
        """One object of each rank, on rank 0; elsewhere an empty list."""

    def share(self, value: Any) -> Any:
        """Rank 0's object, everywhere."""

    def close(self) -> None:
        """Leave."""


class TcpPlane:
    """The star. Messages are Python objects; a connection must know the launch's secret.

    Args:
        rank: this rank.
        size: how many there are.
        address: host and port of rank 0.
        secret: bytes that only the ranks of this launch know.

    Raises:
        EnvironmentProblem: rank 0 cannot listen, or cannot be reached.
    """

    def __init__(self, rank: int, size: int, address: tuple[str, int], secret: bytes) -> None:
        self.rank, self.size = rank, size
        self._others: dict[int, Connection[Any, Any]] = {}
        where = f"{address[0]}:{address[1]}"
        try:
            if rank == 0 and size > 1:
                with Listener(address, backlog=size, authkey=secret) as listener:
                    while len(self._others) < size - 1:
                        connection = listener.accept()
                        self._others[connection.recv()] = connection
            elif size > 1:
                self._others[0] = _reach(address, secret)
                self._others[0].send(rank)
        except (OSError, EOFError, AuthenticationError) as error:
            raise EnvironmentProblem(
                f"rank {rank} of {size} found no way to rank 0 at {where} ({error}): set MASTER_ADDR to a name of rank "
                f"0's machine and {PORT_VARIABLE} to a free port, the same on every rank"
            ) from None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> TcpPlane:
        """The plane of the variables that torchrun sets; of one rank where there are none."""
        (rank,), (size,), (host, master_port) = TORCHRUN.rank, TORCHRUN.size, TORCHRUN.address
        if rank not in environ or size not in environ:
            return cls(0, 1, ("127.0.0.1", 0), b"")
        port = int(environ.get(PORT_VARIABLE) or int(environ.get(master_port, "29500")) + 1)
        secret = environ.get(TOKEN_VARIABLE) or environ.get("TORCHELASTIC_RUN_ID") or "omb-py"
        return cls(int(environ[rank]), int(environ[size]), (environ.get(host, "127.0.0.1"), port), secret.encode())

    def gather(self, value: Any) -> list[Any]:
        """One object of each rank, on rank 0."""
        if self.rank:
            self._others[0].send(value)
            return []
        return [value, *(self._others[rank].recv() for rank in range(1, self.size))]

    def share(self, value: Any) -> Any:
        """Rank 0's object, everywhere."""
        if self.rank:
            return self._others[0].recv()
        for connection in self._others.values():
            connection.send(value)
        return value

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.share(len(self.gather(None)))

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise maximum."""
        return np.asarray(self.share(_fold(np.maximum, self.gather(values))))

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Element-wise sum."""
        return np.asarray(self.share(_fold(np.add, self.gather(values))))

    def close(self) -> None:
        """Close the connections."""
        for connection in self._others.values():
            connection.close()
        self._others.clear()


def _fold(function: Any, parts: list[NDArray[np.float64]]) -> NDArray[np.float64] | None:
    return function.reduce(np.stack(parts), axis=0) if parts else None


def _reach(address: tuple[str, int], secret: bytes) -> Connection[Any, Any]:
    """Connect to rank 0, which may not listen yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return Client(address, authkey=secret)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
