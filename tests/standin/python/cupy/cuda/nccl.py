"""``cupy.cuda.nccl`` over the stand-in libnccl: names, operands and exceptions as in CuPy 14."""

from __future__ import annotations

import ctypes
import os

_library = ctypes.CDLL(os.environ["OMB_PY_NCCL"])
_library.ncclGetErrorString.restype = ctypes.c_char_p
available = True
_NAMES = {
    1: "NCCL_ERROR_UNHANDLED_CUDA_ERROR",
    2: "NCCL_ERROR_SYSTEM_ERROR",
    3: "NCCL_ERROR_INTERNAL_ERROR",
    4: "NCCL_ERROR_INVALID_ARGUMENT",
    5: "NCCL_ERROR_INVALID_USAGE",
}


class NcclError(RuntimeError):
    """As CuPy's, which has no name for the newer codes either."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"{_NAMES[status]}: {_library.ncclGetErrorString(status).decode()}")


class _UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


def _check(status: int) -> None:
    if status:
        raise NcclError(status)


def get_version() -> int:
    number = ctypes.c_int()
    _check(_library.ncclGetVersion(ctypes.byref(number)))
    return number.value


def get_unique_id() -> bytes:
    """Bytes since CuPy 14; a tuple of integers before."""
    made = _UniqueId()
    _check(_library.ncclGetUniqueId(ctypes.byref(made)))
    return bytes(made)


def groupStart() -> None:
    _check(_library.ncclGroupStart())


def groupEnd() -> None:
    _check(_library.ncclGroupEnd())


_A, _N, _I = ctypes.c_ssize_t, ctypes.c_size_t, ctypes.c_int


class NcclCommunicator:
    """A communicator: addresses, counts, numbers of types and of reductions, and a stream."""

    def __init__(self, ndev: int, commId: bytes, rank: int, config: None = None) -> None:
        if not isinstance(commId, bytes):
            raise TypeError(f"Argument 'commId' has incorrect type (expected bytes, got {type(commId).__name__})")
        assert len(commId) == 128
        self._comm = ctypes.c_void_p()
        made = _UniqueId.from_buffer_copy(commId)
        init = _library.ncclCommInitRank
        init.argtypes = [ctypes.c_void_p, _I, _UniqueId, _I]
        _check(init(ctypes.byref(self._comm), ndev, made, rank))

    def destroy(self) -> None:
        if self._comm:
            _library.ncclCommDestroy(self._comm)
        self._comm = ctypes.c_void_p()

    def abort(self) -> None:
        if self._comm:
            _library.ncclCommAbort(self._comm)
        self._comm = ctypes.c_void_p()

    def check_async_error(self) -> None:
        code = ctypes.c_int()
        _check(_library.ncclCommGetAsyncError(self._comm, ctypes.byref(code)))
        _check(code.value)

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        _check(_library.ncclAllReduce(_A(sendbuf), _A(recvbuf), _N(count), datatype, op, self._comm, _A(stream)))

    def reduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int) -> None:
        _check(_library.ncclReduce(_A(sendbuf), _A(recvbuf), _N(count), datatype, op, root, self._comm, _A(stream)))

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        _check(_library.ncclBroadcast(_A(sendbuff), _A(recvbuff), _N(count), datatype, root, self._comm, _A(stream)))

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        words = _A(sendbuf), _A(recvbuf), _N(recvcount), datatype, op, self._comm, _A(stream)
        _check(_library.ncclReduceScatter(*words))

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        _check(_library.ncclAllGather(_A(sendbuf), _A(recvbuf), _N(count), datatype, self._comm, _A(stream)))

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        _check(_library.ncclSend(_A(sendbuf), _N(count), datatype, peer, self._comm, _A(stream)))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        _check(_library.ncclRecv(_A(recvbuf), _N(count), datatype, peer, self._comm, _A(stream)))
