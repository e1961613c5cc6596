"""Control plane: ranks agree beside the measured library, over a star of TCP connections to rank 0, without MPI.

Used where something that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT has started the ranks, and they have a
secret. Ranks of a torchrun that the user started use its store instead (:mod:`omb_py.backends.nccl.plane`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.rank.handshake import Stranger, new_secret
from omb_py.engine.rank.link import TOKEN_VARIABLE
from omb_py.engine.rank.secret_socket import SecretGate, SecretLine, reach
from omb_py.engine.samples import Values, returned
from omb_py.errors import EnvironmentProblem
from omb_py.grammar.json_values import JsonObject
from omb_py.launchers.torchrun import TORCHRUN

PORT_VARIABLE: Final = "OMB_PY_PORT"
"""Port of rank 0; by default the one after MASTER_PORT, which belongs to torchrun."""
PATIENCE_S: Final = 60.0
"""Seconds that ranks wait for rank 0."""
JOINING_S: Final = 300.0
"""Seconds that rank 0 waits for the next of the others."""


T = TypeVar("T")
Meet: TypeAlias = "Callable[[JsonObject | None], JsonObject]"


class Plane(Protocol):
    """The operations by which a session agrees with the other ranks; none of them is timed.

    A subclass defines `gather` and `share`: the others follow from them, with rank 0 in the middle.
    """

    rank: int
    size: int

    def gather(self, value: T) -> list[T]:
        """One object of each rank, on rank 0; elsewhere an empty list."""
        raise NotImplementedError

    def share(self, value: T) -> T:
        """Rank 0's object, everywhere."""
        raise NotImplementedError

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.share(len(self.gather(None)))

    def maximum(self, values: Values) -> Values:
        """Element-wise maximum, on all ranks."""
        return returned(values, np.asarray(self.share(_fold(np.maximum, self.gather(values)))))

    def total(self, values: Values) -> Values:
        """Element-wise sum, on all ranks."""
        return returned(values, np.asarray(self.share(_fold(np.add, self.gather(values)))))

    def close(self) -> None:
        """Close the connections."""


class TcpPlane(Plane):
    """The star over TCP. Messages are JSON; rank 0 and each other rank prove that they know the launch's secret.

    Args:
        rank: this rank.
        size: how many there are.
        address: host and port of rank 0, which listens on that interface alone, and only until all have come.
        secret: text that only the ranks of this launch know; not needed by a single rank.
        announce: told the port on rank 0 once it listens there, for an address whose port is 0.

    Raises:
        EnvironmentProblem: rank 0 cannot listen, or cannot be reached, or is not of this launch.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        address: tuple[str, int],
        secret: str,
        announce: Callable[[int], object] = lambda port: None,
    ) -> None:
        self.rank, self.size = rank, size
        self._others: dict[int, SecretLine] = {}
        secret = f"plane {secret}" if secret else ""  # a proof for one socket says nothing at another
        try:
            if rank == 0 and size > 1:
                gate = SecretGate(*address, secret)
                announce(gate.port)
                self._gather_ranks(gate)
            elif size > 1:
                self._others[0] = reach(address, secret, {"rank": rank}, PATIENCE_S)
        except (OSError, Stranger) as error:
            raise EnvironmentProblem(
                f"rank {rank} of {size} found no way to rank 0 at {address[0]}:{address[1]} ({error}): set MASTER_ADDR "
                f"to a name of rank 0's machine and {PORT_VARIABLE} to a free port, the same on every rank"
            ) from None

    def _gather_ranks(self, gate: SecretGate) -> None:
        try:
            while len(self._others) < self.size - 1:
                hello, line = gate.admit(JOINING_S)
                rank = hello.get("rank")
                if isinstance(rank, int) and 0 < rank < self.size and rank not in self._others:
                    self._others[rank] = line
                else:
                    line.close()
        except TimeoutError:
            missing = sorted(set(range(1, self.size)) - self._others.keys())
            raise OSError(f"rank {missing[0]} did not come within {JOINING_S:g} s") from None
        finally:
            gate.close()

    @classmethod
    def met(cls, rank: int, size: int, host: str, meet: Meet) -> TcpPlane:
        """The plane of ranks whose supervisor tells them where rank 0 listens. Raises EnvironmentProblem.

        Args:
            host: name or address of rank 0's machine, which the others reach.
            meet: rank 0 gives the place, all get it (:meth:`omb_py.engine.rank.link.Link.meet`).
        """
        if rank == 0:
            secret = new_secret()
            return cls(0, size, (host, 0), secret, lambda port: meet({"host": host, "port": port, "secret": secret}))
        place = meet(None)
        return cls(rank, size, (str(place["host"]), int(str(place["port"]))), str(place["secret"]))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> TcpPlane:
        """The plane of the variables that torchrun sets; of one rank where there are none.

        Raises:
            EnvironmentProblem: the ranks cannot meet, or have no secret.
        """
        (rank,), (size,), (host, master_port) = TORCHRUN.rank, TORCHRUN.size, TORCHRUN.address
        if rank not in environ or size not in environ:
            return cls(0, 1, ("127.0.0.1", 0), "")
        port = int(environ.get(PORT_VARIABLE) or int(environ.get(master_port, "29500")) + 1)
        secret = environ.get(TOKEN_VARIABLE, "")
        if int(environ[size]) > 1 and not secret:  # nothing that others can guess serves, such as the number of the job
            raise EnvironmentProblem(
                f"these ranks have no secret by which they know each other: start them with torchrun or omb-py, or set "
                f"{TOKEN_VARIABLE} to the same random text on every rank ({TOKEN_VARIABLE}=$(openssl rand -hex 16))"
            )
        return cls(int(environ[rank]), int(environ[size]), (environ.get(host, "127.0.0.1"), port), secret)

    def gather(self, value: T) -> list[T]:
        if self.rank:
            self._others[0].send(value)
            return []
        return [value, *(self._others[rank].receive() for rank in range(1, self.size))]

    def share(self, value: T) -> T:
        if self.rank:
            value = self._others[0].receive()
            return value
        for line in self._others.values():
            line.send(value)
        return value

    def close(self) -> None:
        for line in self._others.values():
            line.close()
        self._others.clear()


def _fold(function: np.ufunc, parts: list[Values]) -> NDArray[np.float64] | None:
    return function.reduce(np.stack(parts), axis=0) if parts else None
