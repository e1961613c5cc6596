"""A store of PyTorch's over sockets that know the launch's secret: its own TCPStore serves everybody who connects."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from torch.distributed import Store  # type: ignore[attr-defined]

from omb_py.engine.rank.secret_socket import SecretGate, SecretLine, reach

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

    def __init__(
        self, values: Values | None = None, line: SecretLine | None = None, gate: SecretGate | None = None
    ) -> None:
        super().__init__()
        self._values, self._line, self._gate = values, line, gate
        self._asking = threading.Lock()

    @classmethod
    def served(cls, host: str, secret: str) -> SecretStore:
        """Rank 0's, which listens on one interface (all of them where `host` is empty). Raises OSError."""
        gate, values = SecretGate(host, 0, f"store {secret}"), Values()
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

    def _ask(self, *request: object) -> Any:
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
        return self._await_value(key, _LIMIT)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all are set. Raises RuntimeError after the time limit."""
        for key in keys:
            self._await_value(key, _LIMIT if timeout is None else timeout)

    def _await_value(self, key: str, limit: timedelta) -> bytes:
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


def _admit(gate: SecretGate, values: Values) -> None:
    while True:
        _, line = gate.admit(threading.TIMEOUT_MAX)
        threading.Thread(target=_serve, args=(line, values), name="omb-store-line", daemon=True).start()


def _serve(line: SecretLine, values: Values) -> None:
    try:
        while True:
            line.send(values.do(line.receive()))
    except (EOFError, OSError, ValueError, TypeError):
        line.close()
