"""``nccl.core`` over the stand-in libnccl: names, arguments and checks of arrays as in nccl4py 0.6."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from types import SimpleNamespace
from typing import Any

import numpy as np
from cupy.cuda import nccl as _c

__version__ = "0.6.0"
SUM, PROD, MAX, MIN, AVG = range(5)
_NAMES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
_TYPES = {name: number for number, name in enumerate(_NAMES)}


class NcclInvalid(Exception):
    """An argument that this layer refuses."""


class Result(IntEnum):
    Success = 0
    RemoteError = 6


class CTAPolicy(IntFlag):
    DEFAULT, EFFICIENCY, ZERO = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class NCCLConfig:
    """The fields that omb-py sets; what is not set stays NCCL's."""

    min_ctas: int | None = None
    max_ctas: int | None = None
    cta_policy: CTAPolicy | None = None

    def laid_out(self) -> ctypes.Array[ctypes.c_int]:
        """As ``ncclConfig_v22700``: size, magic, version, then the fields; pointers are null."""
        made = (ctypes.c_int * 18)(72, 0, -0x35014111, 22700, *[-(2**31)] * 14)
        for place in (8, 9, 12, 13):
            made[place] = 0
        policy = 0 if self.cta_policy is None else int(self.cta_policy)
        for place, value in ((6, self.min_ctas), (7, self.max_ctas), (15, policy)):
            made[place] = -(2**31) if value is None else value
        return made


class UniqueId:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __bytes__(self) -> bytes:
        return self._content

    @staticmethod
    def from_bytes(b: bytes) -> UniqueId:
        return UniqueId(bytes(b))


def get_unique_id(empty: bool = False) -> UniqueId:
    return UniqueId(_c.get_unique_id())


def get_version() -> Any:
    code = _c.get_version()
    return SimpleNamespace(libnccl=SimpleNamespace(version=f"{code // 10000}.{code % 10000 // 100}.{code % 100}"))


def get_error_string(nccl_result: int) -> str:
    return str(_c._library.ncclGetErrorString(int(nccl_result)).decode())


group_start, group_end = _c.groupStart, _c.groupEnd


def _of(array: Any) -> tuple[int, int, int]:
    """(address, elements, number of the type)."""
    return array.data.ptr, array.size, _TYPES[np.dtype(array.dtype).name]


def _equal(condition: bool, what: str) -> None:
    if not condition:
        raise NcclInvalid(what)


class Communicator:
    """A communicator; counts and types come from the arrays."""

    def __init__(self, raw: Any, nranks: int, rank: int) -> None:
        self._raw, self.nranks, self.rank = raw, nranks, rank

    @classmethod
    def init(cls, nranks: int, rank: int, unique_id: UniqueId, config: Any = None) -> Communicator:
        if config is None:
            return cls(_c.NcclCommunicator(nranks, bytes(unique_id), rank), nranks, rank)
        raw = _c.NcclCommunicator.__new__(_c.NcclCommunicator)
        raw._comm = ctypes.c_void_p()
        made = _c._UniqueId.from_buffer_copy(bytes(unique_id))
        init = _c._library.ncclCommInitRankConfig
        init.argtypes = [ctypes.c_void_p, ctypes.c_int, _c._UniqueId, ctypes.c_int, ctypes.c_void_p]
        laid_out = config.laid_out()  # which must live as long as the call
        _c._check(init(ctypes.byref(raw._comm), nranks, made, rank, ctypes.addressof(laid_out)))
        return cls(raw, nranks, rank)

    def destroy(self) -> None:
        self._raw.destroy()

    def abort(self) -> None:
        self._raw.abort()

    def get_async_error(self) -> Result:
        code = ctypes.c_int()
        _c._library.ncclCommGetAsyncError(self._raw._comm, ctypes.byref(code))
        return Result(code.value)

    def get_last_error(self) -> str:
        _c._library.ncclGetLastError.restype = ctypes.c_char_p
        return str((_c._library.ncclGetLastError(None) or b"").decode())

    def allreduce(self, sendbuf: Any, recvbuf: Any, op: int, *, stream: int, config: Any = None) -> None:
        self.reduce(sendbuf, recvbuf, op, stream=stream)

    def reduce(
        self, sendbuf: Any, recvbuf: Any, op: int, root: int | None = None, *, stream: int, config: Any = None
    ) -> None:
        (out, n, kind), (into, room, other) = _of(sendbuf), _of(recvbuf)
        if root in (None, self.rank):
            _equal(kind == other and room >= n, "the buffers of a reduction differ")
        if root is None:
            self._raw.allReduce(out, into, n, kind, op, stream)
        else:
            self._raw.reduce(out, into, n, kind, op, root, stream)

    def broadcast(self, sendbuf: Any, recvbuf: Any, root: int, *, stream: int, config: Any = None) -> None:
        (out, n, kind), (into, room, _) = _of(sendbuf), _of(recvbuf)
        _equal(n == room, "the buffers of a broadcast differ")
        self._raw.broadcast(out, into, n, kind, root, stream)

    def allgather(self, sendbuf: Any, recvbuf: Any, *, stream: int, config: Any = None) -> None:
        (out, n, kind), (into, room, _) = _of(sendbuf), _of(recvbuf)
        _equal(room >= n * self.nranks, "the buffer of a gather is too small")
        self._raw.allGather(out, into, n, kind, stream)

    def reduce_scatter(self, sendbuf: Any, recvbuf: Any, op: int, *, stream: int, config: Any = None) -> None:
        (out, n, kind), (into, room, _) = _of(sendbuf), _of(recvbuf)
        _equal(n >= room * self.nranks, "the buffer of a scatter is too small")
        self._raw.reduceScatter(out, into, room, kind, op, stream)

    def alltoall(self, sendbuf: Any, recvbuf: Any, *, stream: int, config: Any = None) -> None:
        (out, n, kind), (into, room, _) = _of(sendbuf), _of(recvbuf)
        _equal(n == room and n % self.nranks == 0, "the buffers of an exchange differ")
        self._call("ncclAlltoAll", out, into, n // self.nranks, kind, None, stream)

    def gather(self, sendbuf: Any, recvbuf: Any, root: int, *, stream: int, config: Any = None) -> None:
        (out, n, kind), (into, room, _) = _of(sendbuf), _of(recvbuf)
        if root == self.rank:
            _equal(room >= n * self.nranks, "the buffer of a gather is too small")
        self._call("ncclGather", out, into, n, kind, root, stream)

    def scatter(self, sendbuf: Any, recvbuf: Any, root: int, *, stream: int, config: Any = None) -> None:
        (out, n, _), (into, room, kind) = _of(sendbuf), _of(recvbuf)
        if root == self.rank:
            _equal(n >= room * self.nranks, "the buffer of a scatter is too small")
        self._call("ncclScatter", out, into, room, kind, root, stream)

    def send(self, sendbuf: Any, peer: int, *, stream: int) -> None:
        out, n, kind = _of(sendbuf)
        self._raw.send(out, n, kind, peer, stream)

    def recv(self, recvbuf: Any, peer: int, *, stream: int) -> None:
        into, n, kind = _of(recvbuf)
        self._raw.recv(into, n, kind, peer, stream)

    def _call(self, name: str, out: int, into: int, n: int, kind: int, root: int | None, stream: int) -> None:
        words = [_c._A(out), _c._A(into), _c._N(n), kind, *([] if root is None else [root]), self._raw._comm]
        _c._check(getattr(_c._library, name)(*words, _c._A(stream)))
